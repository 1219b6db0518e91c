"""Notes: remarks about roots, added to the plans of a pass."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from engine.ids import ResourceId
from engine.plan import Plan
from engine.runtime.passes import Pass


def with_notes(result: Pass, notes: Mapping[ResourceId, Sequence[str]]) -> Pass:
    """The pass with these notes about its roots; one about which nothing was planned gets a plan without operations."""
    if not notes:
        return result
    plans = {root: Plan(root) for root in notes} | {plan.root: plan for plan in result.planned.plans}
    noted = tuple(replace(plan, notes=(*plan.notes, *notes.get(root, ()))) for root, plan in sorted(plans.items()))
    return replace(result, planned=replace(result.planned, plans=noted))
