"""Quota requirements: new pods whose containers do not say how much they ask for of what a ResourceQuota limits are refused."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from engine.forecast.forecast import Forecast
from engine.ids import ResourceId
from engine.observed import Live
from engine.operation import Create
from resources.base import kinds
from resources.base.fields import mapping, mappings
from resources.cluster_model.pods import is_component, templates_of
from resources.cluster_model.quota_scopes import is_in_scopes, scopes_of
from resources.cluster_model.quotas import canonical, defaulted_spec
from resources.placement.cluster_room import CONTAINERS, NO_DEFAULTS, Defaults

REQUIRED: Final = frozenset(f"{kind}.{what}" for kind in ("requests", "limits") for what in ("cpu", "memory"))
"""What every container has to say where a quota limits it."""
Unsaid = tuple[ResourceId, ResourceId, str]
"""A root, a ResourceQuota, and what containers of its new pods do not say, as a clause."""


def unsaid(quotas: Iterable[Live], forecast: Forecast, defaults: Defaults = NO_DEFAULTS) -> Iterator[Unsaid]:
    """What the API server refuses new pods for, each once for a root and a quota."""
    pods = list(_new_pods(forecast, defaults))
    for quota in quotas:
        scopes, hard = scopes_of(mapping(quota.body.get("spec"))), mapping(mapping(quota.body.get("status")).get("hard"))
        required = REQUIRED.intersection(map(canonical, map(str, hard)))
        if scopes is None or not required:
            continue
        lacking: dict[ResourceId, str] = {}
        for root, namespace, spec in pods:
            if namespace == quota.id.namespace and root not in lacking and is_in_scopes(spec, scopes) and (why := _lacks(spec, required)):
                lacking[root] = why
        yield from ((root, quota.id, why) for root, why in lacking.items())


def _new_pods(forecast: Forecast, defaults: Defaults) -> Iterator[tuple[ResourceId, str, Mapping[str, Any]]]:
    """The root, the namespace and the spec of each kind of pods that is created."""
    for step in forecast.passes:
        for root, operation in ((root, each) for root, listed in step.operations.items() for each in listed):
            id = operation.id
            if not isinstance(operation, Create) or not (is_component(id) or (id.kind == kinds.POD.name and not id.group)):
                continue
            spec = defaulted_spec(id, mapping(operation.manifest.get("spec")), defaults)
            specs = (
                (mapping(template.get("spec")) for count, template in templates_of(spec).values() if count) if is_component(id) else (spec,)
            )
            yield from ((root, id.namespace, each) for each in specs)


def _lacks(spec: Mapping[str, Any], required: frozenset[str]) -> str:
    """Which container does not say what, as a clause; empty if all say everything. What is said of the pod as a whole is enough."""
    left = required - _said(spec)
    for container in (each for field in CONTAINERS for each in mappings(spec.get(field))):
        if lacking := sorted(left - _said(container)):
            return f"container {container.get('name')} has no {' and no '.join(lacking)}"
    return ""


def _said(holder: Mapping[str, Any]) -> frozenset[str]:
    resources = mapping(holder.get("resources"))
    limits, requests = mapping(resources.get("limits")), mapping(resources.get("requests"))
    return frozenset((*(f"limits.{what}" for what in limits), *(f"requests.{what}" for what in (*limits, *requests))))
