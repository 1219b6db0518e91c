"""A node takes one pod of a domain: sets that need more nodes than there are get one note each."""

from typing import Any

import pytest

from engine.ids import ResourceId
from providers.fabrics.nvidia.fabric import Nvidia
from providers.fabrics.nvidia.names import AUTO, NAMED
from resources.base import kinds
from resources.domains.capacity import HOSTNAME, NodeCapacity, capacity_notes
from resources.domains.requests import RequestedDomain, requested_by_set
from tests.builders import clique, group, podcliqueset

Body = dict[str, Any]
GPUS = {"containers": [{"name": "main", "image": "x:1", "resources": {"limits": {"nvidia.com/gpu": "8"}}}]}
NVIDIA = Nvidia()


def auto(name: str, *cliques: Body, replicas: int = 1, **more: Any) -> tuple[ResourceId, Body]:
    """A set with a domain for each replica."""
    body = podcliqueset(name, *cliques, replicas=replicas, **more)
    return root(name), {**body, "metadata": {**body["metadata"], "annotations": {AUTO: "enabled"}}}


def root(name: str) -> ResourceId:
    """The set of that name."""
    return kinds.PODCLIQUESET.id("default", name)


def gpu(name: str = "worker", pods: int = 1, labels: Body | None = None, **spec: Any) -> Body:
    """A clique with GPUs."""
    return clique(name, pods, labels=labels, pod_spec={**GPUS, **spec})


def capacity(nodes: int, **taken: str) -> NodeCapacity:
    """So many nodes, some of them taken by a domain."""
    return NodeCapacity(frozenset(f"n{number}" for number in range(nodes)), taken)


def domain(name: str) -> ResourceId:
    """A domain of that name."""
    return NVIDIA.kind.id("default", name)


def test_a_set_that_needs_more_nodes_than_there_are_has_a_note() -> None:
    assert capacity_notes(NVIDIA, [auto("demo", gpu(pods=3), replicas=2)], capacity(5), {}) == {
        root("demo"): "its pods in ComputeDomains need 6 nodes, one for each pod: 5 of 5 are available"
    }


def test_with_enough_nodes_or_an_unknown_capacity_there_is_no_note() -> None:
    big = [auto(f"demo-{number}", gpu(pods=4), replicas=4) for number in range(10)]

    assert capacity_notes(NVIDIA, big, capacity(160), {}) == {}
    assert capacity_notes(NVIDIA, big, None, {}) == {}
    assert capacity_notes(NVIDIA, [auto("cpu", clique("w", 500))], capacity(1), {}) == {}


def test_nodes_of_other_domains_are_not_available_and_own_ones_are() -> None:
    sets, uids = [auto("demo", gpu(pods=2))], {domain("demo-0"): "u"}

    assert capacity_notes(NVIDIA, sets, capacity(3, n0="u", n1="u", n2="other"), uids) == {}
    assert "1 of 3 are available" in capacity_notes(NVIDIA, sets, capacity(3, n0="other", n1="other"), uids)[root("demo")]


def test_sets_that_fit_alone_but_not_together_have_notes_unless_they_have_their_nodes() -> None:
    sets, uids = [auto("a", gpu(pods=2)), auto("b", gpu(pods=2))], {domain("a-0"): "u", domain("b-0"): "v"}

    notes = capacity_notes(NVIDIA, sets, capacity(3), {})
    assert sorted(notes) == [root("a"), root("b")]
    assert notes[root("a")].endswith("all workloads together need 4, the cluster has 3")
    assert sorted(capacity_notes(NVIDIA, sets, capacity(3, n0="u", n1="u"), uids)) == [root("b")]


@pytest.mark.parametrize(
    ("spec", "note"),
    [
        ({"nodeSelector": {HOSTNAME: "n7"}}, "2 pods of clique worker must run on node n7, and a node takes one pod in a ComputeDomain"),
        (
            {"affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
                {"topologyKey": HOSTNAME, "labelSelector": {"matchLabels": {"app": "x"}}}
            ]}}},
            "2 pods of clique worker must run on the same node, and a node takes one pod in a ComputeDomain",
        ),
    ],
)  # fmt: skip
def test_pods_that_must_share_a_node_are_noted_without_a_cluster(spec: Body, note: str) -> None:
    notes = capacity_notes(NVIDIA, [auto("demo", gpu(pods=2, labels={"app": "x"}, **spec))], None, {})

    assert notes == {root("demo"): note}
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
def test_other_affinities_do_not_require_one_node(term: Any) -> None:
    affinity = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}

    assert capacity_notes(NVIDIA, [auto("demo", gpu(pods=2, labels={"app": "x"}, affinity=affinity))], None, {}) == {}


def test_the_pods_of_groups_and_replicas_are_counted() -> None:
    _, body = auto("demo", gpu("a", 2), gpu("b", 3), clique("cpu", 9), groups=(group("g", "b", replicas=2),), replicas=2)

    assert [(domain.id.name, domain.pods, domain.index) for domain in requested_by_set(root("demo"), body, NVIDIA)] == [
        ("demo-0", 8, 0),
        ("demo-1", 8, 1),
    ]


def test_a_named_domain_is_requested_once_for_all_replicas() -> None:
    body = podcliqueset("demo", clique("w", 2, pod_spec=GPUS, annotations={NAMED: "rack"}), replicas=3)

    assert [(domain.id.name, domain.pods, domain.index) for domain in requested_by_set(root("demo"), body, NVIDIA)] == [("rack", 6, None)]
    assert list(requested_by_set(root("demo"), {**body, "spec": {**body["spec"], "replicas": 0}}, NVIDIA)) == []


def test_a_set_without_its_defaults_requests_the_same_domains_as_with_them() -> None:
    body = podcliqueset("demo", clique("w", 2, pod_spec=GPUS, annotations={NAMED: "rack"}), replicas=3)
    without_replicas = {key: value for key, value in body["spec"].items() if key != "replicas"}
    (worker,) = body["spec"]["template"]["cliques"]
    default_clique = {**worker, "spec": {key: value for key, value in worker["spec"].items() if key != "replicas"}}
    template = {**body["spec"]["template"], "podCliqueScalingGroups": [{"name": "g", "cliqueNames": ["w"], "replicas": None}]}

    assert list(requested_by_set(root("demo"), {**body, "spec": without_replicas}, NVIDIA)) == []
    for each in (default_clique, {**worker, "spec": {**worker["spec"], "replicas": 0}}):
        spec = {**body["spec"], "template": {**template, "cliques": [each]}}
        assert [domain.pods for domain in requested_by_set(root("demo"), {**body, "spec": spec}, NVIDIA)] == [3]


@pytest.mark.parametrize("junk", [None, 1, "x", [], {}, [{"name": 3}], True, -5, 10**30])
def test_malformed_sets_are_read_without_an_error(junk: Any) -> None:
    _, body = auto("demo", gpu())
    bodies = [
        {**body, "spec": junk},
        {**body, "spec": {"replicas": junk, "template": {"cliques": [gpu()]}}},
        {**body, "spec": {"template": {"cliques": junk, "podCliqueScalingGroups": junk}}},
        {**body, "spec": {"template": {"cliques": [gpu()], "podCliqueScalingGroups": [{"cliqueNames": junk, "replicas": junk}]}}},
        {**body, "metadata": {**body["metadata"], "annotations": junk}},
    ]

    for each in bodies:
        requested = list(requested_by_set(root("demo"), each, NVIDIA))
        assert all(isinstance(domain, RequestedDomain) for domain in requested) and len(requested) <= 100_000
