"""UsageTotals: what pods use of the nodes of a cluster, added up while they are read, and the nodes as room is judged by them."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any, Final

from engine.ids import ResourceId
from engine.resource import Body
from resources.base.fields import mapping, mappings
from resources.placement.cluster_room import CRITICAL, ClusterRoom, LabelledPods, LeavingPod, NodeUsage, RoomNode, priority_of
from resources.placement.node_fit import PODS, Amounts, allocatable, requests_of, texts
from resources.placement.pod_affinity import ENDED, affinity_terms, anti_affinity_terms

MAX_PODS: Final = 200_000
"""With more pods of others than this, room is not judged. Kubernetes is made for 150,000; a client would read for longer than a minute."""


def room_node(body: Body) -> RoomNode:
    """A node as the API sends it, without what is not needed."""
    metadata, spec, status = mapping(body.get("metadata")), mapping(body.get("spec")), mapping(body.get("status"))
    labels = mapping(metadata.get("labels"))
    ready = [condition for condition in mappings(status.get("conditions")) if condition.get("type") == "Ready"]
    kept = {
        "metadata": {"name": metadata["name"], "labels": labels},
        "spec": {"unschedulable": spec.get("unschedulable") is True, "taints": mappings(spec.get("taints"))},
        "status": {"conditions": [{"type": "Ready", "status": each.get("status")} for each in ready]},
    }
    return RoomNode(str(metadata["name"]), labels, kept, allocatable(body))


class UsageTotals:
    """Adds up what pods use. It keeps the pods that leave their nodes; of others its size depends on nodes, namespaces and priorities."""

    def __init__(
        self,
        label_keys: Collection[str] = (),
        excluded: Collection[str] = (),
        leaves: Callable[[str, Body, bool], bool] | None = None,
        replaced: Callable[[str, Body], ResourceId | None] | None = None,
    ) -> None:
        """`label_keys`: the labels that affinity asks for. `excluded`: the uids of pods that do not count, as the forecast has them.

        `leaves`: whether the pod of this namespace and with these labels does not stay where it is, and is being deleted; None: all stay.
        `replaced`: of those that stay, the component that deletes the pod later, once others are ready; None: no component does.
        """
        self._keys, self._excluded, self._leaves, self._replaced = frozenset(label_keys), excluded, leaves, replaced
        self._leaving: dict[ResourceId, list[LeavingPod]] = {}
        self._vacated: list[LeavingPod] = []
        self._usage: dict[tuple[str, str, int], Counter[str]] = {}
        self._labelled: set[LabelledPods] = set()
        self._priorities = dict(CRITICAL)
        self.count = 0
        """The pods so far, those that do not count as well."""

    def add(self, pod: Body) -> None:
        """Count a pod. One that has no node, that has ended, or that is being deleted uses nothing that lasts."""
        self.count += 1
        metadata, spec = mapping(pod.get("metadata")), mapping(pod.get("spec"))
        name, priority = spec.get("priorityClassName"), spec.get("priority")
        if isinstance(name, str) and isinstance(priority, int):
            self._priorities[name] = priority
        node = spec.get("nodeName")
        has_ended = mapping(pod.get("status")).get("phase") in ENDED
        if not isinstance(node, str) or not node or has_ended or metadata.get("uid") in self._excluded:
            return
        namespace = str(metadata.get("namespace", ""))
        is_ending = metadata.get("deletionTimestamp") is not None
        if self._leaves is not None and self._leaves(namespace, mapping(metadata.get("labels")), is_ending):
            if not is_ending:
                self._vacated.append(_leaving_pod(metadata, spec))
            return
        if not is_ending and self._replaced is not None:
            component = self._replaced(namespace, mapping(metadata.get("labels")))
            if component is not None:
                self._leaving.setdefault(component, []).append(_leaving_pod(metadata, spec))
                return
        priority = priority_of(spec)
        if not is_ending:
            used = self._usage.setdefault((node, namespace, priority), Counter())
            used.update(used_by(spec))
        if self._keys:
            labels = tuple(sorted((key, str(value)) for key, value in mapping(metadata.get("labels")).items() if key in self._keys))
            self._labelled.add(LabelledPods(node, namespace, labels))

    def room(self, nodes: Iterable[RoomNode]) -> ClusterRoom:
        """The cluster with these nodes and the pods that were counted."""
        usage: dict[str, list[NodeUsage]] = {}
        for (node, namespace, priority), requests in self._usage.items():
            usage.setdefault(node, []).append(NodeUsage(namespace, priority, dict(requests)))
        by_node = {node: tuple(listed) for node, listed in usage.items()}
        listed = tuple(sorted(nodes, key=lambda node: node.name))
        leaving = {component: tuple(pods) for component, pods in self._leaving.items()}
        return ClusterRoom(listed, by_node, frozenset(self._labelled), leaving, tuple(self._vacated), self._priorities)


def _leaving_pod(metadata: Mapping[str, Any], spec: Mapping[str, Any]) -> LeavingPod:
    """What is needed of a pod that goes."""
    kept = {key: metadata[key] for key in ("name", "namespace", "labels") if key in metadata}
    priority = {key: spec[key] for key in ("priority", "priorityClassName") if key in spec}
    return LeavingPod(str(metadata.get("uid", "")), str(spec["nodeName"]), {"metadata": kept, "spec": priority}, used_by(spec))


def used_by(spec: Mapping[str, Any]) -> Amounts:
    """What a pod on a node uses of it; one pod, if its quantities are malformed."""
    try:
        return requests_of(spec)
    except ValueError:
        return {PODS: 1000}


def label_keys_of(specs: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """The keys of labels by which the required affinity of pods with these specs selects others."""
    for spec in specs:
        for term in (*affinity_terms(spec), *anti_affinity_terms(spec)):
            selector = mapping(term.get("labelSelector"))
            yield from map(str, mapping(selector.get("matchLabels")))
            yield from (str(rule.get("key")) for rule in mappings(selector.get("matchExpressions")))
            yield from (key for name in ("matchLabelKeys", "mismatchLabelKeys") for key in texts(term.get(name)))
