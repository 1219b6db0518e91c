"""Event publishing: which Events of a pass are new, and writing them. A failed write fails no pass, and is not repeated for ever."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from operator import attrgetter
from typing import Final

import anyio
from msgspec import Struct, field

from engine.errors import ClusterError, Forbidden, Throttled
from engine.event import Event, EventBuilder, Publication, RootEvents, RootWarning
from engine.ids import ResourceId
from engine.observed import Observed, World
from engine.operation import Result
from engine.plan import Plan, noteworthy
from engine.report.model import error_text
from engine.runtime.calls import always
from engine.runtime.clock import Clock
from engine.runtime.event_budget import MAX_NAMESPACES, EventBudget
from engine.runtime.event_correlation import Correlator
from engine.runtime.logs import Log
from engine.runtime.provider import Provider

TIME_LIMIT: Final = 5.0
"""Seconds for writing the events of one pass; events that are not written by then are dropped."""

CONCURRENCY: Final = 4
"""How many events are written at the same time."""

MAX_ATTEMPTS: Final = 3
"""How often an event is sent while the server asks to send it later."""

THROTTLED_PAUSE: Final = 1.0
"""Seconds without events after the server has asked to send them later and did not say when."""

FORBIDDEN_PAUSE: Final = 600.0
"""Seconds without events in a namespace after the server has not permitted one there."""


class _Sending(Struct):
    """An Event to be written, and how often it has been sent."""

    event: Event
    attempts: int = 0


class EventPublisher(Struct, eq=False):
    """The Events of one process. It is only memory: a new process starts with an empty one, and finds its Events by their names."""

    correlator: Correlator = field(default_factory=Correlator)
    _waiting: list[_Sending] = field(default_factory=list)
    """Events that the server has asked to send later."""
    _budget: EventBudget = field(default_factory=EventBudget)
    _paused_until: float = 0.0
    _forbidden_until: dict[str, float] = field(default_factory=dict)
    """Namespace -> when an event is tried there again."""

    async def publish(
        self,
        provider: Provider,
        clock: Clock,
        groups: Sequence[RootEvents],
        log: Log | None = None,
        *,
        flush: bool = False,
        may_write: Callable[[], bool] = always,
    ) -> Publication:
        """Write what these events amount to (`Correlator.combine`), within `TIME_LIMIT` seconds. Log once how many were dropped.

        `may_write` is called before each of them is sent; where it is false the event is dropped.
        """
        at = clock.monotonic()
        combined = self.correlator.combine(groups, at, flush=flush)
        sendings = self._waiting + [_Sending(event) for event in combined]
        if not sendings and not self.correlator.withheld:
            return Publication()
        permitted = [sending for sending in sendings if self._is_permitted(sending.event, at)]
        is_paused = at < self._paused_until
        budget = EventBudget() if is_paused else self._budget
        chosen = budget.first(permitted, attrgetter("event"), at)
        self._waiting = chosen if is_paused else []
        failed = len(permitted) - len(chosen)
        if not is_paused:
            failed += await self._send(provider, clock, chosen, log, may_write)
        if log is not None and (failed or self.correlator.withheld):
            log.warning("events dropped", withheld=self.correlator.withheld, failed=failed)
        refused = len(sendings) - len(permitted)
        return Publication(len(sendings) - len(self._waiting) - failed - refused, failed + refused, self.correlator.withheld)

    def _is_permitted(self, event: Event, at: float) -> bool:
        """Whether events may be written in the namespace, as far as we know."""
        return at >= self._forbidden_until.get(event.about.namespace, 0.0)

    async def _send(
        self, provider: Provider, clock: Clock, sendings: Sequence[_Sending], log: Log | None, may_write: Callable[[], bool]
    ) -> int:
        """Write the Events. Returns how many were dropped; those that the server asks to send later are kept."""
        limit, settled = anyio.CapacityLimiter(CONCURRENCY), list[bool]()

        async def send(sending: _Sending) -> None:
            async with limit:
                settled.append(may_write() and await self._try(provider, clock, sending, log))

        with anyio.move_on_after(TIME_LIMIT):
            async with anyio.create_task_group() as tasks:
                for sending in sendings:
                    tasks.start_soon(send, sending)
        return len(sendings) - sum(settled)

    async def _try(self, provider: Provider, clock: Clock, sending: _Sending, log: Log | None) -> bool:
        """Write one Event. Returns whether it is written or kept for later."""
        at = clock.monotonic()
        if not self._is_permitted(sending.event, at):
            return False
        if at >= self._paused_until:
            sending.attempts += 1
            try:
                await provider.record(sending.event)
                return True
            except Throttled as error:
                self._paused_until = at + (error.retry_after or THROTTLED_PAUSE)
            except Forbidden as error:
                if log is not None and self._is_permitted(sending.event, at):
                    log.warning("events forbidden", namespace=sending.event.about.namespace, error=error)
                self._forbid(sending.event.about.namespace, at)
                return False
            except ClusterError:
                return False
        if sending.attempts >= MAX_ATTEMPTS:
            return False
        self._waiting.append(sending)
        return True

    def _forbid(self, namespace: str, at: float) -> None:
        """Remember that events are not permitted in that namespace."""
        self._forbidden_until.pop(namespace, None)
        self._forbidden_until[namespace] = at + FORBIDDEN_PAUSE
        if len(self._forbidden_until) > MAX_NAMESPACES:
            del self._forbidden_until[next(iter(self._forbidden_until))]


INTERNAL_ERROR = "InternalError"
"""The reason of the event for a root whose plan could not be computed because of a defect of the engine."""


def warnings_of(world: World, plans: Sequence[Plan]) -> dict[ResourceId, frozenset[RootWarning]]:
    """Root -> its warnings in a pass; roots without any may be absent. A root that does not exist yet has none: an event needs a uid."""
    suspects = [plan for plan in noteworthy(plans) if plan.problems or plan.alarms or plan.error is not None]
    if not suspects:
        return {}
    roots = {observed.root.id: observed for observed in world.roots if observed.root.uid}
    return {plan.root: frozenset(_warnings(roots[plan.root], plan)) for plan in suspects if plan.root in roots}


def new_warnings(
    current: Mapping[ResourceId, frozenset[RootWarning]], known: frozenset[RootWarning]
) -> dict[ResourceId, list[RootWarning]]:
    """Root -> its current warnings that are not known, sorted; a warning is new again when its root was edited and still has it."""
    return {root: sorted(warnings - known) for root, warnings in current.items() if not warnings <= known}


def _warnings(observed: Observed, plan: Plan) -> Iterator[RootWarning]:
    """The problems, the alarms and the internal error of a plan.

    Without the problems of a manifest that a user proposes: they are mistakes in that manifest, not in the root, and the user sees them.
    """
    root = observed.root
    for problem in () if observed.proposal is not None and observed.proposer is None else plan.problems:
        yield RootWarning(root.id, root.uid, root.generation, problem)
    for alarm in plan.alarms:
        about = (observed.find(alarm.about) if alarm.about is not None else None) or root
        yield RootWarning(about.id, about.uid, root.generation, alarm.text, alarm.reason, alarm.counted_apart)
    if plan.error is not None:
        yield RootWarning(root.id, root.uid, root.generation, error_text(plan.error), INTERNAL_ERROR)


def events_by_root(
    world: World,
    plans: Sequence[Plan],
    warnings: Mapping[ResourceId, Sequence[RootWarning]],
    results: Sequence[Result],
    build: EventBuilder,
) -> list[RootEvents]:
    """The events of a pass. `plans` are those that were executed; a result belongs to the plan with its operation."""
    if not warnings and not results:
        return []
    roots = {operation.key: plan.root for plan in plans for operation in plan.operations}
    by_root: dict[ResourceId, list[Result]] = {root: [] for root in warnings}
    for result in results:
        by_root.setdefault(roots.get(result.operation.key, result.operation.id), []).append(result)
    uids = {observed.root.id: observed.root.uid for observed in world.roots}
    built = (RootEvents(root, uids.get(root, ""), build(warnings.get(root, ()), own)) for root, own in by_root.items())
    return [group for group in built if group.events]
