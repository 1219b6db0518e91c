"""Surroundings: what else in the cluster keeps a plan from being carried out: namespaces that are missing, and quotas."""

from collections.abc import Collection, Mapping
from datetime import datetime

from msgspec.structs import replace

from engine.errors import ClusterError
from engine.forecast.forecast import Forecast
from engine.ids import ResourceId
from engine.intent import Intent
from engine.observed import Live
from engine.operation import Operation
from engine.plan import Plan, Wait
from engine.proposal import proposed_root
from engine.report.printable import printable
from engine.runtime.passes import Pass
from engine.runtime.provider import Provider, Scope
from engine.verb import Verb
from enginectl.actions.notes import blocked_at_the_end, with_notes, with_waits
from resources.base import kinds
from resources.forecast.quotas import by_root, shortages, text_of


async def blocked_by_namespaces(provider: Provider, result: Pass) -> Mapping[ResourceId, Plan]:
    """Root -> its plan without what creates something, for each root in whose namespace nothing can be created.

    A namespace that must not be read counts as usable.
    """
    creating = [plan for plan in result.planned.plans if plan.root.namespace and any(map(is_create, plan.operations))]
    unusable: dict[str, Wait] = {}
    for namespace in sorted({plan.root.namespace for plan in creating}):
        if why := await _unusable(provider, namespace):
            unusable[namespace] = Wait(kinds.NAMESPACE.id("", namespace), why, blocked=True)
    return {plan.root: _blocked(plan, unusable[plan.root.namespace]) for plan in creating if plan.root.namespace in unusable}


async def _unusable(provider: Provider, namespace: str) -> str:
    """Why nothing can be created in a namespace, and what to do; empty if that is not known."""
    try:
        live = await provider.get(kinds.NAMESPACE.id("", namespace))
    except ClusterError:
        return ""
    if live is None:
        return f"it does not exist; do: kubectl create namespace {printable(namespace)}"
    return "it is being deleted; do: wait until it is gone, and create it again" if live.deleting_since is not None else ""


def is_create(operation: Operation) -> bool:
    """Whether the operation creates its object."""
    return operation.verb is Verb.CREATE


def _blocked(plan: Plan, wait: Wait) -> Plan:
    remaining = tuple(operation for operation in plan.operations if not is_create(operation))
    return replace(plan, operations=remaining, deferred=(wait, *plan.deferred))


def with_plans(result: Pass, plans: Mapping[ResourceId, Plan]) -> Pass:
    """The pass with these plans in place of those that it has for the same roots."""
    if not plans:
        return result
    return replace(result, planned=replace(result.planned, plans=tuple(plans.get(plan.root, plan) for plan in result.planned.plans)))


def without_roots(result: Pass, intent: Intent, roots: Collection[ResourceId]) -> tuple[Pass, Intent]:
    """The pass and the intent without these roots: nothing follows for them until somebody acts."""
    if not roots:
        return result, intent
    world = replace(result.world, roots=tuple(observed for observed in result.world.roots if observed.root.id not in roots))
    planned = replace(result.planned, plans=tuple(plan for plan in result.planned.plans if plan.root not in roots))
    manifests = tuple(body for body in intent.manifests if proposed_root(body).id not in roots)
    return replace(result, world=world, planned=planned), replace(intent, manifests=manifests)


def ending_with(forecast: Forecast | None, began: datetime, plans: Mapping[ResourceId, Plan]) -> Forecast | None:
    """The forecast in which these plans are the last ones of their roots."""
    if not plans:
        return forecast
    first = forecast or Forecast(began, (), True, {}, {}, frozenset())
    return replace(first, plans={**first.plans, **plans})


async def quotas_in(provider: Provider, namespaces: Collection[str]) -> tuple[Live, ...]:
    """The ResourceQuotas of the namespaces; none if they could not be listed, which needs a permission that is not required otherwise."""
    if not namespaces:
        return ()
    try:
        observation = await provider.observe(Scope((), (), "", tuple(sorted(namespaces)), (kinds.RESOURCE_QUOTA,)))
    except ClusterError:
        return ()
    return tuple(live for live in observation.references if live.id.kind == kinds.RESOURCE_QUOTA.name)


async def with_quotas(result: Pass, forecast: Forecast | None, provider: Provider) -> tuple[Pass, Forecast | None]:
    """The pass and the forecast with what quotas do not allow: blocked if that is so to the end, a note if it is so for a time."""
    if forecast is None:
        return result, forecast
    created = {operation.id.namespace for operation in forecast.operations() if is_create(operation) and operation.id.namespace}
    short = by_root(tuple(shortages(await quotas_in(provider, created), forecast, result.world)))
    if not short:
        return result, forecast
    notes: dict[ResourceId, list[str]] = {}
    waits: dict[ResourceId, list[Wait]] = {}
    for root, listed in short.items():
        for shortage in listed:
            if shortage.lasting:
                waits.setdefault(root, []).append(Wait(shortage.quota, text_of(shortage), blocked=True))
            else:
                notes.setdefault(root, []).append(f"ResourceQuota {shortage.quota.name}: {text_of(shortage)}")
    return with_waits(with_notes(result, notes), waits), blocked_at_the_end(forecast, waits)
