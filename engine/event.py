"""Events: what is published about objects as Kubernetes Events."""

from collections.abc import Callable, Sequence

from msgspec import Struct

from engine.ids import ResourceId
from engine.operation import Result


class RootWarning(Struct, frozen=True, order=True):
    """Something that is wrong with a stored root: a mistake of its user, an alarm, or an internal error of the engine."""

    root: ResourceId
    """The root, or the object of it that an alarm is about."""
    uid: str
    generation: int
    text: str
    reason: str = ""
    """The reason of the Event: that of the alarm or of the internal error; empty for a mistake in the root."""
    counted_apart: bool = False
    """Whether its Event has limits of its own."""


class Event(Struct, frozen=True):
    """A Kubernetes Event to be written about an object."""

    about: ResourceId
    uid: str
    """The uid of that object."""
    reason: str
    message: str
    warning: bool = False
    """Whether its type is `Warning` instead of `Normal`."""
    count: int = 1
    """How often it has happened since it was last written."""
    combined: bool = False
    """Whether it stands for similar events, whose messages differ; `message` is then that of the latest of them."""
    counted_apart: bool = False
    """Whether it has limits of its own, so that many other events about its object cannot crowd it out."""
    subject: str = ""
    """The name in the message for which a combined Event names several; empty if it does not."""
    subject_at: int = 0
    """Where in the message the subject begins: the text before it may have the same word."""
    of_whole: bool = False
    """Whether it happens to an object because it happens to its root as a whole: all such events of a reason are one on the root."""


class RootEvents(Struct, frozen=True):
    """What is to be published about one root and its objects after a pass."""

    root: ResourceId
    uid: str
    """The uid of the root; empty if there is no such root, as for the objects that a deleted one has left behind."""
    events: tuple[Event, ...]


EventBuilder = Callable[[Sequence[RootWarning], Sequence[Result]], tuple[Event, ...]]
"""Returns the events of one root in a pass, given its new warnings and its results."""


def no_events(warnings: Sequence[RootWarning], results: Sequence[Result]) -> tuple[Event, ...]:
    """The default `EventBuilder`: no events."""
    return ()


class Publication(Struct, frozen=True):
    """What became of the Events of one pass."""

    written: int = 0
    failed: int = 0
    """How many were dropped because they could not be written."""
    withheld: int = 0
    """How many are in no Event, because too many about their object have been written lately."""


def ignore_publication(publication: Publication) -> None:
    """The default of a callback."""
