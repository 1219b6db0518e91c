"""Execution: carries out what a pass has planned: chooses operations, applies them, remembers their results, records its events."""

from collections.abc import Callable, Iterable, Sequence

import anyio
from msgspec import field

from engine.blueprint import C, incomplete_kinds
from engine.event import RootEvents, RootWarning
from engine.ids import ResourceId
from engine.operation import Outcome, Result, WriteStatus
from engine.plan import Plan, without
from engine.runtime.apply import BEGINNING_TIME, apply, ignore_result
from engine.runtime.call_limit import MOST, CallLimit
from engine.runtime.calls import always
from engine.runtime.event_publishing import EventPublisher
from engine.runtime.event_recording import events_by_root, new_warnings, warnings_of
from engine.runtime.memory import Memory
from engine.runtime.passes import Engine, Pass
from engine.tick import executable

BEGINNING = 3.0
"""How many times as long as planning took plans are begun, if that is longer than `BEGINNING_TIME`."""


class WriterMemory(Memory, eq=False):
    """What a process that carries out passes remembers besides: how fast the server takes calls, and the events of the last pass."""

    call_limit: CallLimit = field(default_factory=CallLimit)
    warnings: frozenset[RootWarning] = frozenset()
    """The warnings of the last pass; each has been recorded as an event."""
    events: EventPublisher = field(default_factory=EventPublisher)
    unpublished: list[RootEvents] = field(default_factory=list)
    """The events of the last pass, which are published while the next one is carried out."""


def choose(current: Pass[object], memory: Memory, at: float) -> tuple[Plan, ...]:
    """The plans with the operations to execute now; `at` is a time of a monotonic clock. Plans without any are left out.

    Also left out are operations that are suspended (`Rejections`), and statuses that still change (`Debounce`).
    """
    planned = executable(current.world, current.planned, lambda operation: memory.rejections.suspends(operation, at))
    allowed = [plan for plan in planned if plan.operations]
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
    """Take note of a pass that is not executed: calls that failed and are no longer needed, because somebody else made them, are forgotten.

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
    results: list[Result] = []

    def note(result: Result) -> None:
        memory.steps.count += 1
        on_result(result)

    if chosen:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_publish, engine, memory)
            results = await apply(
                chosen,
                engine.provider,
                engine.clock,
                concurrency=engine.concurrency or MOST,
                call_limit=memory.call_limit,
                begin_for=max(BEGINNING_TIME, BEGINNING * current.planning),
                on_result=note,
                may_write=may_write,
            )
    memory.debounce.written(result.operation.key for result in results)
    for reverted in memory.rejections.note(results, engine.clock.monotonic()):
        results.append(reverted)
        on_result(reverted)
    memory.foreign.note(chosen, results)
    memory.namespaces.note(results, [observed.root for observed in current.world.roots])
    if not current.planned.objections:
        incomplete = {
            blueprint.kind.name
            for blueprint in engine.blueprints
            if incomplete_kinds(blueprint, current.world.incomplete, engine.configuration)
        }
        memory.failed_calls.note(current.planned.plans, results, engine.clock.now(), incomplete, left=_left(chosen, results))
    by_root = warnings_of(current.world, current.planned.plans)
    warnings = new_warnings(by_root, memory.warnings)
    memory.warnings = frozenset().union(*by_root.values())
    memory.unpublished += events_by_root(current.world, chosen, warnings, results, engine.events_of)
    if not any(result.outcome is Outcome.DONE for result in results):
        await _publish(engine, memory, flush=not chosen)
    return results


async def _publish(engine: Engine[C], memory: WriterMemory, *, flush: bool = False) -> None:
    """Publish the events that are not published yet. `flush`: also what waits to be added up with others."""
    events, memory.unpublished = memory.unpublished, []
    engine.on_events(await memory.events.publish(engine.provider, engine.clock, events, engine.log, flush=flush))


def _left(plans: Sequence[Plan], results: Sequence[Result]) -> frozenset[ResourceId]:
    """The roots of the plans of which nothing was tried: they are left for the next pass."""
    tried = {id(result.operation) for result in results}
    return frozenset(plan.root for plan in plans if not any(id(operation) in tried for operation in plan.operations))
