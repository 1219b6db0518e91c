"""Component size: how many objects a graph without Grove asks for, and whether they have existed. Graphs are read as they are written."""

from collections.abc import Iterator, Mapping
from typing import Any

from engine.blueprint import Asked
from engine.observed import Observed
from engine.paths import get
from resources.base import kinds, names
from resources.base.fields import count, mapping
from resources.dynamo.model.graph import Orchestrator
from resources.dynamo.objects.pod_template import COMPONENT, INSTANCE
from resources.dynamo.objects.replica_limit import MOST_INSTANCES
from resources.dynamo.orchestrator import recorded_orchestrator
from resources.ports.configuration import ONLY
from resources.ports.graph_services import WrittenService, forbids_grove, services

GANGS = (kinds.LEADER_WORKER_SET.name, kinds.POD_GROUP.name)
"""The kinds of objects that each replica on several nodes has one of. All PodGroups have one name of a kind."""


def asked(observed: Observed) -> Asked:
    """The objects of a graph that runs without Grove; none of one with Grove, whose set asks for them."""
    if not _runs_on_components(observed):
        return Asked()
    every = tuple(_services_of(observed))
    instances = sum(service.replicas for service in every if service.is_multinode)
    return Asked(len(GANGS) * min(instances, MOST_INSTANCES) + sum(1 if service.is_multinode else 2 for service in every))


def have_existed(observed: Observed) -> bool:
    """Whether each service has had all its replicas, as far as the objects of the graph and its status show it."""
    next: dict[str, int] = {}
    for live in (live for kind in GANGS for live in observed.slice(ONLY).of(kind)):
        service = live.labels.get(COMPONENT, "")
        next[service] = max(next.get(service, 0), 1 + (names.index_in(live.labels.get(INSTANCE, "")) or 0))
    known = {live.labels.get(COMPONENT) for kind in (kinds.DEPLOYMENT, kinds.SERVICE) for live in observed.slice(ONLY).of(kind.name)}
    status = mapping(observed.root.body.get("status"))
    entries = {**mapping(status.get("services")), **mapping(status.get("components"))}
    return all(
        max(next.get(service.name, 0), count(mapping(entries.get(service.name)).get("replicas"))) >= service.replicas
        if service.is_multinode
        else service.name in known
        for service in _services_of(observed)
    )


def _runs_on_components(observed: Observed) -> bool:
    """Whether LeaderWorkerSets and Deployments run a graph, or will as far as it is known before it is read."""
    recorded = recorded_orchestrator(observed)
    if recorded is not None:
        return recorded is Orchestrator.COMPONENTS
    if kinds.PODCLIQUESET.key in observed.unserved:
        return True
    return forbids_grove(_body(observed)) and kinds.LEADER_WORKER_SET.key not in observed.unserved


def _services_of(observed: Observed) -> Iterator[WrittenService]:
    """The services of a graph, with the replicas of their scaling adapters."""
    scaled = {
        live.labels.get(COMPONENT, ""): count(get(live.body, ("spec", "replicas"), 0))
        for live in observed.slice(ONLY).of(kinds.SCALING_ADAPTER.name)
    }
    return services(_body(observed), {**scaled, **observed.replicas})


def _body(observed: Observed) -> Mapping[str, Any]:
    return observed.proposal or observed.root.body
