"""The PodCliqueSet of a graph on the Grove path: one replica, with cliques and scaling groups for its services."""

from collections.abc import Iterator, Sequence
from typing import Any, Final

from msgspec import Struct, field

from engine.duration import canonical, nanoseconds
from engine.memo import Memo
from engine.resource import Body
from resources.base import kinds
from resources.base.fields import manifest
from resources.base.labels import KAI_QUEUE, POD_FORM, SPREAD_GROUPS
from resources.dynamo.model.framework import Framework
from resources.dynamo.model.graph import GraphService, InferenceGraph, Orchestrator, Role, about_service
from resources.dynamo.model.names import SUFFIXES, clique_names, set_name
from resources.dynamo.model.overrides import min_available, role_constraint, service_constraint, set_constraint
from resources.dynamo.objects.labels import own_labels, pod_annotations, pod_labels
from resources.dynamo.objects.spread import is_spread
from resources.dynamo.pods.builder import BuiltPod, built_pod
from resources.ports.configuration import KAI_SCHEDULER, VOLCANO_SCHEDULER, DynamoSettings
from resources.schema.issues import Located

ANY_ORDER: Final = "CliqueStartupTypeAnyOrder"
EXPLICIT: Final = "CliqueStartupTypeExplicit"
UPDATE_STRATEGY: Final = "nvidia.com/grove-update-strategy"
"""The annotation of a graph with the update strategy of its set."""
UPDATE_STRATEGIES: Final = ("RollingRecreate", "OnDelete")
VOLCANO_QUEUE: Final = "scheduling.grove.io/volcano-queue"
"""The annotation of a set that names its queue of Volcano."""
INHERITED: Final = frozenset({"grove.io", "scheduling.grove.io", "kai.scheduler"})
"""The prefixes of annotations that a graph hands on to its set: they ask Grove and its schedulers for something."""


class PlannedSet(Struct, frozen=True, eq=False):
    """The PodCliqueSet that a graph should have."""

    body: Body
    """The manifest, without owner references."""
    warnings: tuple[str, ...]
    """What the author of the graph should know: shortened names, services that are left out, and warnings about pods."""
    memo: Memo = field(default_factory=Memo)
    """What has been read from the manifest."""


def podcliqueset(graph: InferenceGraph, settings: DynamoSettings, queue: str | None, volcano: str | None = None) -> PlannedSet | None:
    """The set of a graph, the same object every time; None if no service has replicas.

    With a KAI queue, pods that name no scheduler are scheduled by KAI in that queue; without one (None), pods say nothing about KAI. The
    same for a queue of Volcano. There is one of them at most.
    Raises `PodFault` if the pods of a service cannot be built, and `ValueError` if the termination delay of the settings is no duration.
    """
    return graph.memo.recall(("set", queue, volcano), (settings,), lambda: _podcliqueset(graph, settings, queue, volcano))


def _podcliqueset(graph: InferenceGraph, settings: DynamoSettings, queue: str | None, volcano: str | None) -> PlannedSet | None:
    services = scaled_up(graph)
    if not services:
        return None
    pods = {(service.name, role): _pod(graph, service, role, settings) for service in services for role in service.roles}
    cliques = [
        _clique(graph, service, role, _scheduled(pods[service.name, role].spec, volcano), queue)
        for service in services
        for role in service.roles
    ]
    template = {
        "cliques": sorted(cliques, key=_name),
        "cliqueStartupType": EXPLICIT if any(_waits_for_workers(service) for service in services) else ANY_ORDER,
        "headlessServiceConfig": {"publishNotReadyAddresses": True},
        **_termination_delay(settings),
        **_scaling_groups(graph, services),
        **set_constraint(graph),
        **({"priorityClassName": graph.spec.priority_class_name} if graph.spec.priority_class_name else {}),
    }
    body = manifest(
        kinds.PODCLIQUESET,
        graph.namespace,
        set_name(graph),
        {**graph.spec.labels, **own_labels(graph)},
        annotations={
            **graph.spec.annotations,
            **({VOLCANO_QUEUE: volcano} if volcano else {}),
            **inherited_annotations(graph),
            **_own_annotations(graph),
        },
        spec={"replicas": 1, **_update_strategy(graph), "template": template},
    )
    warnings = (*set_notes(graph), *(warning for pod in pods.values() for warning in pod.warnings))
    return PlannedSet(body, tuple(dict.fromkeys(warnings)))


def scaled_up(graph: InferenceGraph) -> tuple[GraphService, ...]:
    """The services with replicas: the set has no cliques for others, because a scaling group cannot have 0 replicas."""
    return tuple(service for service in graph.services if service.replicas > 0)


def inherited_annotations(graph: InferenceGraph) -> dict[str, str]:
    """The annotations of the graph that its set gets: those with a prefix in `INHERITED`, for example `grove.io/auto-mnnvl`."""
    return {key: value for key, value in sorted(graph.annotations.items()) if key.partition("/")[0] in INHERITED and "/" in key}


def _own_annotations(graph: InferenceGraph) -> dict[str, str]:
    """The annotations of the set that come with the form of its pods; none in the first one."""
    if not graph.is_recorded:
        return {}
    groups = sorted(clique_names(graph, service).base for service in scaled_up(graph) if is_spread(graph, service))
    return {POD_FORM: graph.form.value, **({SPREAD_GROUPS: ",".join(groups)} if groups else {})}


def set_notes(graph: InferenceGraph) -> tuple[str, ...]:
    """What becomes of a graph and is not evident: services that are left out, and shortened names."""
    return (*_omissions(graph), *_shortenings(graph))


def _omissions(graph: InferenceGraph) -> Iterator[str]:
    for service in graph.services:
        if service.replicas <= 0:
            yield about_service(
                service,
                f"spec.services[{service.name}].replicas: with 0 replicas the service has no place in the PodCliqueSet {set_name(graph)}; "
                "scaling it up adds its cliques, which replaces a PodCliqueSet that exists",
                "replicas",
            )


def _shortenings(graph: InferenceGraph) -> Iterator[str]:
    if (name := set_name(graph)) != graph.name:
        text = f"the name {graph.name} leaves no room for names of pods, so the {kinds.PODCLIQUESET.name} of the graph is {name}"
        yield Located(text, ("metadata", "name"))
    for service in scaled_up(graph):
        names = clique_names(graph, service)
        if names.base == service.key:
            continue
        pairs = [(f"{service.key}{SUFFIXES[role]}", names.clique(role)) for role in service.roles]
        if service.is_multinode:
            pairs.insert(0, (service.key, names.base))
        renamed = ", ".join(f"{full} becomes {short}" for full, short in pairs)
        text = f"spec.services[{service.name}]: names in the PodCliqueSet {name} are shortened to fit pod names: {renamed}"
        yield about_service(service, text)


def _pod(graph: InferenceGraph, service: GraphService, role: Role, settings: DynamoSettings) -> BuiltPod:
    return built_pod(graph, service, role, Orchestrator.GROVE, settings)


def _scheduled(pod_spec: Body, volcano: str | None) -> Body:
    """The pod spec, scheduled by Volcano if there is a queue of it and the pod names no scheduler."""
    return {**pod_spec, "schedulerName": VOLCANO_SCHEDULER} if volcano and not pod_spec.get("schedulerName") else pod_spec


def _update_strategy(graph: InferenceGraph) -> Body:
    """The field with the update strategy that the graph names; empty if it names none that a set has."""
    strategy = graph.annotations.get(UPDATE_STRATEGY)
    return {"updateStrategy": {"type": strategy}} if strategy in UPDATE_STRATEGIES else {}


def _clique(graph: InferenceGraph, service: GraphService, role: Role, pod_spec: Body, queue: str | None) -> dict[str, Any]:
    """The clique of one role. All pods of a replica on several nodes must run together, so `minAvailable` is all of them."""
    names = clique_names(graph, service)
    replicas = service.pods(role) if service.is_multinode else service.replicas
    uses_kai = queue is not None and pod_spec.get("schedulerName") in (None, "", KAI_SCHEDULER)
    spec: dict[str, Any] = {
        "roleName": names.clique(role),
        "replicas": replicas,
        "minAvailable": replicas if service.is_multinode else min_available(service),
        "podSpec": {**pod_spec, "schedulerName": KAI_SCHEDULER} if uses_kai else pod_spec,
    }
    if role is Role.LEADER and _waits_for_workers(service):
        spec["startsAfter"] = [names.clique(Role.WORKER)]
    labels = pod_labels(graph, service, role)
    if uses_kai and queue is not None:
        labels[KAI_QUEUE] = queue
    annotations = pod_annotations(service, role)
    constraint = role_constraint(service, role) if service.is_multinode else service_constraint(graph, service)
    more = {**({"annotations": annotations} if annotations else {}), **constraint}
    return {"name": names.clique(role), "labels": labels, **more, "spec": spec}


def _waits_for_workers(service: GraphService) -> bool:
    """Whether the leader starts after the workers: TensorRT-LLM's connects to all of them when it starts."""
    return service.is_multinode and service.framework is Framework.TRTLLM


def _scaling_groups(graph: InferenceGraph, services: Sequence[GraphService]) -> dict[str, Any]:
    """The field with the scaling groups, one for each service on several nodes; empty if there is none."""
    groups = [_scaling_group(graph, service) for service in services if service.is_multinode]
    return {"podCliqueScalingGroups": sorted(groups, key=_name)} if groups else {}


def _scaling_group(graph: InferenceGraph, service: GraphService) -> dict[str, Any]:
    names = clique_names(graph, service)
    return {
        "name": names.base,
        "cliqueNames": [names.clique(role) for role in service.roles],
        "replicas": service.replicas,
        "minAvailable": min_available(service),
        **service_constraint(graph, service),
    }


def _termination_delay(settings: DynamoSettings) -> dict[str, str]:
    """The field with the termination delay, spelled as the API server returns it; empty if the settings have none above 0."""
    delay = settings.termination_delay
    return {"terminationDelay": canonical(delay)} if delay and nanoseconds(delay) > 0 else {}


def _name(entry: Body) -> str:
    return str(entry["name"])
