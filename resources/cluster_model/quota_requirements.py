"""Quota requirements: new pods whose containers do not say how much they ask for of what a ResourceQuota limits are refused."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from engine.canonical import digest
from engine.forecast.forecast import Forecast
from engine.ids import ResourceId
from engine.observed import Live, World
from engine.operation import Create, Patch
from engine.paths import merge_patch
from resources.base import kinds, labels
from resources.base.fields import mapping, mappings
from resources.cluster_model.component_pods import replaces
from resources.cluster_model.pod_level import pod_level
from resources.cluster_model.pods import is_component, templates_of
from resources.cluster_model.quota_scopes import is_in_scopes, scopes_of
from resources.cluster_model.quotas import canonical, changed_in, defaulted_spec
from resources.placement.cluster_room import CONTAINERS, NO_DEFAULTS, Defaults

REQUIRED: Final = frozenset(f"{kind}.{what}" for kind in ("requests", "limits") for what in ("cpu", "memory"))
"""What every container has to say where a quota limits it."""
Likeness = tuple[object, str]
"""What pods of one clique, or of one template of a service, have in common, whatever their replica: see `likeness`."""
Unsaid = tuple[ResourceId, ResourceId, Likeness, str]
"""A root, a ResourceQuota, which of the root's new pods, and what their containers do not say, as a clause."""


def unsaid(quotas: Iterable[Live], forecast: Forecast, world: World, defaults: Defaults = NO_DEFAULTS) -> Iterator[Unsaid]:
    """What the API server refuses new pods for, each once for a quota and for pods of a root that are alike."""
    pods = [
        (root, namespace, pod, defaulted_spec(kinds.POD.id(namespace, ""), mapping(pod.get("spec")), defaults))
        for root, namespace, pod in _new_pods(forecast, world)
    ]
    for quota in quotas:
        scopes, hard = scopes_of(mapping(quota.body.get("spec"))), mapping(mapping(quota.body.get("status")).get("hard"))
        required = REQUIRED.intersection(map(canonical, map(str, hard)))
        if scopes is None or not required:
            continue
        lacking: dict[tuple[ResourceId, Likeness], str] = {}
        for root, namespace, pod, spec in pods:
            if namespace == quota.id.namespace and is_in_scopes(spec, scopes) and (why := _lacks(spec, required)):
                lacking.setdefault((root, likeness(pod)), why)
        yield from ((root, quota.id, which, why) for (root, which), why in lacking.items())


def likeness(pod: Mapping[str, Any]) -> Likeness:
    """What a pod, or the template of one, has in common with the others that one trial stands for, and with no more.

    A pod of a clique: the clique's name in the template, and the hash of the template. Another: what it says of its containers and
    resources, and its labels but for indices, which each LeaderWorkerSet of a service has of its own.
    """
    given = mapping(mapping(pod.get("metadata")).get("labels"))
    if name := given.get(labels.PODCLIQUE):
        in_group = labels.SCALING_GROUP in given
        owner, index = (labels.SCALING_GROUP, labels.GROUP_REPLICA_INDEX) if in_group else (labels.PART_OF, labels.REPLICA_INDEX)
        return str(name).removeprefix(f"{given.get(owner)}-{given.get(index)}-"), str(given.get(labels.TEMPLATE_HASH))
    spec = mapping(pod.get("spec"))
    shared = frozenset((key, value) for key, value in given.items() if not str(value).isdecimal())
    return shared, digest([spec.get(field) for field in (*CONTAINERS, "resources")])


def _new_pods(forecast: Forecast, world: World) -> Iterator[tuple[ResourceId, str, Mapping[str, Any]]]:
    """The root, the namespace and the manifest or template of each kind of pods that is created, also by components that are patched."""
    specs = {live.id: mapping(live.body.get("spec")) for live in changed_in(forecast, world) if is_component(live.id)}
    for step in forecast.passes:
        for root, operation in ((root, each) for root, listed in step.operations.items() for each in listed):
            id, earlier = operation.id, specs.get(operation.id, {})
            if isinstance(operation, Create):
                new, earlier = mapping(operation.manifest.get("spec")), {}
            elif isinstance(operation, Patch) and earlier:
                new = merge_patch(earlier, mapping(operation.patch.get("spec")))
            else:
                continue
            if is_component(id):
                specs[id] = new
                made = _made(earlier, new, replaced=not earlier or replaces(earlier, new))
                yield from ((root, id.namespace, each) for each in made)
            elif isinstance(operation, Create) and id.kind == kinds.POD.name and not id.group:
                yield root, id.namespace, operation.manifest


def _made(earlier: Mapping[str, Any], new: Mapping[str, Any], *, replaced: bool) -> Iterator[Mapping[str, Any]]:
    """The templates of the pods that a component gets: of all templates if it replaces its pods, else of those it has more of."""
    before = {} if replaced else {field: count for field, (count, _) in templates_of(earlier).items()}
    for field, (count, template) in templates_of(new).items():
        if count > before.get(field, 0):
            yield template


def _lacks(spec: Mapping[str, Any], required: frozenset[str]) -> str:
    """Which container does not say what, as a clause; empty if all say everything, or if the pod as a whole says anything."""
    if any(pod_level(spec)):
        return ""
    for container in (each for field in CONTAINERS for each in mappings(spec.get(field))):
        if lacking := sorted(required - _said(container)):
            return f"container {container.get('name')} has no {' and no '.join(lacking)}"
    return ""


def _said(holder: Mapping[str, Any]) -> frozenset[str]:
    resources = mapping(holder.get("resources"))
    limits, requests = mapping(resources.get("limits")), mapping(resources.get("requests"))
    return frozenset((*(f"limits.{what}" for what in limits), *(f"requests.{what}" for what in (*limits, *requests))))
