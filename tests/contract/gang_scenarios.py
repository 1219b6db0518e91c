"""What kube-scheduler makes of gangs: sequences of acts, each with what it has led to once everything rests.

A scenario has the nodes of its own and no others. Every pod takes a whole node.
"""

from dataclasses import dataclass, field
from typing import Any

from tests.contract.scenario import Step
from tests.contract.scenarios.bodies import PODS, pod
from tests.contract.scenarios.gangs import (
    COMPOSITES,
    POD_GROUPS,
    WORKLOADS,
    bundle,
    composite,
    gang,
    group,
    reference,
    topology,
    workload,
)

GPU = "nvidia.com/gpu"
RACK = "example.com/rack"
ROOM = {"cpu": "64", "memory": "512Gi", "pods": "110", GPU: "8"}
GATE = "example.com/wait"
AT_ONCE = "?gracePeriodSeconds=0"


@dataclass(frozen=True, slots=True)
class Act:
    """Requests, after which the cluster comes to rest."""

    title: str
    steps: tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class GangScenario:
    """Acts in a cluster with these nodes, each in a rack."""

    name: str
    acts: tuple[Act, ...]
    racks: tuple[str, ...] = field(default=("r1", "r1"))

    @property
    def nodes(self) -> tuple[dict[str, Any], ...]:
        """The nodes, which nothing runs on."""
        return tuple(node(f"node-{number}", rack) for number, rack in enumerate(self.racks))


def node(name: str, rack: str) -> dict[str, Any]:
    """A node with room for one pod of these scenarios."""
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {"kubernetes.io/hostname": name, RACK: rack},
            "annotations": {"kwok.x-k8s.io/node": "fake"},
        },
        "status": {"capacity": ROOM, "allocatable": ROOM},
    }


def _act(title: str, *steps: Step) -> Act:
    return Act(title, steps)


def _post(path: str, *bodies: dict[str, Any]) -> tuple[Step, ...]:
    return tuple(Step("", "POST", path, body) for body in bodies)


def _pods(of: str, *names: str, **fields: Any) -> tuple[Step, ...]:
    """Pods of a PodGroup."""
    spec = {"containers": [{"name": "main", "image": "x", "resources": {"limits": {GPU: "8"}}}], **fields}
    return _post(PODS, *(pod(name, **spec, schedulingGroup={"podGroupName": of}) for name in names))


def _groups(*groups: dict[str, Any]) -> tuple[Step, ...]:
    return _post(POD_GROUPS, *groups)


def _gone(path: str, *names: str) -> tuple[Step, ...]:
    return tuple(Step("", "DELETE", f"{path}/{name}{AT_ONCE if path == PODS else ''}") for name in names)


def _minimum(of: str, minimum: int) -> Step:
    return Step("", "PATCH", f"{POD_GROUPS}/{of}", {"spec": gang(minimum)}, "merge")


def _tree(name: str, minimum: int = 2, **constraints: Any) -> tuple[Step, ...]:
    """A Workload, a CompositePodGroup, and below it a leader of one pod and two workers."""
    leaves = [{"name": "leader", **gang(1)}, {"name": "workers", **gang(2)}]
    template = {"name": "all", **bundle(minimum, **constraints), "podGroupTemplates": leaves}
    below = [
        group(f"{name}-{leaf['name']}", gang(1 + at, parentCompositePodGroupName=name, **reference(name, leaf["name"])))
        for at, leaf in enumerate(leaves)
    ]
    return (
        *_post(WORKLOADS, workload(name, compositePodGroupTemplates=[template])),
        *_post(COMPOSITES, composite(name, bundle(minimum, **constraints, **reference(name, "all")))),
        *_groups(*below),
    )


def _tree_pods(name: str) -> tuple[Step, ...]:
    return (*_pods(f"{name}-leader", f"{name}-l"), *_pods(f"{name}-workers", f"{name}-w0", f"{name}-w1"))


WHOLE = GangScenario(
    "whole-or-not-at-all",
    (
        _act("three pods and two nodes", *_groups(group("g", gang(3))), *_pods("g", "a", "b", "c")),
        _act("two are enough", _minimum("g", 2)),
    ),
)
TWO = GangScenario(
    "two-gangs",
    (
        _act("the first is whole", *_groups(group("one", gang(2))), *_pods("one", "one-a", "one-b")),
        _act("the second not at all", *_groups(group("two", gang(2))), *_pods("two", "two-a", "two-b")),
        _act("with one node it still waits", *_gone(PODS, "one-a")),
        _act("with both it is whole", *_gone(PODS, "one-b")),
    ),
)
LATER = GangScenario(
    "pods-before-their-group",
    (
        _act("they wait", *_pods("g", "a", "b")),
        _act("and are bound with it", *_groups(group("g", gang(2)))),
    ),
)
INCOMPLETE = GangScenario(
    "fewer-pods-than-the-minimum",
    (
        _act("they wait", *_groups(group("g", gang(2))), *_pods("g", "a")),
        _act("for the last one", *_pods("g", "b")),
    ),
)
REPLACED = GangScenario(
    "a-member-is-replaced",
    (
        _act("a gang", *_groups(group("g", gang(2))), *_pods("g", "a", "b")),
        _act("one is lost", *_gone(PODS, "b")),
        _act("its successor is bound by itself", *_pods("g", "c")),
        _act("another finds no room", *_pods("g", "d")),
    ),
)
DELETED = GangScenario(
    "a-group-is-deleted",
    (
        _act("a gang", *_groups(group("g", gang(2))), *_pods("g", "a", "b")),
        _act("its group stays while pods run", *_gone(POD_GROUPS, "g")),
        _act("also with one", *_gone(PODS, "a")),
        _act("and goes with the last", *_gone(PODS, "b")),
    ),
)
GATED = GangScenario(
    "a-gated-pod",
    (
        _act("it does not count", *_groups(group("g", gang(2))), *_pods("g", "a"), *_pods("g", "b", schedulingGates=[{"name": GATE}])),
        _act("until it is ungated", Step("", "PATCH", f"{PODS}/b", {"spec": {"schedulingGates": []}}, "merge")),
    ),
)
MORE = GangScenario(
    "more-pods-than-the-minimum",
    (
        _act("a gang", *_groups(group("g", gang(1))), *_pods("g", "a")),
        _act("another pod", *_pods("g", "b")),
        _act("one without room", *_pods("g", "c")),
    ),
)
RAISED = GangScenario(
    "a-minimum-is-raised",
    (
        _act("a gang", *_groups(group("g", gang(1))), *_pods("g", "a")),
        _act("above what there is", _minimum("g", 3)),
        _act("a later pod waits", *_pods("g", "b")),
        _act("for the last one, which has no room", *_pods("g", "c")),
        _act("lowered to what fits", _minimum("g", 2)),
    ),
)
BASIC = GangScenario(
    "pods-on-their-own",
    (
        _act("as many as fit", *_groups(group("g", {"schedulingPolicy": {"basic": {}}})), *_pods("g", "a", "b", "c")),
        _act("and the next", *_gone(PODS, "a")),
    ),
)
TREE = GangScenario(
    "a-composite",
    (
        _act("all of it", *_tree("x"), *_tree_pods("x")),
        _act("a second one not at all", *_tree("y"), *_tree_pods("y")),
    ),
    racks=("r1",) * 4,
)
TREE_INCOMPLETE = GangScenario(
    "a-composite-without-its-workers",
    (
        _act("its leader waits", *_tree("x"), *_pods("x-leader", "x-l")),
        _act("for all of them", *_pods("x-workers", "x-w0", "x-w1")),
    ),
    racks=("r1",) * 3,
)
TREE_PART = GangScenario(
    "a-composite-of-which-one-group-is-enough",
    (_act("the leader has room, the workers not", *_tree("x", 1), *_tree_pods("x")),),
)
ORPHANED = GangScenario(
    "a-composite-is-deleted",
    (
        _act("all of it", *_tree("x"), *_tree_pods("x")),
        _act("pods that run go on", *_gone(COMPOSITES, "x"), *_gone(WORKLOADS, "x")),
        _act("a new one waits", *_gone(PODS, "x-w1"), *_pods("x-workers", "x-w2")),
    ),
    racks=("r1",) * 3,
)
IN_A_RACK = GangScenario(
    "a-gang-in-one-rack",
    (
        _act("where there is room", *_groups(group("g", gang(2, **topology(RACK)))), *_pods("g", "a", "b")),
        _act("another pod has none there", *_pods("g", "c")),
    ),
    racks=("r1", "r2", "r2"),
)
NO_RACK = GangScenario(
    "a-gang-that-no-rack-has-room-for",
    (_act("none of it", *_groups(group("g", gang(3, **topology(RACK)))), *_pods("g", "a", "b", "c")),),
    racks=("r1", "r1", "r2", "r2"),
)
NO_LABEL = GangScenario(
    "a-key-that-no-node-has",
    (_act("none of it", *_groups(group("g", gang(1, **topology("example.com/none")))), *_pods("g", "a")),),
)
TREE_IN_A_RACK = GangScenario(
    "a-composite-in-one-rack",
    (
        _act("all of it", *_tree("x", **topology(RACK)), *_tree_pods("x")),
        _act("a second one in the other rack", *_tree("y", **topology(RACK)), *_tree_pods("y")),
        _act("a third one not at all", *_tree("z", **topology(RACK)), *_tree_pods("z")),
    ),
    racks=("r1", "r1", "r1", "r2", "r2", "r2"),
)
EVERY = (
    WHOLE,
    TWO,
    LATER,
    INCOMPLETE,
    REPLACED,
    DELETED,
    GATED,
    MORE,
    RAISED,
    BASIC,
    TREE,
    TREE_INCOMPLETE,
    TREE_PART,
    ORPHANED,
    IN_A_RACK,
    NO_RACK,
    NO_LABEL,
    TREE_IN_A_RACK,
)
