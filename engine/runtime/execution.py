"""Execution: carries out what a pass has planned: chooses operations, applies them, remembers their results, records its events."""

from collections.abc import Awaitable, Callable, Iterable, Sequence

import anyio
from msgspec import field

from engine.blueprint import C, incomplete_kinds
from engine.event import RootEvents, RootWarning
from engine.ids import ResourceId
from engine.observed import by_root
from engine.operation import Operation, Outcome, Result, WriteStatus
from engine.plan import Plan, without
from engine.runtime.apply import BEGINNING_TIME, Sending, ignore_result
from engine.runtime.call_limit import MOST, CallLimit
from engine.runtime.calls import always
from engine.runtime.clock import calling_when, cancelled_at
from engine.runtime.event_publishing import EventPublisher, events_by_root, new_warnings, warnings_of
from engine.runtime.memory import Memory
from engine.runtime.passes import Engine, Pass
from engine.runtime.refusals import HeldBack, sort_of
from engine.runtime.steps import SentPlan
from engine.tick import executable

BEGINNING = 3.0
"""How many times as long as planning took plans are begun, if that is longer than `BEGINNING_TIME`."""
COMPLETION = 1.0
"""Seconds after that for which a pass waits until the short plans that were begun are completed. Then they go on beside the next pass."""

HELD_BACK = "CallsHeldBack"
"""The reason of the event for a root of which calls are held back (`Refusals`)."""


class Publishing:
    """Where Events are published beside the passes: nothing waits for them."""

    def __init__(self) -> None:
        self._is_asked = anyio.Event()
        self._is_publishing, self._has_ended = False, anyio.Event()
        self._flush = False
        self._defect: Exception | None = None
        """An exception of our own code, until it is raised."""

    def ask(self, *, flush: bool) -> None:
        """Let what is not published yet be published soon; with `flush` also what waits to be added up with others.

        Raises an exception of our own code that has ended the last publication.
        """
        if self._defect is not None:
            defect, self._defect = self._defect, None
            raise defect
        self._flush = self._flush or flush
        self._is_asked.set()

    async def run(self, publish: Callable[[bool], Awaitable[None]]) -> None:
        """Call `publish` whenever it was asked for, for ever. What is asked for meanwhile is published after it, all at once."""
        while True:
            await self._is_asked.wait()
            flush, self._flush, self._is_asked, self._is_publishing = self._flush, False, anyio.Event(), True
            try:
                await publish(flush)
            except Exception as error:
                self._defect = error
            self._has_ended.set()
            self._is_publishing, self._has_ended = False, anyio.Event()

    async def finish(self) -> None:
        """Wait until everything that was asked for is published: what is cancelled is lost."""
        while self._is_publishing or self._is_asked.is_set():
            await self._has_ended.wait()


class WriterMemory(Memory, eq=False):
    """What a process that carries out passes remembers besides: how fast the server takes calls, and the events of the last pass."""

    call_limit: CallLimit = field(default_factory=CallLimit)
    warnings: frozenset[RootWarning] = frozenset()
    """The warnings of the last pass; each has been recorded as an event."""
    events: EventPublisher = field(default_factory=EventPublisher)
    unpublished: list[RootEvents] = field(default_factory=list)
    """The events of the last pass, which are published while the next one is carried out."""
    publishing: Publishing | None = None
    """Where they are published beside the passes; None: a pass waits until they are."""


def choose(current: Pass[object], memory: Memory, at: float) -> tuple[Plan, ...]:
    """The plans with the operations to execute now; `at` is a time of a monotonic clock. Plans without any are left out.

    Also left out are roots whose plans are still carried out or that a later pass plans (`Portions`), operations that are suspended
    (`Rejections`) or held back (`Refusals`), and statuses that still change (`Debounce`).
    """
    memory.refusals.observe(by_root(current.world.roots), at)
    memory.rejections.forget(memory.refusals.take_ended())
    left = memory.carried.keys() | memory.portions.waiting
    planned = executable(current.world, current.planned, lambda operation: memory.rejections.suspends(operation, at), left)
    allowed = [memory.refusals.admitted(plan, at) for plan in planned if plan.operations]
    due = memory.debounce.due(_statuses(allowed), at)
    steady = (
        plan
        if _is_final(plan, current)
        else without(plan, lambda operation: isinstance(operation, WriteStatus) and operation.key not in due)
        for plan in allowed
    )
    return tuple(plan for plan in steady if plan.operations)


def _statuses(plans: Iterable[Plan]) -> list[WriteStatus]:
    return [operation for plan in plans for operation in plan.operations if isinstance(operation, WriteStatus)]


def _is_final(plan: Plan, current: Pass[object]) -> bool:
    """Whether only statuses are left to write, nothing is pending and nothing has changed: then the statuses will not change either."""
    return (
        plan.root not in current.changed and not plan.pending and all(isinstance(operation, WriteStatus) for operation in plan.operations)
    )


def has_unrecorded_warnings(current: Pass[object], memory: WriterMemory) -> bool:
    """Whether the pass found something that `execute` would record as a Warning event."""
    by_root = warnings_of(current.world, current.planned.plans)
    return any(not warnings <= memory.warnings for warnings in by_root.values())


def note_unexecuted(memory: Memory, current: Pass[object]) -> None:
    """Take note of a pass that is not executed: calls that failed and are no longer needed, because others have made them, are forgotten.

    Only of roots that this process has carried out a plan for: of others it does not know which calls fail.
    """
    if not current.planned.objections:
        memory.failed_calls.note([plan for plan in current.planned.plans if plan.root in memory.failed_calls.known], (), current.now)


async def execute(
    engine: Engine[C],
    memory: WriterMemory,
    current: Pass[object],
    chosen: Sequence[Plan],
    *,
    on_result: Callable[[Result], None] = ignore_result,
    may_write: Callable[[], bool] = always,
) -> list[Result]:
    """Apply the chosen plans, remember the results and record the events of the pass. Returns all results.

    A change that does not last has two results: DONE, and FAILED with the reason. The events of a pass that has done something are
    published while the next one is applied, which follows at once: nothing waits for them.
    """
    sending = sender(engine, memory, on_result=on_result, may_write=may_write)
    if chosen:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_publish, engine, memory, sending)
            sending.add(chosen, begin_for(current))
            await sending.finish()
    return await note_sent(engine, memory, current, sending, is_idle=not chosen)


async def begin(
    engine: Engine[C],
    memory: WriterMemory,
    current: Pass[object],
    chosen: Sequence[Plan],
    sending: Sending,
    urgent: Callable[[], Awaitable[None]] = anyio.sleep_forever,
) -> list[Result]:
    """Begin to send the chosen plans, and return the results once the short ones are done, after a few seconds, or when `urgent` returns.

    The others go on meanwhile: nothing else is planned for their roots (`Memory.carried`), and a pass for other roots may follow.
    """
    if chosen:
        roots = {plan.root for plan in chosen}
        memory.carried = memory.carried | {plan.root: plan for plan in current.planned.plans if plan.root in roots}
        seconds = begin_for(current)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_publish, engine, memory, sending)
            sending.add(chosen, seconds)
            async with cancelled_at(engine.clock, engine.clock.monotonic() + seconds + COMPLETION) as waiting:
                async with calling_when(urgent, waiting.cancel):
                    await sending.until(lambda: all(sent.is_long for sent in sending.plans))
    return await note_sent(engine, memory, current, sending, is_idle=not (chosen or sending.plans))


def sender(
    engine: Engine[C],
    memory: WriterMemory,
    *,
    on_result: Callable[[Result], None] = ignore_result,
    may_write: Callable[[], bool] = always,
) -> Sending:
    """What sends the plans of passes to the engine's provider."""

    def note(result: Result) -> None:
        memory.steps.count += 1
        memory.foreign.note_deleted(result)
        on_result(result)

    return Sending(
        engine.provider,
        engine.clock,
        concurrency=engine.concurrency or MOST,
        call_limit=memory.call_limit,
        on_call=memory.foreign.note_call,
        on_result=note,
        may_write=may_write,
        refusals=memory.refusals,
    )


def begin_for(current: Pass[object]) -> float:
    """For how many seconds the plans of a pass are begun."""
    return max(BEGINNING_TIME, BEGINNING * current.planning)


async def note_sent(
    engine: Engine[C], memory: WriterMemory, current: Pass[object], sending: Sending, *, is_idle: bool = False
) -> list[Result]:
    """Remember what was sent since this was called last, and record its events. Returns the results.

    What failed counts once its plan has ended. `current` is the last pass; `is_idle`: whether it has nothing to do.
    """
    sent, ended = sending.take_results(), sending.take_ended()
    results = [result for _, result in sent]
    reverted = memory.rejections.note(results, engine.clock.monotonic())
    memory.rejections.forget(memory.refusals.take_ended())
    plan_of = {id(result.operation): each for each, result in sent} if reverted else {}
    for result in reverted:
        plan_of[id(result.operation)].results.append(result)
        results.append(result)
        sending.on_result(result)
    tried = _tried(sent)
    memory.debounce.written(result.operation.key for result in results)
    memory.foreign.note(tried, results)
    memory.namespaces.note(results, current.world.roots)
    _note_failed_calls(engine, memory, current, sending, ended)
    by_root = warnings_of(current.world, current.planned.plans)
    warnings = new_warnings(by_root, memory.warnings)
    memory.warnings = frozenset().union(*by_root.values())
    for each in memory.refusals.take_unreported():
        if (warning := _held_back(each, current, (*sending.plans, *ended))) is not None:
            warnings[each.root] = [*warnings.get(each.root, ()), warning]
    memory.unpublished += events_by_root(current.world, tried, warnings, results, engine.events_of)
    if not any(result.outcome is Outcome.DONE for result in results):
        await _publish(engine, memory, sending, flush=is_idle)
    return results


def _held_back(held: HeldBack, current: Pass[object], sent: Iterable[SentPlan]) -> RootWarning | None:
    """The warning that calls of a root are held back; None if the root is gone. `sent`: the plans that were sent lately."""
    observed = by_root(current.world.roots).get(held.root)
    if observed is None or not observed.root.uid:
        return None
    planned = [operation for plan in current.planned.plans if plan.root == held.root for operation in plan.operations]
    done = {result.operation.key for each in sent for result in each.results if result.outcome is Outcome.DONE}
    waiting = sum(sort_of(operation) in held.sorts and operation.key not in done for operation in planned)
    text = f"calls held back ({held.verb} {held.kind}): {waiting}, because the API server refuses such calls: {held.error}"
    return RootWarning(held.root, observed.root.uid, observed.root.generation, text, HELD_BACK)


def _tried(sent: Iterable[tuple[SentPlan, Result]]) -> list[Plan]:
    """The plans of these results, with the operations that have one."""
    operations: dict[ResourceId, list[Operation]] = {}
    for each, result in sent:
        operations.setdefault(each.plan.root, []).append(result.operation)
    return [Plan(root, tuple(tried)) for root, tried in operations.items()]


def _note_failed_calls(engine: Engine[C], memory: WriterMemory, current: Pass[object], sending: Sending, ended: Sequence[SentPlan]) -> None:
    """Take note of the calls that failed, of plans that have ended and of those of which nothing was to be sent."""
    carried = {each.plan.root for each in sending.plans}
    memory.carried = {root: plan for root, plan in memory.carried.items() if root in carried}
    if current.planned.objections:
        return
    incomplete = {
        blueprint.kind.name
        for blueprint in engine.blueprints
        if incomplete_kinds(blueprint, current.world.incomplete, engine.configuration)
    }
    results = [result for each in ended for result in each.results]
    left = carried.union(memory.portions.waiting, (each.plan.root for each in ended if not each.results))
    memory.failed_calls.note(current.planned.plans, results, engine.clock.now(), incomplete, left=left)


async def _publish(engine: Engine[C], memory: WriterMemory, sending: Sending, *, flush: bool = False) -> None:
    """Publish the events that are not published yet, or let it be done beside the passes."""
    if memory.publishing is not None:
        memory.publishing.ask(flush=flush)
    else:
        await publish(engine, memory, sending, flush=flush)


async def publish(engine: Engine[C], memory: WriterMemory, sending: Sending, *, flush: bool) -> None:
    """Publish the events that are not published yet, if `sending` may write. `flush`: also what waits to be added up with others."""
    (events, memory.unpublished), may_write = (memory.unpublished, []), sending.may_write
    engine.on_events(await memory.events.publish(engine.provider, engine.clock, events, engine.log, flush=flush, may_write=may_write))
