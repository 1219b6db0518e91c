"""A node takes one pod in a domain: sets that ask for more are told, once, and the others are left in peace."""

from typing import Any

import pytest

from engine.ids import ResourceId
from providers.fabrics.nvidia import Nvidia
from providers.fabrics.nvidia_words import AUTO, NAMED
from resources.base import kinds
from resources.domains.capacity import HOSTNAME, NodeCapacity, capacity_notes
from resources.domains.requests import RequestedDomain, planned
from tests.builders import clique, group, podcliqueset

Body = dict[str, Any]
GPUS = {"containers": [{"name": "main", "image": "x:1", "resources": {"limits": {"nvidia.com/gpu": "8"}}}]}
NVIDIA = Nvidia()


def auto(name: str, *cliques: Body, replicas: int = 1, **more: Any) -> tuple[ResourceId, Body]:
    """A set that is in domains of its own."""
    body = podcliqueset(name, *cliques, replicas=replicas, **more)
    return root(name), {**body, "metadata": {**body["metadata"], "annotations": {AUTO: "enabled"}}}


def root(name: str) -> ResourceId:
    """The set of that name."""
    return kinds.PODCLIQUESET.id("default", name)


def gpu(name: str = "worker", pods: int = 1, labels: Body | None = None, **spec: Any) -> Body:
    """A clique with GPUs."""
    return clique(name, pods, labels=labels, pod_spec={**GPUS, **spec})


def room(nodes: int, **taken: str) -> NodeCapacity:
    """So many nodes with a place, some of them taken by a domain."""
    return NodeCapacity(frozenset(f"n{number}" for number in range(nodes)), taken)


def domain(name: str) -> ResourceId:
    """A domain of that name."""
    return NVIDIA.kind.id("default", name)


def test_a_set_that_needs_more_nodes_than_there_are_is_told_how_many() -> None:
    assert capacity_notes(NVIDIA, [auto("demo", gpu(pods=3), replicas=2)], room(5), {}) == {
        root("demo"): "its pods in ComputeDomains need 6 nodes, each of which takes one such pod: 5 of 5 can be had"
    }


def test_where_there_is_room_or_nobody_knows_there_is_nothing_to_tell() -> None:
    big = [auto(f"demo-{number}", gpu(pods=4), replicas=4) for number in range(10)]

    assert capacity_notes(NVIDIA, big, room(160), {}) == {}
    assert capacity_notes(NVIDIA, big, None, {}) == {}
    assert capacity_notes(NVIDIA, [auto("cpu", clique("w", 500))], room(1), {}) == {}


def test_places_of_others_are_not_to_be_had_and_its_own_are() -> None:
    sets, uids = [auto("demo", gpu(pods=2))], {domain("demo-0"): "u"}

    assert capacity_notes(NVIDIA, sets, room(3, n0="u", n1="u", n2="other"), uids) == {}
    assert "1 of 3 can be had" in capacity_notes(NVIDIA, sets, room(3, n0="other", n1="other"), uids)[root("demo")]


def test_sets_that_fit_alone_and_not_together_are_told_unless_they_have_their_places() -> None:
    sets, uids = [auto("a", gpu(pods=2)), auto("b", gpu(pods=2))], {domain("a-0"): "u", domain("b-0"): "v"}

    found = capacity_notes(NVIDIA, sets, room(3), {})
    assert sorted(found) == [root("a"), root("b")]
    assert found[root("a")].endswith("all workloads together need 4, and there are 3")
    assert sorted(capacity_notes(NVIDIA, sets, room(3, n0="u", n1="u"), uids)) == [root("b")]


@pytest.mark.parametrize(
    ("spec", "told"),
    [
        ({"nodeSelector": {HOSTNAME: "n7"}}, "2 pods of clique worker are to be on node n7, and a node takes one pod in a ComputeDomain"),
        (
            {"affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
                {"topologyKey": HOSTNAME, "labelSelector": {"matchLabels": {"app": "x"}}}
            ]}}},
            "2 pods of clique worker are to be on one node with one another, and a node takes one pod in a ComputeDomain",
        ),
    ],
)  # fmt: skip
def test_pods_that_must_share_a_node_are_told_without_any_cluster(spec: Body, told: str) -> None:
    found = capacity_notes(NVIDIA, [auto("demo", gpu(pods=2, labels={"app": "x"}, **spec))], None, {})

    assert found == {root("demo"): told}
    assert capacity_notes(NVIDIA, [auto("demo", gpu(pods=1, labels={"app": "x"}, **spec))], None, {}) == {}


@pytest.mark.parametrize(
    "term",
    [
        {"topologyKey": "rack", "labelSelector": {"matchLabels": {"app": "x"}}},
        {"topologyKey": HOSTNAME, "labelSelector": {"matchLabels": {"app": "y"}}},
        {"topologyKey": HOSTNAME},
        "junk",
    ],
)
def test_other_affinities_put_nobody_on_one_node(term: Any) -> None:
    affinity = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}

    assert capacity_notes(NVIDIA, [auto("demo", gpu(pods=2, labels={"app": "x"}, affinity=affinity))], None, {}) == {}


def test_what_is_planned_is_counted_through_groups_and_replicas() -> None:
    _, body = auto("demo", gpu("a", 2), gpu("b", 3), clique("cpu", 9), groups=(group("g", "b", replicas=2),), replicas=2)

    assert [(one.id.name, one.pods, one.index) for one in planned(root("demo"), body, NVIDIA)] == [("demo-0", 8, 0), ("demo-1", 8, 1)]


def test_a_domain_with_a_name_is_planned_once_for_all_replicas() -> None:
    body = podcliqueset("demo", clique("w", 2, pod_spec=GPUS, annotations={NAMED: "rack"}), replicas=3)

    assert [(one.id.name, one.pods, one.index) for one in planned(root("demo"), body, NVIDIA)] == [("rack", 6, None)]
    assert list(planned(root("demo"), {**body, "spec": {**body["spec"], "replicas": 0}}, NVIDIA)) == []


@pytest.mark.parametrize("junk", [None, 1, "x", [], {}, [{"name": 3}], True, -5, 10**30])
def test_whatever_stands_in_a_set_nothing_breaks(junk: Any) -> None:
    _, body = auto("demo", gpu())
    bodies = [
        {**body, "spec": junk},
        {**body, "spec": {"replicas": junk, "template": {"cliques": [gpu()]}}},
        {**body, "spec": {"template": {"cliques": junk, "podCliqueScalingGroups": junk}}},
        {**body, "spec": {"template": {"cliques": [gpu()], "podCliqueScalingGroups": [{"cliqueNames": junk, "replicas": junk}]}}},
        {**body, "metadata": {**body["metadata"], "annotations": junk}},
    ]

    for each in bodies:
        found = list(planned(root("demo"), each, NVIDIA))
        assert all(isinstance(one, RequestedDomain) for one in found) and len(found) <= 100_000
