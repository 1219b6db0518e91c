"""PodGroups: Volcano's gang of one replica of a multinode service. Its pods are placed together or not at all."""

from engine.resource import Want
from resources.base import kinds
from resources.base.fields import manifest
from resources.dynamo.model.graph import GraphService, InferenceGraph
from resources.dynamo.objects.component_names import instance_name
from resources.dynamo.objects.labels import own_labels
from resources.dynamo.objects.pod_template import INSTANCE, identity_labels


def pod_group(graph: InferenceGraph, service: GraphService, index: int) -> Want:
    """The PodGroup of one replica. Only the number of pods is set: the queue and everything else are Volcano's defaults."""
    name = instance_name(graph, service, index)
    body = manifest(
        kinds.VOLCANO_POD_GROUP,
        graph.namespace,
        name,
        {**identity_labels(graph, service), INSTANCE: str(index), **own_labels(graph)},
        spec={"minMember": service.nodes},
    )
    id = kinds.VOLCANO_POD_GROUP.id(graph.namespace, name)
    return Want(id, f"gang of replica {index} of {service.name}: {service.nodes} pods", (graph.owner,), body=body)
