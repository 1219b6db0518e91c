"""Event recording: the warnings of a pass that are new, and writing events to the cluster."""

from collections.abc import Callable, Iterator, Sequence

import anyio

from engine.errors import ClusterError
from engine.event import Event, RootWarning
from engine.observed import Observed, World
from engine.plan import Plan
from engine.report.model import error_text
from engine.result import Result
from engine.runtime.memory import Memory
from engine.runtime.provider import Provider

TIME_LIMIT = 5.0
"""Seconds for writing the events of one pass; events that are not written by then are dropped."""

CONCURRENCY = 4
"""How many events are written at the same time."""

INTERNAL_ERROR = "InternalError"
"""The reason of the event for a root whose plan could not be computed because of a defect of the engine."""

EventBuilder = Callable[[Sequence[RootWarning], Sequence[Result]], tuple[Event, ...]]
"""Returns the events of a pass, given its new warnings and its results."""


def no_events(warnings: Sequence[RootWarning], results: Sequence[Result]) -> tuple[Event, ...]:
    """The default `EventBuilder`: no events."""
    return ()


def warnings_of(world: World, plans: Sequence[Plan]) -> frozenset[RootWarning]:
    """The warnings of a pass. A root that does not exist yet has none: an event is about an object with a uid."""
    roots = {observed.root.id: observed for observed in world.roots if observed.root.uid}
    return frozenset(warning for plan in plans if plan.root in roots for warning in _warnings(roots[plan.root], plan))


def new_warnings(world: World, plans: Sequence[Plan], memory: Memory) -> list[RootWarning]:
    """The warnings that the last pass did not have, sorted; a warning is new again when its root was edited and still has it."""
    warnings = warnings_of(world, plans)
    new, memory.warnings = sorted(warnings - memory.warnings), warnings
    return new


def _warnings(observed: Observed, plan: Plan) -> Iterator[RootWarning]:
    """The problems, the alarms and the internal error of a plan.

    Without the problems of a manifest that a user proposes: they are mistakes in that manifest, not in the root, and the user sees them.
    """
    root = observed.root
    for problem in () if _is_proposed_by_user(observed) else plan.problems:
        yield RootWarning(root.id, root.uid, root.generation, problem)
    for alarm in plan.alarms:
        about = (observed.find(alarm.about) if alarm.about is not None else None) or root
        yield RootWarning(about.id, about.uid, root.generation, alarm.text, alarm.reason)
    if plan.error is not None:
        yield RootWarning(root.id, root.uid, root.generation, error_text(plan.error), INTERNAL_ERROR)


def _is_proposed_by_user(observed: Observed) -> bool:
    """Whether the root is planned as a user's manifest proposes it; another root's proposal is no such manifest."""
    return observed.proposal is not None and observed.proposer is None


async def record_events(provider: Provider, events: Sequence[Event]) -> None:
    """Write the events, within `TIME_LIMIT` seconds. An event that cannot be written is dropped: events are for people only."""
    limit = anyio.CapacityLimiter(CONCURRENCY)

    async def record(event: Event) -> None:
        async with limit:
            try:
                await provider.record(event)
            except ClusterError:
                return

    with anyio.move_on_after(TIME_LIMIT):
        async with anyio.create_task_group() as tasks:
            for event in events:
                tasks.start_soon(record, event)
