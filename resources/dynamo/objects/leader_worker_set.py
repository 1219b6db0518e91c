"""LeaderWorkerSets: one for each replica of a multinode service, with one group: a leader and its workers, scheduled as a gang."""

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from engine.observed import Live
from engine.resource import Body, Policy, Want
from resources.base import kinds
from resources.base.added_to_pods import with_anti_affinity
from resources.base.fields import manifest, mapping, mappings
from resources.base.labels import GANG_FORM, GROUP_NAME, POD_FORM
from resources.dynamo.model.graph import GraphService, InferenceGraph, Role
from resources.dynamo.objects.component_names import instance_name
from resources.dynamo.objects.group_scheduler import (
    BY_VOLCANO,
    FORM,
    GROUP_FIELD,
    TEMPLATES,
    GroupScheduler,
    keeps_no_group,
)
from resources.dynamo.objects.labels import GRAPH_NAME, own_labels
from resources.dynamo.objects.pod_template import (
    COMPONENT,
    INSTANCE,
    TEMPLATE_HASH,
    object_annotations,
    object_labels,
    pod_template,
    template_hash,
)
from resources.dynamo.objects.server_form import hash_label, server_form
from resources.dynamo.objects.spread import is_spread
from resources.dynamo.pods.builder import PodFault
from resources.dynamo.pods.role_paths import placed
from resources.ports.configuration import DynamoSettings

POLICY = Policy(
    exact=tuple(("spec", "leaderWorkerTemplate", template) for template in TEMPLATES),
    seal=TEMPLATE_HASH,
)
"""All other fields are LeaderWorkerSet's defaults. It replaces its pods when the size or a template changes, so nothing is immutable."""


class GroupTemplates(Struct, frozen=True):
    """The pod templates of a multinode service, the same for all replicas but for the marks of each."""

    leader: Body
    worker: Body


def group_templates(
    graph: InferenceGraph, service: GraphService, settings: DynamoSettings, scheduler: GroupScheduler = BY_VOLCANO
) -> GroupTemplates:
    """The templates of a service. Raises `PodFault` for what the manifest shows to be wrong."""
    return GroupTemplates(*(_template(graph, service, role, settings, scheduler) for role in (Role.LEADER, Role.WORKER)))


def leader_worker_set(
    graph: InferenceGraph,
    service: GraphService,
    index: int,
    templates: GroupTemplates,
    live: Live | None,
    scheduler: GroupScheduler = BY_VOLCANO,
) -> Want:
    """The LeaderWorkerSet of one replica, created after its PodGroup."""
    name = instance_name(graph, service, index)
    identity = {COMPONENT: service.name, GRAPH_NAME: graph.name, INSTANCE: str(index)} if is_spread(graph, service) else {}
    marked: list[Body] = [_marked(template, index, name, identity, scheduler) for template in (templates.leader, templates.worker)]
    template_digest = template_hash(*marked)
    if live is not None and keeps_no_group(live) and live.labels.get(TEMPLATE_HASH) == template_digest:
        marked = [_without_group(template) for template in marked]  # Sent again, it would be dropped again.
    live_templates = mapping(mapping(live.body.get("spec")).get("leaderWorkerTemplate")) if live else {}
    forms = {field: server_form(template, live_templates.get(field)) for field, template in zip(TEMPLATES, marked, strict=True)}
    own_hash = hash_label(template_digest, [(form, live_templates.get(field)) for field, form in forms.items()], live)
    group: dict[str, Any] = {"size": service.nodes, **forms}
    body = manifest(
        kinds.LEADER_WORKER_SET,
        graph.namespace,
        name,
        {**object_labels(graph, service), INSTANCE: str(index), TEMPLATE_HASH: own_hash, **own_labels(graph)},
        annotations={
            **{key: value for key, value in object_annotations(service).items() if key != GANG_FORM},
            **({POD_FORM: graph.form.value} if graph.is_recorded else {}),
            **({GANG_FORM: FORM} if scheduler.is_native else {}),
        },
        spec={"replicas": 1, "startupPolicy": "LeaderCreated", "leaderWorkerTemplate": group},
    )
    return Want(
        kinds.LEADER_WORKER_SET.id(graph.namespace, name),
        f"replica {index} of {service.name}: a leader and {_workers(service)}",
        (graph.owner,),
        body=body,
        after=frozenset({scheduler.kind.id(graph.namespace, name)}),
        policy=POLICY,
    )


def _marked(template: Body, index: int, name: str, spread: Mapping[str, str], scheduler: GroupScheduler) -> Body:
    """The template with the marks of one replica: its index, and the name of its PodGroup. No node may have two pods with the labels in
    `spread`, if there are any."""
    metadata = template["metadata"]
    labels = {**metadata["labels"], INSTANCE: str(index)}
    own = metadata.get("annotations", {})
    annotations = own if scheduler.is_native else {**own, GROUP_NAME: name}
    spec = with_anti_affinity(template["spec"], spread) if spread else template["spec"]
    if scheduler.is_native and spec["schedulerName"] == scheduler.name:
        spec = {**spec, GROUP_FIELD: {"podGroupName": name}}
    return {**template, "metadata": {"labels": labels, **({"annotations": annotations} if annotations else {})}, "spec": spec}


def _without_group(template: Body) -> Body:
    return {**template, "spec": {key: value for key, value in template["spec"].items() if key != GROUP_FIELD}}


def _template(graph: InferenceGraph, service: GraphService, role: Role, settings: DynamoSettings, scheduler: GroupScheduler) -> Body:
    """The pod template of a role. The group scheduler places it, for no other knows the PodGroup, unless the service names another one; in
    the first form of pods whatever it names."""
    template = pod_template(graph, service, role, settings)
    own = service.of(role).scheduler if graph.is_recorded else ""
    spec = {**template["spec"], "schedulerName": own or scheduler.name}
    try:
        _check(service, spec)
    except PodFault as fault:
        raise placed(service, role, fault) from None
    return {**template, "spec": spec}


def _check(service: GraphService, spec: dict[str, Any]) -> None:
    """Raise `PodFault` for a pod that could not run in a LeaderWorkerSet."""
    path = ("spec", "services", service.name)
    container = next((container for container in mappings(spec.get("containers")) if container.get("name") == "main"), None)
    if container is None:
        raise PodFault((*path, "extraPodSpec"), "main container not found in pod spec")
    if not container.get("command"):
        raise PodFault((*path, "extraPodSpec", "mainContainer", "command"), "container Command cannot be nil for LWS pod")
    if not container.get("args") and list(container["command"]) == ["/bin/sh", "-c"]:
        raise PodFault((*path, "extraPodSpec", "mainContainer", "args"), "container Args cannot be empty for LWS pod")


def _workers(service: GraphService) -> str:
    count = service.pods(Role.WORKER)
    return "1 worker" if count == 1 else f"{count} workers"
