"""Components: the objects of a graph on the component path: LeaderWorkerSets with PodGroups for multinode services, else Deployments."""

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Final

from msgspec.structs import replace

from engine.observed import Slice
from engine.paths import get
from engine.reason import Reason
from engine.resource import Hold, Resource, Want, held
from resources.base import kinds
from resources.dynamo.model.graph import KAI_QUEUE, GraphService, InferenceGraph, Orchestrator, Role, about_service
from resources.dynamo.model.names import instance
from resources.dynamo.objects.component_names import instance_name, name_fault
from resources.dynamo.objects.component_service import component_services, missing_public_service, service_names
from resources.dynamo.objects.deployment import deployment
from resources.dynamo.objects.group_scheduler import BY_VOLCANO, GroupScheduler, GroupSchedulers
from resources.dynamo.objects.labels import pod_annotations
from resources.dynamo.objects.leader_worker_set import GroupTemplates, group_templates, leader_worker_set
from resources.dynamo.objects.obsolete_components import is_kept_for_pods, obsolete_components
from resources.dynamo.objects.pod_group import pod_group
from resources.dynamo.objects.replica_limit import next_index
from resources.dynamo.objects.service import service_name
from resources.dynamo.pods.builder import PodFault, built_pod
from resources.ports.configuration import DynamoSettings

NVLINK: Final = {"grove.io/auto-mnnvl": "disabled", "nvidia.com/computedomain": "", "grove.io/mnnvl-group": "none"}
"""The annotations of graphs and services that ask for NVLink between nodes -> the value that asks for none."""
VOLCANO_FOR_ALL: Final[GroupSchedulers] = MappingProxyType({})
"""The group schedulers where nothing is known of the cluster."""


def component_resources(
    graph: InferenceGraph,
    settings: DynamoSettings,
    lives: Slice,
    blockers: Mapping[str, str],
    schedulers: GroupSchedulers = VOLCANO_FOR_ALL,
    *,
    was_ready: bool,
) -> list[Resource]:
    """The objects of all services, then the removal of live ones that no service needs any more.

    `lives` are the graph's objects. `blockers`: service -> why its pods must not be created yet; a workload that exists already is
    still updated. `schedulers`: those of services on several nodes, where it is not Volcano. `was_ready`: whether the graph was ready as it
    is specified now: then no service has been scaled since.
    """
    desired = [
        resource
        for service in graph.services
        for resource in _of_service(
            graph, service, settings, lives, blockers.get(service.name, ""), schedulers.get(service.name, BY_VOLCANO)
        )
    ]
    if was_ready:
        desired = [replace(resource, reason=None) if resource.reason is Reason.SCALED_OUT else resource for resource in desired]
    return [*desired, *obsolete_components(graph, lives, {resource.id for resource in desired})]


def component_notes(graph: InferenceGraph, schedulers: GroupSchedulers = VOLCANO_FOR_ALL) -> tuple[str, ...]:
    """What the author of a graph should know on this path: what it asks for and does not get, and names that are shortened."""
    named = ((service, schedulers.get(service.name, BY_VOLCANO)) for service in graph.services)
    return (*_graph_notes(graph), *(note for service, scheduler in named for note in _service_notes(graph, service, scheduler)))


def component_warnings(graph: InferenceGraph, settings: DynamoSettings) -> tuple[str, ...]:
    """What the author of a graph should know about its pods on this path, each text once; nothing about pods that cannot be built."""
    texts = (text for service in graph.services for role in service.roles for text in _warnings(graph, service, role, settings))
    return tuple(dict.fromkeys(texts))


def _warnings(graph: InferenceGraph, service: GraphService, role: Role, settings: DynamoSettings) -> tuple[str, ...]:
    try:
        return built_pod(graph, service, role, Orchestrator.COMPONENTS, settings).warnings
    except PodFault:
        return ()


def _of_service(
    graph: InferenceGraph, service: GraphService, settings: DynamoSettings, lives: Slice, blocker: str, scheduler: GroupScheduler
) -> Iterator[Want | Hold]:
    if service.is_multinode:
        yield from _multinode(graph, service, settings, lives, blocker, scheduler)
    else:
        yield from _single_node(graph, service, settings, lives, blocker)


def _multinode(
    graph: InferenceGraph, service: GraphService, settings: DynamoSettings, lives: Slice, blocker: str, scheduler: GroupScheduler
) -> Iterator[Want | Hold]:
    try:
        templates, fault = group_templates(graph, service, settings, scheduler), ""
    except PodFault as error:
        templates, fault = None, str(error)
    for index in range(service.replicas):
        yield from _instance(graph, service, index, templates, lives, fault or blocker, scheduler)
    yield from component_services(graph, service, templates.leader if templates else {})


def _instance(
    graph: InferenceGraph,
    service: GraphService,
    index: int,
    templates: GroupTemplates | None,
    lives: Slice,
    blocker: str,
    scheduler: GroupScheduler,
) -> Iterator[Want | Hold]:
    """The PodGroup and the LeaderWorkerSet of one replica.

    A gang without its pods would wait in Volcano's queue for nothing, so both are held together, each unless it exists. Without
    templates a live LeaderWorkerSet is held as well. New pods would keep a PodGroup that is being deleted: they wait until it is gone.
    """
    name = instance_name(graph, service, index)
    id = kinds.LEADER_WORKER_SET.id(graph.namespace, name)
    priority = str(templates.leader["spec"].get("priorityClassName") or "") if templates else ""
    gang = replace(pod_group(graph, service, index, scheduler, priority), reason=_why_absent(service, index, lives))
    live, live_gang = lives.objects.get(id), lives.objects.get(gang.id)
    reason = _name_fault(graph, name) or blocker
    is_held = bool(reason) and live is None
    yield held(gang, reason, blocked=True) if is_held and live_gang is None else gang
    if templates is None:
        yield Hold(id, reason, (graph.owner,), blocked=True)
    else:
        workload = replace(leader_worker_set(graph, service, index, templates, live, scheduler), reason=gang.reason)
        if not is_held and live is None and live_gang is not None and is_kept_for_pods(live_gang):
            yield held(workload, f"PodGroup {name} is being deleted; it is created again once its pods are gone")
        else:
            yield held(workload, reason, blocked=True) if is_held else workload


def _why_absent(service: GraphService, index: int, lives: Slice) -> Reason | None:
    """Why a replica of a service has no objects; None if nothing explains it."""
    next = next_index(service, lives)
    return Reason.SCALED_OUT if next and index >= next else None


def _name_fault(graph: InferenceGraph, name: str) -> str:
    """Why no LeaderWorkerSet can have this name; empty if it can. It makes a headless Service of its own name."""
    if name in service_names(graph):
        return f"the name {name!r} is that of another service's Service; rename that service"
    return name_fault(name)


def _single_node(
    graph: InferenceGraph, service: GraphService, settings: DynamoSettings, lives: Slice, blocker: str
) -> Iterator[Want | Hold]:
    id = kinds.DEPLOYMENT.id(graph.namespace, service_name(graph, service))
    live = lives.objects.get(id)
    try:
        workload: Want | Hold = deployment(graph, service, settings, live)
    except PodFault as fault:
        workload = Hold(id, str(fault), (graph.owner,), blocked=True)
    yield held(workload, blocker, blocked=True) if blocker and live is None else workload
    yield from component_services(graph, service, get(workload.body, ("spec", "template"), {}))


def _graph_notes(graph: InferenceGraph) -> Iterator[str]:
    given = [graph.annotations, *(pod_annotations(service, role) for service in graph.services for role in service.roles)]
    if asking := [key for key, without in NVLINK.items() if any(annotations.get(key, without) != without for annotations in given)]:
        yield (
            f"{', '.join(asking)}: multi-node NVLink is only provided on the Grove path; "
            "without Grove, claim a ComputeDomain in spec.services[].extraPodSpec.resourceClaims"
        )
    if graph.annotations.get(KAI_QUEUE):
        yield f"{KAI_QUEUE}: has no effect without Grove: Volcano schedules services on several nodes"


def _service_notes(graph: InferenceGraph, service: GraphService, by: GroupScheduler) -> Iterator[str]:
    field = f"spec.services[{service.name}]"
    if missing := missing_public_service(graph, service):
        text = f"{field}: no second Service is made for this frontend: its name {missing} is that of another service's Service"
        yield about_service(service, f"{text}; rename that service")
    if not service.is_multinode:
        return
    scheduler = service.scheduler
    if scheduler and scheduler != by.name and graph.is_recorded:
        text = f"{field}.extraPodSpec.schedulerName: {scheduler} schedules the pods one by one: only {by.name} knows their gang"
        yield about_service(service, text, "extraPodSpec", "schedulerName")
    elif scheduler and scheduler != by.name:
        text = f"{field}.extraPodSpec.schedulerName: {scheduler} is replaced by {by.name}, which schedules the gangs of LeaderWorkerSets"
        yield about_service(service, text, "extraPodSpec", "schedulerName")
    if service.replicas > 0 and (name := instance_name(graph, service, 0)) != (full := instance(graph, service, 0)):
        text = f"{field}: names of LeaderWorkerSets are shortened to fit pod labels: {full} becomes {name}"
        yield about_service(service, text)
