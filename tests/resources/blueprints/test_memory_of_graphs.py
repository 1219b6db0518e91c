"""Graphs without Grove in the memory budget: what they grow by waits, and what runs is managed, repaired and scaled in."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from engine.memo import Memo
from engine.memory_budget import BYTES_PER_OTHER, REASON, with_allowances
from engine.observed import World
from engine.plan import Plan
from engine.proposal import compose
from resources.base import kinds
from resources.registry import BLUEPRINTS
from tests.kstatus import kstatus
from tests.laws.graphs import COMPONENTS, GraphToy
from tests.stories.graphs import graph, service

OF_TEN = 21 * BYTES_PER_OTHER
"""What a graph of ten LeaderWorkerSets takes: as many PodGroups, and a Service."""


class Limited(GraphToy):
    """A cluster without Grove and with an engine that has so many bytes for objects."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self.unserved, self.most, self.memory = COMPONENTS, most, Memo()

    def plans_of(self, observed: World, memo: Memo | None = None) -> tuple[Plan, ...]:
        """The plans of a pass, with what the memory has room for."""
        memo = memo or Memo()
        composed = compose(observed, BLUEPRINTS, self.configuration, memo)
        return super().plans_of(with_allowances(composed, BLUEPRINTS, self.configuration, self.most, memo), memo)

    def put_graph(self, name: str, replicas: int, **fields: Any) -> None:
        """The graph with so many replicas on two nodes each, written a minute after the last one."""
        self.now += timedelta(minutes=1)
        self.graph(graph(name, decode=service(replicas, nodes=2, **fields)))

    def settled(self) -> Mapping[str, Plan]:
        """Make passes until nothing changes any more, and return the last plans by graph."""
        for _ in range(12):
            plans = self.plans(self.memory)
            for plan in plans:
                self.apply(plan.operations)
            self.live()
            self.now += timedelta(seconds=1)
        return {plan.root.name: plan for plan in plans}

    def sets(self, name: str) -> int:
        """How many LeaderWorkerSets a graph has."""
        return sum(id.kind == "LeaderWorkerSet" and id.name.startswith(f"{name}-") for id in self.objects)

    def count(self, name: str) -> int:
        """How many objects a graph has."""
        return sum(id.kind != "DynamoGraphDeployment" and id.name.startswith(f"{name}-") for id in self.objects)

    def health(self, name: str) -> str:
        """What GitOps tools see of a graph."""
        return kstatus(self.objects[kinds.DYNAMO_GRAPH.id("default", name)])


def waits(plan: Plan) -> bool:
    return any(alarm.reason == REASON for alarm in plan.alarms)


def test_the_newest_graph_waits_as_a_whole_until_there_is_room() -> None:
    cluster = Limited(2 * OF_TEN)
    for name in ("first", "second", "third"):
        cluster.put_graph(name, 10)

    plans = cluster.settled()

    assert [cluster.count(name) for name in ("first", "second", "third")] == [21, 21, 0]
    assert [name for name, plan in plans.items() if waits(plan)] == ["third"]
    assert (cluster.health("first"), cluster.health("third")) == ("Current", "Failed")
    assert all(plan.operations == () for plan in cluster.plans(cluster.memory))

    cluster.most = 3 * OF_TEN
    plans = cluster.settled()
    assert (cluster.sets("third"), cluster.health("third"), any(map(waits, plans.values()))) == (10, "Current", False)


def test_a_graph_that_runs_does_not_grow_and_is_repaired_updated_and_scaled_in_without_memory() -> None:
    cluster = Limited(OF_TEN)
    cluster.put_graph("chat", 10)
    cluster.settled()
    cluster.most = 0

    for id in [id for id in cluster.objects if id.name in ("chat-decode-9", "chat-decode")]:
        cluster.delete(id)
    assert (cluster.sets("chat"), waits(cluster.settled()["chat"]), cluster.sets("chat")) == (9, False, 10)

    cluster.put_graph("chat", 12)
    plans = cluster.settled()
    assert (cluster.count("chat"), waits(plans["chat"]), cluster.health("chat")) == (21, True, "Failed")

    cluster.put_graph("chat", 8, labels={"a": "b"})
    plans = cluster.settled()
    assert (cluster.count("chat"), waits(plans["chat"]), cluster.health("chat")) == (17, False, "Current")
