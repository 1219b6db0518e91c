"""PodGroups: the gang of one replica of a multinode service, for Volcano or kube-scheduler. Its pods are placed together or not at all."""

from typing import Any

from engine.resource import PLAIN, Policy, Want
from resources.base.fields import manifest
from resources.dynamo.model.graph import GraphService, InferenceGraph
from resources.dynamo.objects.component_names import instance_name
from resources.dynamo.objects.group_scheduler import BY_VOLCANO, GroupScheduler
from resources.dynamo.objects.labels import own_labels
from resources.dynamo.objects.pod_template import INSTANCE, identity_labels

CREATED_ONCE = Policy(seeded=(("spec", "priorityClassName"),), until_gone=True)
"""Of a PodGroup of Kubernetes only the minimum can change. It is kept until its pods are gone."""


def pod_group(graph: InferenceGraph, service: GraphService, index: int, scheduler: GroupScheduler = BY_VOLCANO, priority: str = "") -> Want:
    """The PodGroup of one replica: the number of its pods and, for kube-scheduler, their priority class if they have one (`priority`).

    The queue and everything else are the scheduler's defaults.
    """
    name = instance_name(graph, service, index)
    spec: dict[str, Any] = {"minMember": service.nodes}
    if scheduler.is_native:
        spec = {"schedulingPolicy": {"gang": {"minCount": service.nodes}}, **({"priorityClassName": priority} if priority else {})}
    body = manifest(
        scheduler.kind,
        graph.namespace,
        name,
        {**identity_labels(graph, service), INSTANCE: str(index), **own_labels(graph)},
        spec=spec,
    )
    why = f"gang of replica {index} of {service.name}: {service.nodes} pods"
    policy = CREATED_ONCE if scheduler.is_native else PLAIN
    return Want(scheduler.kind.id(graph.namespace, name), why, (graph.owner,), body=body, policy=policy)
