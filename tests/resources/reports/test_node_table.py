"""The table of nodes: which GPUs are free, which workloads are on them, and in which order it is shown."""

from typing import Any

import pytest

from enginectl.output.node_table import Top, top_lines
from resources.base import labels
from resources.placement.usage_totals import room_node
from resources.reports.node_table import NodePods, NodeTable, of_workloads

RACK, ISLAND = "example.com/rack", "nvidia.com/gpu.clique"


def node(name: str, gpus: int = 8, *, ready: bool = True, cordoned: bool = False, **where: str) -> Any:
    """A node; `where`: its rack and its island."""
    keys = {"rack": RACK, "island": ISLAND}
    body = {
        "metadata": {"name": name, "labels": {keys[each]: value for each, value in where.items()}},
        "spec": {"unschedulable": cordoned},
        "status": {
            "allocatable": {"cpu": "64", **({"nvidia.com/gpu": str(gpus)} if gpus else {})},
            "conditions": [{"type": "Ready", "status": "True" if ready else "False"}],
        },
    }
    return room_node(body)


def pod(node: str, gpus: int = 0, *, set: str = "", clique: str = "worker", replica: str = "0", phase: str = "Running") -> dict[str, Any]:
    """A pod; without `set` that of somebody else."""
    found = {labels.PART_OF: set, labels.PODCLIQUE: f"{set}-{replica}-{clique}", labels.REPLICA_INDEX: replica} if set else {}
    amounts = {"nvidia.com/gpu": str(gpus)} if gpus else {}
    containers = [{"name": "main", "resources": {"requests": amounts, "limits": amounts}}]
    return {
        "metadata": {"name": "x", "namespace": "default", "labels": found},
        "spec": {"nodeName": node, "containers": containers},
        "status": {"phase": phase},
    }


def table_of(nodes: list[Any] | None, *pods: dict[str, Any], rack: str = RACK) -> NodeTable:
    """The table of these nodes and pods."""
    counted = NodePods()
    for each in pods:
        assert counted.add(each)
    return counted.table(nodes, rack, ISLAND, "NVLink clique")


def lines(table: NodeTable, *, verbose: bool = False) -> list[str]:
    """The lines for people."""
    return [line.text for line in top_lines(Top(table), verbose=verbose)]


def test_gpus_that_others_request_are_not_free() -> None:
    (row,) = table_of([node("a")], pod("a", 4, set="serving"), pod("a", 2)).rows

    assert (row.gpus, row.used, row.free) == (8, 6, 2)
    assert [(each.workload, each.clique, each.pods, each.gpus) for each in row.occupants] == [("serving", "worker", 1, 4)]


@pytest.mark.parametrize(
    ("made", "state"), [(node("a", cordoned=True), "cordoned"), (node("a", ready=False), "not ready"), (node("a"), "ready")]
)
def test_a_node_that_takes_no_pods_has_nothing_free(made: Any, state: str) -> None:
    (row,) = table_of([made], pod("a", 2)).rows

    assert (row.state, row.free) == (state, 6 if state == "ready" else 0)


def test_a_node_with_more_requests_than_gpus_has_none_free() -> None:
    assert table_of([node("a", 2)], pod("a", 4)).rows[0].free == 0


@pytest.mark.parametrize(
    "other",
    [
        pod("", 4, set="serving"),
        pod("a", 4, set="serving", phase="Succeeded"),
        {"metadata": None, "spec": {"nodeName": 3}},
        {"spec": {"nodeName": "a", "containers": "no"}},
        {},
    ],
)
def test_what_uses_nothing_counts_nothing(other: dict[str, Any]) -> None:
    (row,) = table_of([node("a")], other).rows

    assert (row.used, row.occupants) == (0, ())


def test_pods_of_a_clique_are_added_up_by_replica_and_in_order() -> None:
    pods = [
        pod("a", 1, set="serving", replica="1"),
        *[pod("a", 1, set="serving")] * 2,
        pod("a", set="serving", clique="leader"),
        pod("a", set="chat"),
    ]
    table = table_of([node("a")], *pods)

    assert [(each.workload, each.replica, each.clique, each.pods) for each in table.rows[0].occupants] == [
        ("chat", "0", "worker", 1),
        ("serving", "0", "leader", 1),
        ("serving", "0", "worker", 2),
        ("serving", "1", "worker", 1),
    ]
    assert lines(table)[2].endswith("default/chat-0 (worker 1), default/serving-0 (leader 1, worker 2), default/serving-1 (worker 1)")


def test_nodes_are_sorted_by_rack_and_island_and_those_without_come_last() -> None:
    nodes = [node("e"), node("d", island="2"), node("c", rack="r2"), node("b", rack="r1", island="2"), node("a", rack="r1", island="1")]
    table = table_of(nodes)

    assert [row.name for row in table.rows] == ["a", "b", "c", "d", "e"]
    assert (table.racks, table.islands) == (2, 2)
    assert [line for line in lines(table) if line.endswith("free") and not line.startswith(" ")] == [
        "rack r1, NVLink clique 1: 0 of 8 GPUs, 8 free",
        "rack r1, NVLink clique 2: 0 of 8 GPUs, 8 free",
        "rack r2: 0 of 8 GPUs, 8 free",
        "NVLink clique 2: 0 of 8 GPUs, 8 free",
        "total  2 racks, 2 NVLink cliques, 5 nodes, 0 of 40 GPUs, 40 free",
    ]


def test_nodes_without_gpus_and_pods_of_sets_are_counted_only() -> None:
    table = table_of([node("a", 0), node("b", 0), node("c", 0)], pod("b", set="serving"))

    assert ([row.name for row in table.rows], table.others) == (["b"], 2)
    assert lines(table)[-1] == "total  1 node, 0 of 0 GPUs, 0 free, 2 other nodes"
    assert lines(table_of([node("a", 0)])) == ["no node has GPUs or pods of a set; 1 other node"]


def test_neighbours_that_are_alike_and_empty_share_a_line_unless_all_are_asked_for() -> None:
    nodes = [node(f"n{number}", rack="r") for number in range(6)]
    table = table_of(nodes, pod("n3", 8, set="serving"))
    names = [line.split("  ")[1] for line in lines(table) if line.startswith("  ")]

    assert names == ["3 nodes: n0 … n2", "n3", "2 nodes: n4 … n5"]
    assert len([line for line in lines(table, verbose=True) if line.startswith("  ")]) == 6


def test_without_nodes_those_with_pods_of_sets_are_known() -> None:
    table = table_of(None, pod("b", 4, set="serving"), pod("a", 2), pod("a", 1, set="serving"))

    assert [(row.name, row.state, row.used, row.free) for row in table.rows] == [("a", "unknown", 3, 0), ("b", "unknown", 4, 0)]
    assert lines(table)[-1] == "total  2 nodes, 7 GPUs requested by sets"


def test_names_are_safe_to_show() -> None:
    table = table_of([node("a\x1b[31m", rack="\x1b]0;x\x07")], pod("a\x1b[31m", set="serving", clique="\x9b31m"))

    assert "\x1b" not in "".join(lines(table)) and "\x9b" not in "".join(lines(table))


def test_sets_choose_their_nodes_and_the_others_are_counted() -> None:
    table = table_of([node("a"), node("b"), node("c", 0)], pod("a", 1, set="serving"), pod("b", 1, set="chat"))

    assert [row.name for row in of_workloads(table, ["chat"], "").rows] == ["b"]
    assert of_workloads(table, ["chat"], "").others == 2
    assert of_workloads(table, [], "another").rows == ()
    assert of_workloads(table, [], "") is table
