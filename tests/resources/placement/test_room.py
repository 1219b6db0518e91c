"""Room: which pods are refused, and what is said about it."""

from collections.abc import Mapping
from typing import Any

import pytest
from msgspec.structs import replace

from resources.placement.cluster_room import FabricSlots
from resources.placement.packing import left_over
from resources.placement.pod_demand import DemandBook, PodDemand
from resources.placement.refusal_text import amount_text, refusal_text
from resources.placement.room import Room, RoomRefusal
from resources.placement.usage_totals import UsageTotals, room_node

Body = dict[str, Any]
GPU = "nvidia.com/gpu"


def node(number: int, gpus: int = 8, labels: Mapping[str, str] | None = None, **spec: Any) -> Body:
    room = {"cpu": "64", "memory": "256Gi", GPU: str(gpus), "pods": "110"}
    metadata = {"name": f"n{number}", "labels": {"kubernetes.io/hostname": f"n{number}"} | dict(labels or {})}
    return {"metadata": metadata, "spec": spec, "status": {"allocatable": room}}


def pod(gpus: int = 8, node: str = "", namespace: str = "ml", **spec: Any) -> Body:
    container = {"name": "main", "resources": {"requests": {GPU: str(gpus)}}}
    spec = {"containers": [container], **spec, **({"nodeName": node} if node else {})}
    return {
        "metadata": {"name": "p", "uid": f"uid-{node}-{gpus}-{namespace}", "namespace": namespace, "labels": {"app": "x"}},
        "spec": spec,
    }


class Cluster:
    """Nodes with pods of others, and the room of them."""

    def __init__(self, nodes: list[Body], *running: Body, slots: Mapping[str, FabricSlots] | None = None) -> None:
        totals = UsageTotals({"app"})
        for body in running:
            totals.add(body)
        cluster = replace(totals.room(map(room_node, nodes)), slots=slots or {})
        self.room, self.book = Room(cluster), DemandBook(cluster.priorities)
        self.room.occupy_slots()

    def demand(self, body: Body, slots: Mapping[str, int] | None = None) -> PodDemand:
        demand = self.book.demand_of(body, slots or {})
        assert demand is not None
        return demand

    def why(self, body: Body, count: int = 1, slots: Mapping[str, int] | None = None) -> str:
        """Why so many pods cannot be placed; empty if they are not refused."""
        refusal = self.room.refusal({self.demand(body, slots): count})
        return refusal_text(refusal, self.room) if refusal is not None else ""


def test_a_pod_that_is_larger_than_every_node_is_told_what_the_largest_has() -> None:
    cluster = Cluster([node(0, gpus=4), node(1, gpus=2)])

    assert cluster.why(pod(8)) == ("8 nvidia.com/gpu requested, the largest of 2 nodes that suit has 4; ask for less, or add larger nodes")


def test_a_resource_that_no_node_has_is_told_with_the_name_that_was_meant() -> None:
    named = {"spec": {"containers": [{"name": "main", "resources": {"requests": {"nvidia.com/gpus": "1"}}}]}}

    assert Cluster([node(0, gpus=4), node(1, gpus=2)]).why(pod(1) | named) == (
        "1 nvidia.com/gpus requested, no node that suits has any (did you mean nvidia.com/gpu?); ask for less, or add larger nodes"
    )


def test_a_label_that_no_node_has_is_named() -> None:
    suit = "label, untaint, uncordon or add nodes, or correct what the pods require"
    cluster = Cluster([node(0, labels={"zone": "a"})])

    assert cluster.why(pod(1, nodeSelector={"zone": "x"})) == f"no node has the label zone=x; {suit}"
    terms = [{"matchExpressions": [{"key": "zone", "operator": "In", "values": ["x"]}]}]
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}
    assert cluster.why(pod(1, affinity=affinity)) == (
        f"the only node does not suit: 1 without what the required node affinity asks for; {suit}"
    )
    assert cluster.why(pod(1, nodeName="gone")) == f"node gone does not exist; {suit}"
    assert Cluster([]).why(pod(1)) == f"the cluster has no nodes; {suit}"


def test_one_node_and_one_pod_have_their_words() -> None:
    cluster = Cluster([node(0, gpus=4, labels={"rack": "r"})])
    terms = {"labelSelector": {"matchLabels": {"app": "x"}}, "topologyKey": "rack"}
    near = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [terms]}}
    apart = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [terms]}}

    assert cluster.why(pod(8)).startswith("8 nvidia.com/gpu requested, the only node that suits has 4")
    assert cluster.why(pod(1), 5).startswith("1 node that suits has room for 4 of 5 pods")
    assert "1 node that suits has 1 value of it" in cluster.why(pod(1, affinity=apart), 2)
    refused = RoomRefusal((cluster.demand(pod(1, affinity=near)),), 1, 0, cluster.room.cluster.nodes, label="rack", together=True)
    assert refusal_text(refused, cluster.room).startswith("1 pod must be at one value of node label rack, and none has room for it")


def test_nodes_that_do_not_suit_are_counted_by_their_reasons() -> None:
    taint = {"key": "gpu", "value": "yes", "effect": "NoSchedule"}
    nodes = [node(0, taints=[taint]), node(1, taints=[taint]), node(2, unschedulable=True), node(3, labels={"zone": "a"}, taints=[taint])]

    assert Cluster(nodes).why(pod(1)) == (
        "none of 4 nodes suits: 3 with taints that are not tolerated (gpu=yes:NoSchedule), 1 cordoned; "
        "label, untaint, uncordon or add nodes, or correct what the pods require"
    )


def test_a_node_that_is_not_ready_may_be_ready_again() -> None:
    sick = node(0, taints=[{"key": "node.kubernetes.io/unreachable", "effect": "NoExecute"}])
    cluster = Cluster([sick])

    assert cluster.why(pod(8)) == ""
    assert left_over(cluster.room, {cluster.demand(pod(8)): 1}) == {cluster.demand(pod(8)): 1}


def test_pods_that_take_a_node_each_are_told_how_many_are_free_and_who_has_the_others() -> None:
    taken = [pod(8, node=f"n{number}", namespace="team-b") for number in range(5)]
    cluster = Cluster([node(number) for number in range(10)], *taken)

    assert cluster.why(pod(8), 5) == ""
    assert cluster.why(pod(8), 15) == (
        "15 pods need 15 nodes, one for each: 5 of 10 are free (pods of namespace team-b have the rest); free or add nodes, or ask for less"
    )


def test_a_place_in_a_domain_is_one_for_each_node_however_small_the_pods_are() -> None:
    taken = {f"n{number}": "another-domain" for number in range(5)}
    slots = {"ComputeDomain": FabricSlots(frozenset(f"n{number}" for number in range(10)), taken)}
    cluster = Cluster([node(number) for number in range(12)], slots=slots)

    assert cluster.why(pod(1), 15, {"ComputeDomain": 1}).startswith(
        "15 pods need 15 nodes, one for each: 5 of 12 are free, and a node takes one pod in a ComputeDomain; free or add nodes"
    )
    assert cluster.why(pod(1), 5, {"ComputeDomain": 1}) == ""


def test_pods_of_several_kinds_need_a_place_each() -> None:
    slots = {"ComputeDomain": FabricSlots(frozenset({"n0", "n1", "n2"}), {"n0": "another-domain"})}
    cluster = Cluster([node(number) for number in range(3)], slots=slots)
    one, other = (cluster.demand(pod(gpus), {"ComputeDomain": 1}) for gpus in (1, 2))

    assert cluster.room.refusal({one: 1, other: 1}) is None
    refusal = cluster.room.refusal({one: 2, other: 1})
    assert refusal is not None and refusal_text(refusal, cluster.room).startswith(
        "together with others they need 3 nodes: 2 of 3 are free, and a node takes one pod in a ComputeDomain; free or add nodes"
    )


def test_smaller_pods_are_counted_by_the_copies_that_each_node_has_room_for() -> None:
    cluster = Cluster([node(0), node(1, gpus=7)], pod(1, node="n0"))

    assert cluster.why(pod(3), 4) == ""
    assert cluster.why(pod(3), 5).startswith("2 nodes that suit have room for 4 of 5 pods (pods of namespace ml have the rest)")


def test_pods_of_several_sizes_are_refused_by_what_they_request_in_all() -> None:
    cluster = Cluster([node(0), node(1)])
    large, small = cluster.demand(pod(8)), cluster.demand(pod(4))

    assert cluster.room.refusal({large: 1, small: 2}) is None
    refusal = cluster.room.refusal({large: 1, small: 3})
    assert refusal is not None and refusal_text(refusal, cluster.room).startswith(
        "together with others they request 20 nvidia.com/gpu, and 2 nodes that suit have 16 free"
    )


def test_pods_that_exclude_one_another_need_as_many_values_of_the_label() -> None:
    term = {"labelSelector": {"matchLabels": {"app": "x"}}, "topologyKey": "rack"}
    affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    cluster = Cluster([node(number, labels={"rack": f"r{number % 2}"}) for number in range(6)])

    assert cluster.why(pod(1, affinity=affinity), 2) == ""
    assert cluster.why(pod(1, affinity=affinity), 3) == (
        "no two of 3 pods may be at one value of node label rack, and 6 nodes that suit have 2 values of it; "
        "free or add nodes, or ask for less"
    )


def test_pods_that_belong_together_need_room_at_one_value_of_the_label() -> None:
    term = {"labelSelector": {"matchLabels": {"app": "x"}}, "topologyKey": "rack"}
    affinity = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    nodes = [node(number, labels={"rack": f"r{number % 2}"}) for number in range(6)]

    assert Cluster(nodes).why(pod(8, affinity=affinity), 3) == ""
    assert (
        Cluster(nodes)
        .why(pod(8, affinity=affinity), 4)
        .startswith("all 4 pods must be at one value of node label rack, and none has room for more than 3")
    )
    with_two_racks = [pod(8, node="n0"), pod(8, node="n1")]
    assert Cluster(nodes, *with_two_racks).why(pod(8, affinity=affinity), 4) == "", "They may join pods in both racks."


@pytest.mark.parametrize(
    ("selector", "named"),
    [
        ({"matchLabels": {"app": "y"}}, "app=y"),
        ({"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["x", "z"]}]}, "app NotIn x z"),
        (None, "no selector"),
    ],
)
def test_pods_that_must_be_beside_others_are_refused_while_none_of_these_is_or_comes(selector: Any, named: str) -> None:
    term = {"labelSelector": selector, "topologyKey": "rack"}
    affinity = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    nodes = [node(number, labels={"rack": "r"}) for number in range(2)]
    beside, other = pod(8, affinity=affinity), pod(8)
    other["metadata"]["labels"] = {"app": "y"}
    running = {**pod(1, node="n1"), "metadata": {**pod(1)["metadata"], "labels": {"app": "y"}}}

    assert Cluster(nodes).why(beside, 2) == (
        f"2 pods must be beside the pods that the required affinity names ({named}), and none of them is on a node; "
        "create those first, or correct what the pods require"
    )
    is_there = Cluster(nodes, running)
    assert bool(is_there.why(beside)) is (selector is None)
    comes = Cluster(nodes)
    comes.room.expect(comes.demand(other))
    assert bool(comes.why(beside)) is (selector is None)
    anywhere = {
        "podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{**term, "namespaceSelector": {"matchLabels": {"a": "b"}}}]}
    }
    assert Cluster(nodes).why(pod(8, affinity=anywhere)) == "", "Which namespaces that selects is not known."


def test_pods_of_lower_priority_leave_it_open() -> None:
    cluster = Cluster([node(0)], pod(8, node="n0", priority=-10, priorityClassName="low"))
    demand = cluster.demand(pod(8))

    assert cluster.room.refusal({demand: 1}) is not None
    assert not cluster.room.is_certain(demand)
    assert cluster.room.refusal_with_preemption(demand, 1) is None
    assert cluster.room.refusal_with_preemption(demand, 2) is not None
    assert cluster.room.is_certain(cluster.demand(pod(8, preemptionPolicy="Never")))
    assert cluster.room.is_certain(cluster.demand(pod(8, priorityClassName="low"))), "Its value is known from the pod that runs."
    assert not cluster.room.is_certain(cluster.demand(pod(8, priorityClassName="of-nobody")))


def test_another_scheduler_leaves_it_open() -> None:
    cluster = Cluster([node(0, gpus=4)])

    assert not cluster.room.is_certain(cluster.demand(pod(8, schedulerName="kai-scheduler")))


def test_pods_that_have_ended_or_are_being_deleted_use_nothing() -> None:
    ended = {**pod(8, node="n0"), "status": {"phase": "Succeeded"}}
    going = pod(8, node="n0", namespace="other")
    going["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"

    assert Cluster([node(0)], ended, going).why(pod(8)) == ""


def test_a_pod_that_is_gone_leaves_its_room() -> None:
    cluster = Cluster([node(0)])
    cluster.room.hold("a", pod(8), "n0", {GPU: 8000, "pods": 1000})
    assert cluster.why(pod(8)) != ""

    assert cluster.room.release("a")

    assert cluster.why(pod(8)) == ""


@pytest.mark.parametrize("value", [5, "text", None, [5], {"a": "b"}, [{"a": "b"}], [None]])
def test_specs_of_any_shape_are_judged_without_an_error(value: Any) -> None:
    term = {"labelSelector": {"matchExpressions": [{"key": "app", "operator": "In", "values": value}]}, "matchLabelKeys": value}
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    terms = [{**term, "topologyKey": "rack", "namespaces": value}, {**term, "namespaceSelector": value}, {"labelSelector": value}]
    node_terms = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "Gt", "values": value}]}]}
    affinity = {
        "podAffinity": {required: terms},
        "podAntiAffinity": {required: value},
        "nodeAffinity": {required: node_terms},
    }
    spec = {"affinity": affinity, "tolerations": value, "topologySpreadConstraints": value, "nodeSelector": value}
    cluster = Cluster([node(0, labels={"rack": "r"})], pod(1, node="n0"))

    for broken in (spec, {"affinity": value}, {"affinity": {"podAffinity": value}}, {"priority": value, "schedulerName": value}):
        demand = cluster.book.demand_of(pod(1, **broken), {})
        assert demand is not None
        cluster.room.refusal({demand: 3})
        left_over(cluster.room, {demand: 3})


def test_large_fleets_are_counted_and_not_listed() -> None:
    cluster = Cluster([node(number) for number in range(5_000)])

    assert cluster.why(pod(1), 40_000) == ""
    assert cluster.why(pod(1), 100_000).startswith("5000 nodes that suit have room for 40000 of 100000 pods")


@pytest.mark.parametrize(
    ("resource", "thousandths", "text"),
    [
        ("cpu", 1500, "1500m"),
        (GPU, 8000, "8"),
        ("memory", 1000 * 2**36, "64Gi"),
        ("memory", 1000 * 10**9, "0.9Gi"),
        ("memory", 1000, "1"),
    ],
)
def test_amounts_are_written_as_people_write_them(resource: str, thousandths: int, text: str) -> None:
    assert amount_text(resource, thousandths) == text
