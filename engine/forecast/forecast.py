"""Forecast: what happens from the first pass on, until everything is settled or nothing moves any more."""

from collections.abc import Collection, Iterator, Mapping
from datetime import datetime, timedelta
from enum import StrEnum

from msgspec import Struct, field

from engine.forecast.cluster_model import Assumption, Effects
from engine.ids import ResourceId
from engine.observed import Live, World
from engine.operation import Operation, WriteStatus
from engine.plan import Objection, Plan, Wait


class End(StrEnum):
    """How a forecast ends."""

    SETTLED = "settled"
    """Nothing is left to do or to wait for."""
    STUCK = "stuck"
    """Something is left that neither time nor the cluster changes."""
    REPEATS = "repeats"
    """The same operations follow again and again."""
    UNFINISHED = "unfinished"
    """More passes follow than were computed."""


class ForecastPass(Struct, frozen=True, eq=False):
    """A pass with operations."""

    after: timedelta
    """The simulated time since the first pass."""
    operations: Mapping[ResourceId, tuple[Operation, ...]]
    """Root -> the operations that are executed for it; only roots that have any."""

    def all_operations(self) -> Iterator[Operation]:
        """Those of all roots, in order."""
        for operations in self.operations.values():
            yield from operations


class Forecast(Struct, frozen=True, eq=False):
    """The passes from the first one to the end."""

    began: datetime
    passes: tuple[ForecastPass, ...]
    """Only those with operations."""
    is_finished: bool
    """Whether the end was reached: everything after it stays as it is."""
    plans: Mapping[ResourceId, Plan]
    """The plan of each root at the end."""
    effects: Mapping[ResourceId, Effects]
    assumptions: frozenset[Assumption]
    objects: Mapping[ResourceId, Live] | None = field(default_factory=dict)
    """The objects that exist at the end, of the world that the forecast was made for: those of other roots are not among them.

    None if only a sample of the world was simulated."""
    repeating: frozenset[ResourceId] = frozenset()
    """The roots whose operations repeat for ever: `passes` has them once or a few times."""

    @property
    def final(self) -> Collection[Live]:
        """The objects that exist at the end, as `assemble` takes them; a view, not a copy. Uids of new objects begin with `SYNTHETIC`.

        Raises `ValueError` if only a sample of the world was simulated.
        """
        if self.objects is None:
            raise ValueError("the objects at the end of a forecast are not known: only a sample was simulated")
        return self.objects.values()

    end: World = World(())
    """What the last pass observed, with what the intent proposes."""
    shortages: Mapping[ResourceId, tuple[Wait, ...]] = field(default_factory=dict)
    """Root -> its objects with pods that never start, each with the reason: no node has room, or they refer to what does not exist."""
    late: Mapping[ResourceId, tuple[Wait, ...]] = field(default_factory=dict)
    """Root -> its objects with pods that start only after a pause that is longer than a sync waits, each with what they lack until then."""
    doubts: tuple[str, ...] = ()
    """What the forecast assumes although it may well not be so, as sentences: pods that may not fit, and why."""
    unchecked: str = ""
    """Why it is not known whether the nodes have room for new pods; empty if it is, or if no pod is created."""
    objections: tuple[Objection, ...] = ()
    """What the guards say against the last pass as a whole."""
    collected: int = 0
    """How many of the objects of the roots Kubernetes' garbage collector deletes, without an operation of the engine."""

    def operations(self) -> Iterator[Operation]:
        """Every operation, in order."""
        for each in self.passes:
            yield from each.all_operations()

    def operations_of(self, root: ResourceId) -> Iterator[Operation]:
        """Every operation on one root, in order."""
        for each in self.passes:
            yield from each.operations.get(root, ())

    def has_operations(self, root: ResourceId) -> bool:
        """Whether anything but statuses is written for a root."""
        return any(not isinstance(operation, WriteStatus) for operation in self.operations_of(root))

    def longest_pause(self, root: ResourceId) -> timedelta:
        """The longest simulated time in which nothing but statuses is written for a root, between the first pass and its last write."""
        pause = since = timedelta()
        for each in self.passes:
            if any(not isinstance(operation, WriteStatus) for operation in each.operations.get(root, ())):
                pause, since = max(pause, each.after - since), each.after
        return pause

    def is_blocked(self, root: ResourceId) -> bool:
        """Whether something is left at the end that a user or another controller has to make possible."""
        plan = self.plans.get(root)
        return plan is not None and bool(plan.blocked or plan.blocking_alarms)

    def end_of(self, root: ResourceId) -> End:
        """How the forecast ends for one root. A root that does not exist any more is settled."""
        if root in self.repeating:
            return End.REPEATS
        plan = self.plans.get(root)
        if plan is None:
            return End.SETTLED
        if not is_left(plan):
            return End.SETTLED
        return End.STUCK if self.is_finished else End.UNFINISHED


def is_left(plan: Plan) -> bool:
    """Whether a plan has anything to do or to wait for, or that a user or an administrator must act on."""
    return bool(plan.operations or plan.deferred or plan.pending or plan.problems or plan.error or plan.blocking_alarms)
