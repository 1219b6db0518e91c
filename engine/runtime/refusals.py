"""Refusals: calls that the server refuses, root by root, and how long others like them are held back, or until quotas change."""

import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from typing import Final, NamedTuple

from msgspec import Struct, field

from engine.errors import ClusterError, Forbidden, Invalid, TooLarge, is_out_of_quota
from engine.ids import RESOURCE_QUOTA, ResourceId
from engine.memo import Revised
from engine.observed import Observed
from engine.operation import Operation, Outcome, Result, parent_of
from engine.plan import Plan, without
from engine.runtime.clock import Clock
from engine.runtime.logs import Log
from engine.runtime.provider import Provider, Scope
from engine.verb import Verb
from engine.world_update import LiveChange

FEW: Final = 3
"""How many calls of a sort are refused in a row before the others are held back."""
PROBES: Final = 3
"""How many of them are sent after each pause."""
FIRST_PAUSE, LONGEST_PAUSE = 1.0, 30.0
"""Seconds of the first pause, which doubles with each one that follows, and of the longest."""
KEPT: Final = 60.0
"""Seconds after the last refusal for which it is known what was reported: then it is reported again."""

_NUMBERS: Final = re.compile(r"(?<![^-])\d+(?![^-])")
"""The numbers in the name of a parent: replicas differ in nothing else."""


class Sort(NamedTuple):
    """Calls that the server answers alike: of one verb, to objects of one kind, with parents that differ in their numbers alone."""

    verb: Verb
    kind: tuple[str, str]
    """Group and name."""
    parent: tuple[str, str] | None
    """Kind and name without numbers; None without a parent."""


class RefusalCause(NamedTuple):
    """What refuses calls."""

    type: str
    """What refused a request with 403 (`RefusedBy`), or the name of the error."""
    name: str
    """The admission webhook or policy, if the server has named one."""


class HeldBack(Struct, frozen=True):
    """Calls of a root that are held back since the last report."""

    root: ResourceId
    verb: Verb
    kind: str
    error: Exception
    """The last refusal."""
    sorts: frozenset[Sort]


class _Pause(Struct, eq=False):
    """The refusals of one sort of calls by one cause since one was done. Times are of a monotonic clock."""

    error: Exception
    """The last one."""
    latest: float
    """Its time."""
    count: int = 0
    """How many in a row."""
    keys: set[str] = field(default_factory=set)
    """Those of the refused operations."""
    is_held: bool = False
    """Whether only probes are sent, after each pause."""
    pauses: int = 0
    """How many pauses there were in a row."""
    until: float = -math.inf


class _Refused(Struct, eq=False):
    """What refuses one sort of calls. They are held back until the pauses of all causes are over."""

    causes: dict[RefusalCause, _Pause] = field(default_factory=dict)
    probes: set[str] = field(default_factory=set)
    """The keys of the operations that are sent, or are about to be, although the others are held back."""

    @property
    def is_held(self) -> bool:
        """Whether only probes are sent."""
        return any(pause.is_held for pause in self.causes.values())

    @property
    def until(self) -> float:
        """When the last pause is over."""
        return max(pause.until for pause in self.causes.values())


class _Root(Struct, eq=False):
    """What was refused of one root."""

    edition: tuple[str, int] | None
    """Its uid and generation; None if it was not observed."""
    latest: float
    """The time of the last refusal."""
    refused: dict[Sort, _Refused] = field(default_factory=dict)
    reported: set[tuple[Verb, tuple[str, str], RefusalCause]] = field(default_factory=set)
    """Verb, kind and cause of what was reported."""

    def pauses(self) -> Iterator[tuple[Sort, _Pause]]:
        """The pauses of all causes, each with the sort of its calls."""
        return ((sort, pause) for sort, refused in self.refused.items() for pause in refused.causes.values())


class Refusals:
    """What the server refuses of each root. After `few` refusals of a sort in a row (default: never) the others are held back.

    After each pause `PROBES` of them are sent. A refusal doubles the pause of its cause; as soon as one is done, nothing is held back any
    more. Other calls of the root, and other roots, are not affected.
    """

    def __init__(self, few: float = math.inf) -> None:
        self._few = few
        self._roots: dict[ResourceId, _Root] = {}
        self._observed: Revised[Observed] | None = None
        """The roots of the last pass."""
        self._ended: set[str] = set()
        """The keys of refused operations that may be sent again at once, until they are taken."""

    def note(self, root: ResourceId, result: Result, at: float) -> bool:
        """Record an answer to a call of a root. Returns whether others like it are held back from now on, until a pause is over."""
        if self._few == math.inf:
            return False
        known, key = self._roots.get(root), result.operation.key
        if not is_refused(result):
            if known is not None and (refused := known.refused.get(sort := sort_of(result.operation))) is not None:
                refused.probes.discard(key)
                if result.outcome is Outcome.DONE:
                    self._end(known.refused.pop(sort))
            return False
        assert result.error is not None
        if known is None:
            known = self._roots[root] = _Root(self._edition(root), at)
        refused = known.refused.setdefault(sort_of(result.operation), _Refused())
        pause = refused.causes.setdefault(cause_of(result.error), _Pause(result.error, at))
        pause.error, pause.latest, known.latest = result.error, at, at
        pause.count += 1
        pause.keys.add(key)
        refused.probes.discard(key)
        if pause.count < self._few or at < pause.until:
            return False
        pause.is_held, pause.until = True, at + pause_after(pause.pauses)
        pause.pauses += 1
        refused.probes.clear()
        return True

    def _edition(self, root: ResourceId) -> tuple[str, int] | None:
        observed = self._observed.get(root) if self._observed is not None else None
        return (observed.root.uid, observed.root.generation) if observed is not None else None

    def _end(self, refused: _Refused) -> None:
        """Let everything be sent that was refused, if others were held back because of it."""
        if refused.is_held:
            self._ended.update(*(pause.keys for pause in refused.causes.values()))

    def admits(self, root: ResourceId, operation: Operation, at: float) -> bool:
        """Whether an operation of a root may be sent now. The first ones that are asked for after a pause become its probes."""
        known = self._roots.get(root)
        if known is None or not any(sort[:2] == (operation.verb, operation.id[:2]) for sort in known.refused):
            return True
        refused = known.refused.get(sort_of(operation))
        if refused is None or not refused.is_held:
            return True
        if at < refused.until:
            return False
        if operation.key not in refused.probes and len(refused.probes) < PROBES:
            refused.probes.add(operation.key)
        return operation.key in refused.probes

    def admitted(self, plan: Plan, at: float) -> Plan:
        """The plan without what is held back, and without what comes after it. Nothing of the root may be on its way."""
        known = self._roots.get(plan.root)
        if known is None:
            return plan
        for refused in known.refused.values():
            refused.probes.clear()
        return without(plan, lambda operation: not self.admits(plan.root, operation, at))

    def observe(self, roots: Revised[Observed], at: float) -> None:
        """Take what a pass has observed. Everything of a root that was edited, or made anew, may be sent again."""
        self._observed = roots
        for root, known in list(self._roots.items()):
            edition = self._edition(root)
            known.edition = known.edition or edition
            if edition != known.edition:
                self._ended.update(key for _, pause in known.pauses() for key in pause.keys)
                known.edition, known.refused = edition, {}
            for refused in known.refused.values():
                refused.causes = {cause: pause for cause, pause in refused.causes.items() if at < max(pause.until, pause.latest) + KEPT}
            known.refused = {sort: refused for sort, refused in known.refused.items() if refused.causes}
            if not known.refused and at >= known.latest + KEPT:
                del self._roots[root]

    def note_changes(self, changes: Iterable[LiveChange], at: float) -> None:
        """End the pauses of what a quota has had no room for where an object of the same kind is gone."""
        if self._roots:
            for gone in {(*change.id[:2], change.id.namespace) for change in changes if change.new is None}:
                self.note_room(gone[2], at, kind=gone[:2])

    def note_room(self, namespace: str, at: float, kind: tuple[str, str] | None = None) -> None:
        """End the pauses of what a quota of a namespace has had no room for: only objects of the kind `kind`, unless that is None."""
        for root, known in self._roots.items():
            for sort, pause in known.pauses():
                if root.namespace == namespace and kind in (None, sort.kind) and is_out_of_quota(pause.error):
                    self._ended |= pause.keys
                    pause.until, pause.pauses = min(pause.until, at), 0

    @property
    def awaiting_room(self) -> frozenset[str]:
        """The namespaces in which a quota has had no room for calls."""
        return frozenset(
            root.namespace for root, known in self._roots.items() if any(is_out_of_quota(pause.error) for _, pause in known.pauses())
        )

    def take_ended(self) -> set[str]:
        """The keys of operations that were refused and may be sent again at once. Each is returned once."""
        ended, self._ended = self._ended, set()
        return ended

    def take_unreported(self) -> Sequence[HeldBack]:
        """What is held back and was not reported of its root yet: each verb, kind and cause once, until nothing is refused for a minute."""
        unreported = []
        for root, known in self._roots.items():
            for sort, pause in known.pauses():
                about = (*sort[:2], cause := cause_of(pause.error))
                if pause.is_held and about not in known.reported:
                    known.reported.add(about)
                    alike = ((each, held) for each, held in known.pauses() if each[:2] == sort[:2] and held.is_held)
                    sorts = frozenset(each for each, held in alike if cause_of(held.error) == cause)
                    unreported.append(HeldBack(root, sort.verb, sort.kind[1], pause.error, sorts))
        return unreported

    def next_due(self, at: float) -> float | None:
        """The first time after `at` at which calls are no longer held back; None if there is none."""
        times = (until for known in self._roots.values() for refused in known.refused.values() if (until := refused.until) > at)
        return min(times, default=None)


def sort_of(operation: Operation) -> Sort:
    """The sort of a call."""
    parent = parent_of(operation)
    like = (parent[0], _NUMBERS.sub("", parent[1])) if parent is not None else None
    return Sort(operation.verb, operation.id[:2], like)


def is_refused(result: Result) -> bool:
    """Whether the server refused a request, and may take it when its rules, its quotas or our rights are others."""
    return result.outcome is Outcome.FAILED and isinstance(result.error, Forbidden | Invalid) and not isinstance(result.error, TooLarge)


def pause_after(pauses: int) -> float:
    """Seconds of a pause that comes after so many others."""
    return min(LONGEST_PAUSE, FIRST_PAUSE * 2.0 ** min(pauses, 16))


def cause_of(error: Exception) -> RefusalCause:
    """The cause of a refusal."""
    name = error.refuser if isinstance(error, ClusterError) else ""
    return RefusalCause(error.by if isinstance(error, Forbidden) else type(error).__name__, name)


INTERVAL: Final = 2.0
"""Seconds between two reads."""
AT_A_TIME: Final = 8
"""The quotas of how many namespaces are read at a time; the others come next."""
FORBIDDEN_PAUSE: Final = 600.0
"""Seconds after which they are read again where we may not read them."""


async def look_for_room(
    provider: Provider, clock: Clock, refusals: Refusals, on_change: Callable[[], None], log: Log | None = None
) -> None:
    """End the pauses of calls that were refused for want of room in namespaces in which a quota has changed, for ever.

    `on_change` is called when some have ended.
    """
    quotas = QuotaRevisions()
    while True:
        await clock.sleep(INTERVAL)
        changed = await quotas.changed(provider, refusals.awaiting_room, clock.monotonic(), log)
        for namespace in changed:
            refusals.note_room(namespace, clock.monotonic())
        if changed:
            on_change()


class QuotaRevisions:
    """The quotas of some namespaces, as they were last read."""

    def __init__(self) -> None:
        self._known: dict[str, dict[ResourceId, str]] = {}
        """Namespace -> its quotas with their revisions, those that were read last at the end."""
        self._forbidden_until = 0.0

    async def changed(self, provider: Provider, namespaces: Set[str], at: float, log: Log | None = None) -> frozenset[str]:
        """Read the quotas of the namespaces whose turn it is. Returns those in which they differ from when they were last read.

        `at` is a time of a monotonic clock. What may not be read is logged, and not asked for again for `FORBIDDEN_PAUSE` seconds.
        """
        self._known = {namespace: quotas for namespace, quotas in self._known.items() if namespace in namespaces}
        if at < self._forbidden_until or not namespaces:
            return frozenset()
        chosen = [*sorted(namespaces - self._known.keys()), *self._known][:AT_A_TIME]
        try:
            observation = await provider.observe(Scope((), (), "", tuple(chosen), (RESOURCE_QUOTA,)))
        except ClusterError:
            return frozenset()
        if (unlisted := observation.incomplete.get(RESOURCE_QUOTA.key)) is not None:
            if unlisted.is_forbidden:
                self._forbidden_until = at + FORBIDDEN_PAUSE
                if log is not None:
                    log.warning("not read", object=RESOURCE_QUOTA.name, error=unlisted.text)
            return frozenset()
        read: dict[str, dict[ResourceId, str]] = {namespace: {} for namespace in chosen}
        for quota in observation.references:
            read[quota.id.namespace][quota.id] = quota.revision
        changed = frozenset(namespace for namespace, quotas in read.items() if self._known.pop(namespace, quotas) != quotas)
        self._known |= read
        return changed
