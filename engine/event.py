"""Events: what is recorded about a root as Kubernetes Events, for people."""

from dataclasses import dataclass

from engine.ids import ResourceId


@dataclass(frozen=True, slots=True, order=True)
class RootWarning:
    """A fault of a root as it is stored: nothing is done about that root before its user mends it. Or an alarm about it."""

    root: ResourceId
    uid: str
    generation: int
    text: str
    reason: str = ""
    """The alarm's; empty for a fault of the root itself."""


@dataclass(frozen=True, slots=True)
class Event:
    """A Kubernetes Event to be: told about `about`, for people."""

    about: ResourceId
    uid: str
    reason: str
    message: str
    warning: bool = False
