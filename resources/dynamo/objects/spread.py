"""Spread: which services of a graph have the pods of each replica on different nodes, as `nodeCount` promises, and the notes about it."""

from collections.abc import Iterator

from engine.report.printable import counted
from resources.base.fields import mapping
from resources.base.labels import SPREAD
from resources.dynamo.model.graph import GraphService, InferenceGraph

DISABLED = "disabled"
"""The value of `SPREAD` with which several pods of a replica may run on one node."""
OF_PODS = ("podAffinity", "podAntiAffinity")
"""The fields of an affinity that say where pods are relative to others."""


def is_spread(graph: InferenceGraph, service: GraphService) -> bool:
    """Whether the pods of each replica must be on different nodes.

    Not where the service has an annotation against it, and not where its own affinity says how its pods are placed relative to others.
    """
    if not graph.is_recorded or not service.is_multinode:
        return False
    of_roles = [service.of(role) for role in service.roles]
    if any(each.spec.annotations.get(SPREAD) == DISABLED for each in of_roles):
        return False
    affinities = (mapping(each.extra_pod_spec.get("affinity")) for each in of_roles)
    return not any(affinity.get(field) for affinity in affinities for field in OF_PODS)


def spread_notes(graph: InferenceGraph) -> Iterator[str]:
    """The nodes that each spread service needs."""
    for service in graph.services:
        if service.replicas > 0 and is_spread(graph, service):
            gpus = f" with {counted(service.gpus, 'GPU')} each" if service.gpus else ""
            yield (
                f"spec.services[{service.name}]: the {service.nodes} pods of a replica run on {service.nodes} different nodes{gpus}; "
                f'where several may share a node, annotate the service with {SPREAD}: "{DISABLED}"'
            )
