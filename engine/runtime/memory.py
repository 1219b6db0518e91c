"""Memory: what one process remembers from pass to pass, and how much of it a new observation makes out of date."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set
from datetime import datetime
from operator import itemgetter

from msgspec import Struct, field
from msgspec.structs import replace

from engine.blueprint import Asked, Blueprint, C
from engine.ids import ResourceId
from engine.intent import Intent
from engine.memo import Memo, Revised, Steps, differences
from engine.observed import Live, Observed, World, by_root
from engine.operation import Operation, WriteStatus
from engine.plan import Plan
from engine.resource import Body
from engine.runtime.closed_namespaces import Namespaces
from engine.runtime.failed_calls import FailedCalls
from engine.runtime.foreign import ForeignObjects
from engine.runtime.lookups import Lookups
from engine.runtime.portions import Portions
from engine.runtime.refusals import Refusals
from engine.runtime.rejections import Rejections
from engine.runtime.verdicts import Verdicts
from engine.tick import ORDINARY, due

STEADY = 1.0
"""Seconds for which a status must have been the same."""

LATEST = 10.0
"""Seconds after which a status is written although it keeps changing."""

SPACING = 0.02
"""Seconds for which a provisional status delays others: as if fifty could be written in a second, and namespaces took turns."""


class _Pending(Struct, frozen=True):
    """A status that is not written yet. All times are of a monotonic clock."""

    namespace: str
    body: Body
    same_since: float
    differs_since: float
    urgent_since: float | None
    is_provisional: bool

    def due_at(self, patience: Mapping[str, float]) -> float:
        """When to write it if it does not change again; `patience`: how long a provisional one of a namespace must have been the same."""
        if self.urgent_since is not None:
            return min(self.urgent_since + STEADY, self.differs_since + LATEST)
        return min(self.same_since + (patience[self.namespace] if self.is_provisional else STEADY), self.differs_since + LATEST)


class Debounce:
    """Pending status writes by the key of their operation. Kept in memory only: losing it costs one write or one second."""

    def __init__(self) -> None:
        self._pending: dict[str, _Pending] = {}

    def due(self, statuses: Iterable[WriteStatus], at: float) -> frozenset[str]:
        """The keys of the status operations to send now; `at` is a time of a monotonic clock.

        Bodies contain the marker `NOW` instead of a time, so a status that differs only in its time is the same status. Forgets
        operations that are not among `statuses`.
        """
        self._pending = {operation.key: self._updated(operation, at) for operation in statuses}
        patience = self._patience()
        return frozenset(key for key, pending in self._pending.items() if pending.due_at(patience) <= at)

    def _patience(self) -> Mapping[str, float]:
        """Namespace -> the seconds for which a provisional status must have been the same: the more of them there are, the longer.

        It is the time until the last status of the namespace would be written if namespaces took turns, so a namespace with few of
        them does not wait for one with many.
        """
        counts = Counter(pending.namespace for pending in self._pending.values() if pending.is_provisional)
        patience: dict[str, float] = {}
        written, left = 0, len(counts)
        for namespace, count in sorted(counts.items(), key=itemgetter(1)):
            patience[namespace] = max(STEADY, SPACING * (written + count * left))
            written, left = written + count, left - 1
        return patience

    def _updated(self, operation: WriteStatus, at: float) -> _Pending:
        known = self._pending.get(operation.key)
        if known is not None and known.body == operation.patch and known.is_provisional == operation.provisional:
            return known
        before = known.urgent_since if known is not None else None
        urgent_since = (at if before is None else before) if operation.urgent else None
        if known is None:
            return _Pending(operation.id.namespace, operation.patch, at, at, urgent_since, operation.provisional)
        return replace(known, body=operation.patch, same_since=at, urgent_since=urgent_since, is_provisional=operation.provisional)

    def written(self, keys: Iterable[str]) -> None:
        """Forget these operations; if their statuses differ again, they are delayed again."""
        for key in keys:
            self._pending.pop(key, None)

    def delays(self, operations: Iterable[Operation]) -> bool:
        """Whether one of these operations waits for its status to stop changing."""
        return any(operation.key in self._pending for operation in operations)

    @property
    def next_due(self) -> float | None:
        """The monotonic time at which the first pending status is due if nothing changes; None if none is pending."""
        patience = self._patience()
        return min((pending.due_at(patience) for pending in self._pending.values()), default=None)


class Memory(Struct, eq=False):
    """What makes passes cheaper and writes fewer; a process that starts with an empty memory computes the same plans.

    Rule 3 of `docs/architecture.md` names each of the exceptions: fields that change what is planned, or when it is written.
    """

    memo: Memo = field(default_factory=Memo)
    world: World | None = None
    """The world of the last pass, without proposed manifests; None before the first pass."""
    completed: World | None = None
    """The same of the last pass that was made to its end."""
    proposed: frozenset[ResourceId] = frozenset()
    """The roots that only manifests, or other roots, proposed in the last pass."""
    observed: object = None
    """The token of the observation that `world` was made from."""
    failures: int = 0
    """The version of `failed_calls` that `world` was made from."""
    record: Live | None = None
    """The record of the intent, as it was last read."""
    debounce: Debounce = field(default_factory=Debounce)
    rejections: Rejections = field(default_factory=Rejections)
    refusals: Refusals = field(default_factory=Refusals)
    foreign: ForeignObjects = field(default_factory=ForeignObjects)
    lookups: Lookups = field(default_factory=Lookups)
    namespaces: Namespaces = field(default_factory=Namespaces)
    failed_calls: FailedCalls = field(default_factory=FailedCalls)
    verdicts: Verdicts = field(default_factory=Verdicts)
    carried: dict[ResourceId, Plan] = field(default_factory=dict)
    """Root -> its plan of an earlier pass, which is still carried out."""
    portions: Portions = field(default_factory=Portions)
    not_looked_up: Set[ResourceId] = frozenset()
    """The roots that have not been planned since the process has started: what lists by label do not show of them is not known."""

    @property
    def steps(self) -> Steps:
        """What passes have done; the same object for as long as the memory is used."""
        return self.memo.steps

    def forget_computed(self) -> None:
        """Forget what depends on the configuration, and keep what was observed: the next passes compute all plans anew.

        The last plan of a root that waits for its turn stays until then, so that nothing is reported again that was reported of it.
        """
        self.memo, self.world, self.completed, self.lookups = self.memo.with_only(ORDINARY), None, None, Lookups()


def sizes_of_planned(
    memory: Memory, blueprints: Sequence[Blueprint[C]], configuration: C, world: World, intent: Intent, now: datetime
) -> Mapping[ResourceId, int] | None:
    """The roots that a pass is to plan anew, each with the number of objects that it has or asks for; None if these are all roots.

    `world` is the observed one. The first pass is to plan all roots: they have sizes if it may put some off.
    """
    if intent.manifests or intent.removals or (memory.world is None and not memory.portions.are_limited):
        return None
    by_kind, roots = {blueprint.kind.name: blueprint for blueprint in blueprints}, by_root(world.roots)
    planned = set(roots.roots) if memory.world is None else _planned_anew(memory, roots, now)
    observed = {id: each for id in sorted(planned) if (each := roots.get(id)) is not None}
    return {id: max(each.count(), _computed(memory, by_kind[id.kind], each, configuration)) for id, each in observed.items()}


def _planned_anew(memory: Memory, roots: Revised[Observed], now: datetime) -> set[ResourceId]:
    """The roots of which something has changed since the last pass, or whose plans do not hold any more."""
    before = by_root(memory.world.roots if memory.world is not None else ())
    return {*differences(before, roots), *due(memory.memo, now, memory.carried), *memory.portions.begun}.difference(memory.carried)


def _computed(memory: Memory, blueprint: Blueprint[C], observed: Observed, configuration: C) -> int:
    """For how many objects a root is planned: also those that its live objects were scaled to, and those that are never created."""
    asked, beyond = _asked(memory, blueprint, observed, configuration), blueprint.scaled(observed, configuration).beyond
    return asked.objects + asked.never_created + beyond.objects + beyond.never_created


def _asked(memory: Memory, blueprint: Blueprint[C], observed: Observed, configuration: C) -> Asked:
    """What a root asks for; counted anew only when the root has changed."""
    facts = (observed.root, observed.proposal, observed.unserved, observed.replicas, configuration)
    return memory.memo.scope(observed.root.id).recall("asked", facts, lambda: blueprint.asked(observed, configuration))
