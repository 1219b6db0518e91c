"""Graphs without Grove whose replicas are gangs of kube-scheduler: they settle, keep what they were created for, and leave nothing."""

from typing import Any

from msgspec.structs import replace

from engine.ids import ResourceId
from providers.schedulers.kube import KUBE, kube_scheduler
from resources.base import kinds
from resources.ports.configuration import Configuration, GangMode
from tests.laws.graphs import GraphToy
from tests.stories.graphs import graph, service

GROVE, VOLCANO = kinds.PODCLIQUESET.key, kinds.VOLCANO_POD_GROUP.key
CHAT = kinds.DYNAMO_GRAPH.id("default", "chat")


def with_mode(mode: GangMode) -> Configuration:
    """The configuration with that mode of kube-scheduler's gangs."""
    return replace(GraphToy.configuration, schedulers={KUBE: kube_scheduler(mode)}, default_scheduler=KUBE)


class Cluster(GraphToy):
    """A cluster without Grove."""

    configuration = with_mode(GangMode.AUTO)

    def __init__(self, *unserved: str) -> None:
        super().__init__()
        self.unserved = frozenset({GROVE, *unserved})

    def replicas(self, count: int, **fields: Any) -> None:
        """The graph with a service of so many replicas on two nodes each, applied and settled."""
        self.graph(graph() | {"spec": {"services": {"decode": service(count, nodes=2, **fields)}}})
        self.settle()

    def groups(self) -> set[tuple[str, str]]:
        """API group and name of each PodGroup."""
        return {(id.group, id.name) for id in self.objects if id.kind == kinds.POD_GROUP.name}

    def uids(self) -> dict[ResourceId, str]:
        """Every object with its uid."""
        return {id: body["metadata"]["uid"] for id, body in self.objects.items()}

    def is_settled(self) -> bool:
        """Whether nothing is to be done."""
        return all(not plan.operations and not plan.pending and not plan.deferred for plan in self.plans())


def test_without_volcano_a_graph_settles_scales_and_leaves_nothing() -> None:
    cluster = Cluster(VOLCANO)
    cluster.replicas(1)
    assert cluster.groups() == {("scheduling.k8s.io", "chat-decode-0")} and cluster.is_settled()

    cluster.replicas(3)
    assert {name for _, name in cluster.groups()} == {f"chat-decode-{index}" for index in range(3)} and cluster.is_settled()
    cluster.replicas(1)
    assert cluster.groups() == {("scheduling.k8s.io", "chat-decode-0")} and cluster.is_settled()

    cluster.delete(CHAT)
    cluster.settle()
    assert cluster.objects == {}


def test_a_graph_keeps_its_group_scheduler_when_another_one_is_installed() -> None:
    cluster = Cluster(VOLCANO)
    cluster.replicas(1)
    before = cluster.uids()
    cluster.unserved = frozenset({GROVE})

    assert cluster.is_settled()
    cluster.replicas(2)
    assert before.items() <= cluster.uids().items()
    assert cluster.groups() == {("scheduling.k8s.io", "chat-decode-0"), ("scheduling.k8s.io", "chat-decode-1")}


def test_an_upgraded_engine_that_learns_of_pod_groups_touches_no_graph_of_volcano() -> None:
    cluster = Cluster(kinds.POD_GROUP.key)
    cluster.configuration = with_mode(GangMode.OFF)
    cluster.replicas(1)
    before = cluster.uids()
    cluster.configuration, cluster.unserved = with_mode(GangMode.AUTO), frozenset({GROVE})

    assert cluster.is_settled()
    cluster.replicas(2)
    assert before.items() <= cluster.uids().items()
    assert {group for group, _ in cluster.groups()} == {"scheduling.volcano.sh"}


def test_where_volcano_is_removed_a_graph_of_it_stays_as_it_is_with_the_reason() -> None:
    cluster = Cluster()
    cluster.replicas(1)
    before = cluster.uids()
    cluster.unserved = frozenset({GROVE, VOLCANO})
    (plan,) = [plan for plan in cluster.plans() if plan.root == CHAT]

    assert any("need scheduling.volcano.sh, which it does not serve" in wait.why for wait in plan.deferred)
    cluster.settle()
    assert cluster.uids() == before
