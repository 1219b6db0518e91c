"""Overrides: what a graph says of Grove's own fields: topology, the least number of replicas, and overrides by a provider's fields."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from engine.paths import get
from engine.resource import Body, Path
from resources.base import kinds
from resources.base.fields import mapping
from resources.dynamo.model.graph import GraphService, InferenceGraph, Role
from resources.schema.dynamo_parts import GraphRole, ProviderOverride

PROVIDER_VERSION: Final = kinds.PODCLIQUESET.api_version
CONSTRAINT: Final = "topologyConstraint"
OF_SET: Final = ("PodCliqueSet", (("spec", "template", CONSTRAINT),))
OF_CLIQUE: Final = ("PodCliqueTemplateSpec", ((CONSTRAINT,), ("spec", "minAvailable")))
OF_GROUP: Final = ("PodCliqueScalingGroupConfig", ((CONSTRAINT,), ("minAvailable",)))
OF_ROLE: Final = ("PodCliqueTemplateSpec", ((CONSTRAINT,),))
"""The target of an override at each place -> the paths that it may have."""


def override_of(service: GraphService) -> tuple[str, tuple[Path, ...]]:
    """The target and the paths that an override of a service may have."""
    return OF_GROUP if service.is_multinode else OF_CLIQUE


def foreign_paths(value: Any, allowed: tuple[Path, ...], path: Path = ()) -> Iterator[Path]:
    """The paths in an override that are not allowed, the outermost ones."""
    if path in allowed:
        return
    if not any(known[: len(path)] == path for known in allowed) or not isinstance(value, Mapping):
        yield path
        return
    for key, below in value.items():
        yield from foreign_paths(below, allowed, (*path, str(key)))


def min_available(service: GraphService) -> int:
    """The least number of replicas that counts as available, of a service on Grove; 1 if nothing says it."""
    given = _overridden(service.spec.provider_override, ("minAvailable",) if service.is_multinode else ("spec", "minAvailable"))
    number = service.spec.min_available if given is None else given
    return number if isinstance(number, int) and not isinstance(number, bool) else 1


def set_constraint(graph: InferenceGraph) -> Body:
    """The field `topologyConstraint` of the template of the set; empty if it has none."""
    if (given := _overridden(graph.spec.provider_override, ("spec", "template", CONSTRAINT))) is not None:
        return {CONSTRAINT: given}
    topology = graph.spec.topology_constraint
    return _constraint(topology.cluster_topology_name, topology.pack_domain) if topology is not None and topology.pack_domain else {}


def service_constraint(graph: InferenceGraph, service: GraphService) -> Body:
    """The field `topologyConstraint` of the scaling group of a service or, on one node, of its clique; empty if it has none."""
    if (given := _overridden(service.spec.provider_override, (CONSTRAINT,))) is not None:
        return {CONSTRAINT: given}
    topology, own = graph.spec.topology_constraint, service.spec.topology_constraint
    return _constraint(topology.cluster_topology_name, own.pack_domain) if topology is not None and own is not None else {}


def role_constraint(service: GraphService, role: Role) -> Body:
    """The field `topologyConstraint` of the clique of a role of a service on several nodes; empty if it has none."""
    entry = role_of(service, role)
    given = _overridden(entry.provider_override, (CONSTRAINT,)) if entry is not None else None
    return {CONSTRAINT: given} if given is not None else {}


def is_constrained(graph: InferenceGraph) -> bool:
    """Whether anything of a graph has a topology constraint."""
    of_services = (service_constraint(graph, service) for service in graph.services)
    of_roles = (role_constraint(service, role) for service in graph.services for role in service.roles)
    return bool(set_constraint(graph)) or any(of_services) or any(of_roles)


def role_of(service: GraphService, role: Role) -> GraphRole | None:
    """The entry of a role in `roles`."""
    return next((entry for entry in service.spec.roles if entry.name == role), None)


def _overridden(override: ProviderOverride | None, path: Path) -> Any:
    return get(mapping(override.value), path) if override is not None else None


def _constraint(topology: str, domain: str) -> Body:
    return {CONSTRAINT: {"topologyName": topology, "pack": {"required": domain}}}
