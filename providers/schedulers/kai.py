"""KAI: the KAI scheduler of NVIDIA. Every PodGang has a PodGroup with sub-groups, every ClusterTopologyBinding a Topology."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from engine.observed import Live
from engine.paths import get
from engine.resource import Body, Policy
from providers.schedulers.queues import RequestedQueues, clique_paths, metadata_of, requested_queues
from resources.base import kinds, labels
from resources.base.fields import CLIQUES, annotations_of, manifest, mapping, mappings
from resources.ports.references import References
from resources.ports.scheduler import (
    GangObject,
    LabelsAndAnnotations,
    Levels,
    OneObjectForEachGang,
    Scheduler,
    SetMetadata,
    TopologyObjects,
)
from resources.schema.formats import VALUE
from resources.schema.issues import ErrorType, Issue, shown
from resources.schema.podcliqueset import PodCliqueSet

QUEUE: Final = labels.KAI_QUEUE
"""The label, or else the annotation, of a set or a clique that names its queue; on pods and PodGroups a label."""
NODE_POOL: Final = "kai.scheduler/node-pool"
SKIP_POD_GROUPER: Final = "kai.scheduler/skip-podgrouper"
"""The annotation of pods and PodGangs with which KAI's own controller makes no PodGroup for them."""
POD_GROUP_NAME: Final = "pod-group-name"
SUB_GROUP_NAME: Final = "kai.scheduler/subgroup-name"
TOPOLOGY_NAME: Final = "kai.scheduler/topology"
"""The annotation of a PodGang that names the topology, where Grove's own does not."""

SKIP: Final[Mapping[str, str]] = {SKIP_POD_GROUPER: "true"}
QUEUE_FIELD: Final = ("spec", "queue")
KEPT: Final = (("metadata", "labels", QUEUE), ("metadata", "labels", NODE_POOL))
"""The labels of a PodGroup that are set when it is created and belong to others afterwards."""
OWNED: Final = (("spec", "priorityClassName"), ("spec", "topologyConstraint"), ("spec", "subGroups"))
LEVELS: Final = ("spec", "levels")


class KaiPodGroups(OneObjectForEachGang):
    """The PodGroup of each PodGang."""

    kind = kinds.KAI_POD_GROUP
    podgang_annotations = SKIP
    mapping_failed = "KAIBackendMappingFailed"

    def pod_metadata(self, gang: str, podclique: str, live: Live | None, metadata: SetMetadata) -> LabelsAndAnnotations:
        """The PodGroup, the sub-group and the queue of a pod. A queue whose name is no label value is left out."""
        queue = _queue_of(live) or requested_queues(metadata, _declared).agreed
        queue_label = {QUEUE: queue} if queue and _is_label_value(queue) else {}
        return LabelsAndAnnotations({**queue_label, SUB_GROUP_NAME: podclique}, {**SKIP, POD_GROUP_NAME: gang})

    def object_for(self, podgang: Body, live: Live | None, metadata: SetMetadata) -> GangObject:
        """The PodGroup. Its queue is the one that it was created with, whatever the set asks for later."""
        queues, live_queue = requested_queues(metadata, _declared), _queue_of(live)
        if not live_queue and not queues.agreed:
            return GangObject({}, problem=_no_agreed_queue(metadata, queues))
        annotations = annotations_of(podgang)
        topology = annotations.get(labels.TOPOLOGY_NAME) or annotations.get(TOPOLOGY_NAME) or ""
        if not topology and _is_constrained(podgang):
            return GangObject({}, problem="topology name cannot be empty when topology constraints are defined")
        meta = podgang["metadata"]
        body = manifest(
            self.kind,
            meta["namespace"],
            meta["name"],
            meta["labels"],
            annotations=annotations,
            spec={"queue": live_queue or queues.agreed, **_spec(podgang, topology, live)},
        )
        policy = Policy(seeded=(*KEPT, *((QUEUE_FIELD,) if live_queue else ())), owned=OWNED)
        return GangObject(body, policy, provisional=bool(_standalone(podgang["spec"])))


class KaiTopologies(TopologyObjects):
    """The Topology of each ClusterTopologyBinding."""

    kind = kinds.KAI_TOPOLOGY
    policy = Policy(exact=(LEVELS,), immutable=(LEVELS,))

    def object_for(self, levels: Levels) -> Body:
        """The Topology with the name of the binding and its levels."""
        spec = {"levels": [{"nodeLabel": key} for key in levels.keys]}
        return {"apiVersion": self.kind.api_version, "kind": self.kind.name, "metadata": {"name": levels.binding}, "spec": spec}

    def drift(self, name: str, live: Live | None, levels: Levels) -> str:
        """Whether the Topology exists and has the node labels of the binding, in that order."""
        if live is None:
            return f"KAI Topology {shown(name)} not found"
        live_levels = get(live.body, LEVELS)
        keys = [level.get("nodeLabel") for level in mappings(live_levels)]
        return "" if keys == list(levels.keys) else "KAI Topology levels differ from ClusterTopologyBinding levels"

    def conflict(self, name: str, levels: Levels) -> str:
        """The message about a Topology of another owner, and what to do about it."""
        return (
            f"KAI Topology {name} is not owned by ClusterTopologyBinding {levels.binding}. Delete it, or name it in "
            "spec.schedulerTopologyBindings of the binding"
        )


class KaiScheduler(Scheduler):
    """The back end `kai-scheduler`."""

    name = "kai-scheduler"
    gangs = KaiPodGroups()
    topologies = KaiTopologies()

    def issues(self, model: PodCliqueSet, references: References) -> Iterator[Issue]:
        """A set and its cliques must name one queue, by label or annotation."""
        metadata = metadata_of(model)
        queues, paths = requested_queues(metadata, _declared), clique_paths(model)
        for clique, queue in queues.of_cliques.items() if queues.of_set else ():
            if queue != queues.of_set:
                message = (
                    f"KAI queue on PodCliqueSet {metadata.namespace}/{metadata.name} is {shown(queues.of_set)} "
                    f"but PodClique template {shown(clique)} resolves to {shown(queue)}"
                )
                yield Issue((*paths[clique], _declared(metadata.of_cliques[clique])[1], QUEUE), ErrorType.INVALID, message, queue)
        if not queues.agreed:
            path, fault = (CLIQUES, ErrorType.INVALID) if queues.names else (("metadata", "labels", QUEUE), ErrorType.REQUIRED)
            yield Issue(path, fault, _no_agreed_queue(metadata, queues))


def _declared(keys: LabelsAndAnnotations) -> tuple[str, str]:
    """The queue of an object: its label, else its annotation."""
    if queue := keys.labels.get(QUEUE, ""):
        return queue, "labels"
    return keys.annotations.get(QUEUE, ""), "annotations"


def _no_agreed_queue(metadata: SetMetadata, queues: RequestedQueues) -> str:
    root = f"PodCliqueSet {metadata.namespace}/{metadata.name}"
    if queues.names:
        return f"conflicting KAI queues on {root} PodClique templates: [{' '.join(queues.names)}]"
    return f"no KAI queue is configured on {root} or its PodClique templates"


def _queue_of(live: Live | None) -> str:
    """The queue of a live PodGroup; empty without one."""
    queue = get(live.body, QUEUE_FIELD) if live is not None else None
    return queue if isinstance(queue, str) else ""


def _is_label_value(text: str) -> bool:
    return len(text) <= labels.LONGEST_VALUE and re.fullmatch(VALUE, text) is not None


def _is_constrained(podgang: Body) -> bool:
    spec = podgang["spec"]
    return any(_pack(holder) for holder in (spec, *mappings(spec.get("topologyConstraintGroupConfigs")), *mappings(spec["podgroups"])))


def _spec(podgang: Body, topology: str, live: Live | None) -> dict[str, Any]:
    """The spec of a PodGroup without its queue."""
    spec = podgang["spec"]
    pod_groups = spec["podgroups"]
    body: dict[str, Any] = {"minMember": sum(group["minReplicas"] for group in pod_groups)}
    if priority := spec.get("priorityClassName"):
        body["priorityClassName"] = priority
    sub_groups = _sub_groups(spec, topology, live, podgang["metadata"]["name"])
    return body | _constraint(spec, topology) | {"subGroups": list(sub_groups)}


def _sub_groups(spec: Body, topology: str, live: Live | None, gang: str) -> Iterator[dict[str, Any]]:
    """First the groups of pod groups with a common constraint, then the pod groups, each with the group that it belongs to.

    KAI without `minSubGroup` ignores pod groups beside groups: there, a group with the name of the gang is their parent.
    """
    parents: dict[str, str] = {}
    without_minimum = _sub_groups_without_minimum(live)
    for group in _groups(spec):
        parents |= dict.fromkeys(group["podGroupNames"], group["name"])
        minimum = {} if group["name"] in without_minimum else {"minSubGroup": len(group["podGroupNames"])}
        yield {"name": group["name"], **minimum, **_constraint(group, topology)}
    if (standalone := _standalone(spec)) and without_minimum.intersection(parents.values()):
        parents |= dict.fromkeys(standalone, gang)
        yield {"name": gang}
    for group in spec["podgroups"]:
        parent = {"parent": parents[group["name"]]} if group["name"] in parents else {}
        yield {"name": group["name"], "minMember": group["minReplicas"], **_constraint(group, topology), **parent}


def _groups(spec: Body) -> list[Body]:
    """The groups of pod groups with a common constraint; those without members are left out."""
    return [group for group in spec.get("topologyConstraintGroupConfigs") or () if group["podGroupNames"]]


def _standalone(spec: Body) -> list[str]:
    """The pod groups that are in no group, if there are groups."""
    members = {name for group in _groups(spec) for name in group["podGroupNames"]}
    return [group["name"] for group in spec["podgroups"] if members and group["name"] not in members]


def _sub_groups_without_minimum(live: Live | None) -> frozenset[str]:
    """The names of sub-groups that exist without `minSubGroup`.

    Older releases of KAI do not have the field, and their API server drops it. It means all members, as does its absence; so it is
    sent when a sub-group is created and not again, or every pass would write it.
    """
    groups = mappings(mapping(live.body.get("spec")).get("subGroups")) if live is not None else ()
    return frozenset(group["name"] for group in groups if isinstance(group.get("name"), str) and "minSubGroup" not in group)


def _constraint(holder: Body, topology: str) -> dict[str, Any]:
    """The field `topologyConstraint`, in a map; an empty map if there is no constraint."""
    levels = {f"{side}TopologyLevel": key for side, key in _pack(holder).items() if key}
    return {"topologyConstraint": {"topology": topology, **levels}} if levels else {}


def _pack(holder: Body) -> Mapping[str, Any]:
    """The constraint of a PodGang or of a part of it: `required` and `preferred` node label keys."""
    return mapping(mapping(holder.get("topologyConstraint")).get("packConstraint"))
