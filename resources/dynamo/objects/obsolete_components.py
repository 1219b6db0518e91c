"""Obsolete components: objects of the component path that a graph no longer needs, each LeaderWorkerSet before its PodGroup."""

from collections.abc import Collection, Iterator

from engine.ids import Kind, ResourceId
from engine.observed import Live, Slice
from engine.reason import Because, Reason
from engine.resource import PLAIN, Drop, Hold, Resource
from engine.resource_plan import keepers
from resources.base import kinds, labels
from resources.base.labels import GROUP_PROTECTION
from resources.dynamo.model.graph import GraphService, InferenceGraph
from resources.dynamo.objects.component_service import COMPONENT_SERVICE
from resources.dynamo.objects.pod_template import COMPONENT, INSTANCE

POD_GROUPS: tuple[Kind, ...] = (kinds.VOLCANO_POD_GROUP, kinds.POD_GROUP)
"""The kinds of the PodGroups of LeaderWorkerSets."""
REMOVED: tuple[Kind, ...] = (kinds.LEADER_WORKER_SET, *POD_GROUPS, kinds.DEPLOYMENT, kinds.SERVICE)
"""The kinds of the component path, in the order of removal."""


def obsolete_components(graph: InferenceGraph, lives: Slice, desired: Collection[ResourceId], why: str = "") -> Iterator[Resource]:
    """One DROP for each live object of the component path that is not desired. `why`, if given, is the reason for all of them."""
    obsolete = [live for kind in REMOVED for live in _of_kind(lives, kind) if live.id not in desired]
    ids = {live.id for live in obsolete}
    for live in obsolete:
        because = Because(Reason.TEMPLATE_CHANGED, why) if why else _because(graph, live)
        yield removal(live, because.text, ids, because.reason)


def removal(live: Live, why: str, removed: Collection[ResourceId], reason: Reason | None) -> Resource:
    """The removal of an object: a LeaderWorkerSet is deleted before its PodGroup, if that is among those `removed`.

    Kubernetes keeps a PodGroup of its own until its pods are gone: that is waited for.
    """
    if is_kept_for_pods(live):
        return Hold(live.id, f"{why}; it goes once Kubernetes has seen that its pods are gone")
    gangs = {kind.id(live.id.namespace, live.id.name) for kind in POD_GROUPS} if live.id.kind == kinds.LEADER_WORKER_SET.name else set()
    return Drop(live.id, why, after=frozenset(gangs.intersection(removed)), reason=reason)


def is_kept_for_pods(live: Live) -> bool:
    """Whether an object is a PodGroup that is being deleted and that Kubernetes keeps for its pods."""
    return live.deleting_since is not None and keepers(live, PLAIN) == (GROUP_PROTECTION,)


def _of_kind(lives: Slice, kind: Kind) -> Iterator[Live]:
    """The objects of a kind; of the Services only those of the component path."""
    for live in lives.of(kind.name):
        is_ours = kind != kinds.SERVICE or live.labels.get(labels.COMPONENT) == COMPONENT_SERVICE
        if live.id.group == kind.group and is_ours:
            yield live


def _because(graph: InferenceGraph, live: Live) -> Because:
    name = live.labels.get(COMPONENT)
    service = next((service for service in graph.services if service.name == name), None)
    if service is not None:
        return _because_of_service(service, live)
    text = f"the graph has no service {name}" if name else f"no service of the graph needs {live.id.kind} {live.id.name}"
    return Because(Reason.TEMPLATE_CHANGED, text)


def _because_of_service(service: GraphService, live: Live) -> Because:
    if live.id.kind == kinds.SERVICE.name:
        return Because(Reason.TEMPLATE_CHANGED, f"{service.name} no longer needs this Service")
    if live.id.kind == kinds.DEPLOYMENT.name:
        return Because(Reason.TEMPLATE_CHANGED, f"{service.name} runs on {service.nodes} nodes now")
    if not service.is_multinode:
        return Because(Reason.TEMPLATE_CHANGED, f"{service.name} runs on one node now")
    index = live.labels.get(INSTANCE)
    return Because(Reason.SCALED_IN, f"replica {index} of {service.name} is removed: {service.name} is scaled to {service.replicas}")
