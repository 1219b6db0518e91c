"""Notes: remarks about roots, and what keeps them from being carried out, added to the plans of a pass and of a forecast."""

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from engine.forecast.forecast import Forecast
from engine.ids import ResourceId
from engine.plan import Plan, Wait
from engine.runtime.passes import Pass


def with_notes(result: Pass, notes: Mapping[ResourceId, Sequence[str]]) -> Pass:
    """The pass with these notes about its roots; those about roots that were not planned, as they are out of scope, are left out."""
    if not notes:
        return result
    noted = tuple(replace(plan, notes=(*plan.notes, *notes.get(plan.root, ()))) for plan in result.planned.plans)
    return replace(result, planned=replace(result.planned, plans=noted))


def with_waits(result: Pass, waits: Mapping[ResourceId, Sequence[Wait]]) -> Pass:
    """The pass in which these roots wait for this as well."""
    if not waits:
        return result
    return replace(result, planned=replace(result.planned, plans=tuple(_waiting(plan, waits) for plan in result.planned.plans)))


def blocked_at_the_end(forecast: Forecast, waits: Mapping[ResourceId, Sequence[Wait]]) -> Forecast:
    """The forecast at whose end these roots still wait for this."""
    return replace(forecast, plans={root: _waiting(plan, waits) for root, plan in forecast.plans.items()}) if waits else forecast


def _waiting(plan: Plan, waits: Mapping[ResourceId, Sequence[Wait]]) -> Plan:
    return replace(plan, deferred=(*plan.deferred, *waits[plan.root])) if plan.root in waits else plan
