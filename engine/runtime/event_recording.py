"""Event recording: the warnings of a pass that are new, and its events, root by root."""

from collections.abc import Iterator, Mapping, Sequence

from engine.event import EventBuilder, RootEvents, RootWarning
from engine.ids import ResourceId
from engine.observed import Observed, World
from engine.operation import Result
from engine.plan import Plan, noteworthy
from engine.report.model import error_text

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
    for problem in () if _is_proposed_by_user(observed) else plan.problems:
        yield RootWarning(root.id, root.uid, root.generation, problem)
    for alarm in plan.alarms:
        about = (observed.find(alarm.about) if alarm.about is not None else None) or root
        yield RootWarning(about.id, about.uid, root.generation, alarm.text, alarm.reason, alarm.counted_apart)
    if plan.error is not None:
        yield RootWarning(root.id, root.uid, root.generation, error_text(plan.error), INTERNAL_ERROR)


def _is_proposed_by_user(observed: Observed) -> bool:
    """Whether the root is planned as a user's manifest proposes it; another root's proposal is no such manifest."""
    return observed.proposal is not None and observed.proposer is None


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
