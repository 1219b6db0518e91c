"""Memory: what one process remembers from pass to pass, and how much of it a new observation makes out of date."""

from collections.abc import Iterator, Sequence
from datetime import datetime

from msgspec import Struct, field

from engine.blueprint import Blueprint, root_of
from engine.event import RootEvents, RootWarning
from engine.ids import ResourceId
from engine.intent import Intent
from engine.memo import Memo
from engine.observed import Live, World
from engine.runtime.call_limit import CallLimit
from engine.runtime.debounce import Debounce
from engine.runtime.event_publishing import EventPublisher
from engine.runtime.failed_calls import FailedCalls
from engine.runtime.foreign import ForeignObjects
from engine.runtime.lookups import Lookups
from engine.runtime.namespaces import Namespaces
from engine.runtime.provider import Observation
from engine.runtime.rejections import Rejections
from engine.runtime.verdicts import Verdicts
from engine.tick import outdated
from engine.world_update import LiveChange, position_of


class Memory(Struct, eq=False):
    """What makes passes cheaper and writes fewer; a process that starts with an empty memory computes the same plans.

    The exceptions are `failed_calls`, `verdicts` and `foreign`: no listing shows these facts; a new process learns them from the answers to
    its calls.
    """

    memo: Memo = field(default_factory=Memo)
    world: World | None = None
    """The world of the last pass, without proposed manifests; None before the first pass."""
    observed: object = None
    """The token of the observation that `world` was made from."""
    failures: int = 0
    """The version of `failed_calls` that `world` was made from."""
    record: Live | None = None
    """The record of the intent, as it was last read."""
    debounce: Debounce = field(default_factory=Debounce)
    rejections: Rejections = field(default_factory=Rejections)
    foreign: ForeignObjects = field(default_factory=ForeignObjects)
    lookups: Lookups = field(default_factory=Lookups)
    namespaces: Namespaces = field(default_factory=Namespaces)
    call_limit: CallLimit = field(default_factory=CallLimit)
    failed_calls: FailedCalls = field(default_factory=FailedCalls)
    verdicts: Verdicts = field(default_factory=Verdicts)
    warnings: frozenset[RootWarning] = frozenset()
    """The warnings of the last pass; each has been recorded as an event."""
    events: EventPublisher = field(default_factory=EventPublisher)
    unpublished: list[RootEvents] = field(default_factory=list)
    """The events of the last pass, which are published while the next one is carried out."""

    def forget_computed(self) -> None:
        """Forget everything that depends on the configuration, and keep what was observed: the next pass computes all plans anew."""
        self.memo, self.world, self.lookups = Memo(), None, Lookups()


FEW = 50
"""With more changes than these nobody looks at them one by one: the pass counts as one over everything."""


def extent(blueprints: Sequence[Blueprint], memory: Memory, observation: Observation, intent: Intent, now: datetime) -> int:
    """How many objects the roots have that a pass over this observation plans anew; all that were observed if that is not known."""
    everything, world = len(observation.children), memory.world
    changes, failed = observation.changes_since(memory.observed), memory.failed_calls.changed_since(memory.failures)
    if world is None or changes is None or failed is None or len(changes) + len(failed) > FEW or intent.manifests or intent.removals:
        return everything
    roots = [set(_roots_of(blueprints, world, change)) for change in changes]
    if not all(roots):
        return everything
    expired = {position for id in (*failed, *outdated(memory.memo, now)) if (position := position_of(world, id)) is not None}
    return sum(world.roots[position].count() for position in expired.union(*roots))


def _roots_of(blueprints: Sequence[Blueprint], world: World, change: LiveChange) -> Iterator[int]:
    """The positions of the root that has changed, and of the root that the labels of the object name. None of a root that is gone."""
    live = change.new or change.old
    own = position_of(world, change.id)
    if live is None or (own is not None and change.new is None):
        return
    named: ResourceId | None = root_of(blueprints, live)
    for position in (own, position_of(world, named) if named is not None else None):
        if position is not None:
            yield position
