"""Graphs above limits that are lower than before: `engine run` goes on, lets them be scaled in, and lets nothing grow by surprise."""

from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from engine.memo import Memo
from resources.base import kinds
from resources.blueprints.graph_meaning import lookups_of
from resources.dynamo.model.graph import ENABLE_GROVE
from resources.dynamo.objects import replica_limit
from resources.dynamo.objects.pod_template import INSTANCE
from resources.ports.configuration import SET_LIMITS, Configuration, WorkloadLimits
from tests.laws.graphs import COMPONENTS, GROVE, GraphToy
from tests.stories.graphs import graph, service

CHAT, SET = (kind.id("default", "chat") for kind in (kinds.DYNAMO_GRAPH, kinds.PODCLIQUESET))
LIMITED = replace(GraphToy.configuration, limits=WorkloadLimits(replace(SET_LIMITS, pods=5)))
HUGE = 2**31 - 1
IMAGE: dict[str, Any] = {
    "extraPodSpec": {"mainContainer": {"image": "example/dynamo:2", "command": ["sh", "-c"], "args": ["python3 -m dynamo.vllm"]}}
}


def pods_limited(most: int) -> Configuration:
    """The settings with that limit of pods."""
    return replace(LIMITED, limits=WorkloadLimits(replace(SET_LIMITS, pods=most)))


class Cluster(GraphToy):
    """A cluster in which the limits of pods are lowered from 8 to 5 once a graph with 8 pods has settled."""

    def __init__(self, unserved: frozenset[str], nodes: int = 1) -> None:
        super().__init__()
        self.unserved, self.nodes = unserved, nodes
        self.pods_of_graph(8)
        self.configuration = LIMITED

    def pods_of_graph(self, count: int, **fields: Any) -> None:
        """The graph with so many pods, applied and carried out."""
        self.graph(graph(decode=service(count // self.nodes, nodes=self.nodes, **fields)))
        self.passes()

    def passes(self) -> None:
        """As many passes as any change here takes, whether or not all becomes ready."""
        memo = Memo()
        for _ in range(15):
            for plan in self.plans(memo):
                self.apply(plan.operations)
            self.live()
            self.now += timedelta(seconds=1)

    def lose(self, kind: str) -> None:
        """Somebody deletes an object of that kind."""
        self.delete(next(id for id in self.objects if id.kind == kind))
        self.passes()

    def count(self, kind: str) -> int:
        """How many objects of a kind there are."""
        return sum(id.kind == kind for id in self.objects)

    def asked(self) -> int:
        """How many pods its Deployments and LeaderWorkerSets ask for."""
        specs = [body["spec"] for id, body in self.objects.items() if id.kind in ("Deployment", "LeaderWorkerSet")]
        return sum(spec.get("replicas", 1) * spec.get("leaderWorkerTemplate", {"size": 1})["size"] for spec in specs)

    def stalled(self) -> str:
        """Why the graph does not become ready."""
        return "; ".join(each["message"] for each in self.objects[CHAT]["status"]["conditions"] if each["type"] == "Stalled")

    def images(self) -> set[str]:
        """The images of the leaders."""
        sets = (body for id, body in self.objects.items() if id.kind == "LeaderWorkerSet")
        templates = (body["spec"]["leaderWorkerTemplate"]["leaderTemplate"] for body in sets)
        return {template["spec"]["containers"][0]["image"] for template in templates}

    def state(self) -> str:
        """The state in the status of the graph."""
        state: str = self.objects[CHAT]["status"]["state"]
        return state


@pytest.mark.parametrize(("unserved", "nodes", "kind"), [(COMPONENTS, 2, "LeaderWorkerSet"), (GROVE, 1, "Pod"), (GROVE, 2, "Pod")])
def test_what_a_graph_above_a_lower_limit_loses_is_made_again_and_it_can_be_scaled_in(
    unserved: frozenset[str], nodes: int, kind: str
) -> None:
    cluster = Cluster(unserved, nodes)
    before = cluster.count(kind)

    cluster.lose(kind)
    assert (cluster.count(kind), cluster.state()) == (before, "successful")

    cluster.pods_of_graph(6)
    assert (cluster.state(), [plan.operations for plan in cluster.plans() if plan.operations]) == ("successful", [])


@pytest.mark.parametrize("by_adapter", [False, True], ids=["graph", "adapter"])
@pytest.mark.parametrize("nodes", [1, 2])
def test_without_grove_nothing_is_added_beyond_the_limit_of_pods(nodes: int, by_adapter: bool) -> None:
    cluster = Cluster(COMPONENTS, nodes)
    fields = {"scalingAdapter": {"enabled": True}} if by_adapter else {}
    cluster.pods_of_graph(8, **fields)

    def scaled(count: int) -> str:
        if by_adapter:
            cluster.write(kinds.SCALING_ADAPTER.id("default", "chat-decode"), {"spec": {"replicas": count // nodes}})
            cluster.passes()
        else:
            cluster.pods_of_graph(count, **fields)
        return cluster.stalled()

    says = scaled(2_000_000)
    assert f"service decode asks for {2_000_000 // nodes} replicas and gets {8 // nodes}. What exists stays" in says
    assert "(limits.set.pods)" in says and cluster.asked() == 8

    assert (scaled(6), cluster.asked(), cluster.state()) == ("", 6, "successful")
    cluster.configuration = pods_limited(7)
    assert f"gets {7 // nodes}" in scaled(8) and cluster.asked() == 7 // nodes * nodes
    assert (scaled(2), cluster.asked(), cluster.state()) == ("", 2, "successful")


def test_a_deployment_that_is_lost_is_made_again_up_to_a_lower_limit() -> None:
    cluster = Cluster(COMPONENTS)

    cluster.lose("Deployment")
    assert cluster.asked() == 5 and "asks for 8 replicas and gets 5" in cluster.stalled()

    cluster.pods_of_graph(4)
    assert (cluster.asked(), cluster.state(), cluster.stalled()) == (4, "successful", "")


def test_without_grove_more_nodes_are_not_added_beyond_the_limit_of_pods() -> None:
    cluster = Cluster(COMPONENTS, nodes=2)

    cluster.graph(graph(decode=service(4, nodes=1000)))
    cluster.passes()
    assert cluster.asked() == 8
    assert "decode asks for 4 replicas on 1000 nodes each and gets 4 on 2. What exists stays. Scale it in, or raise" in cluster.stalled()

    cluster.graph(graph(decode=service(1, nodes=4)))
    cluster.passes()
    assert (cluster.asked(), cluster.state(), cluster.stalled()) == (4, "successful", "")


@pytest.mark.parametrize("by_adapter", [False, True], ids=["graph", "adapter"])
def test_while_a_service_may_not_get_more_nodes_all_else_of_its_graph_is_carried_out(by_adapter: bool) -> None:
    cluster = Cluster(COMPONENTS)
    cluster.configuration = pods_limited(20)
    adapter: dict[str, Any] = {"scalingAdapter": {"enabled": True}} if by_adapter else {}
    for nodes in (2, 10):
        cluster.graph(graph(decode=service(4, nodes=nodes), front=service(6, **adapter)))
        cluster.passes()
    assert cluster.asked() == 4 * 2 + 6

    for kind in ("LeaderWorkerSet", "Deployment"):
        cluster.lose(kind)
        assert cluster.asked() == 4 * 2 + 6
    if by_adapter:
        cluster.write(kinds.SCALING_ADAPTER.id("default", "chat-front"), {"spec": {"replicas": 1}})
    cluster.graph(graph(decode=service(4, nodes=10, **IMAGE), front=service(6 if by_adapter else 1, **adapter)))
    cluster.passes()

    assert (cluster.asked(), cluster.images()) == (4 * 2 + 1, {"example/dynamo:2"})
    assert "decode asks for 4 replicas on 10 nodes each and gets 4 on 2" in cluster.stalled()
    cluster.graph(graph(decode=service(1, nodes=10, **IMAGE), front=service(1)))
    cluster.passes()
    assert (cluster.asked(), cluster.state()) == (11, "successful")


@pytest.mark.parametrize(
    ("unserved", "before", "after", "pods"),
    [
        (COMPONENTS, (8, 1), (8, 2), 8),
        (COMPONENTS, (8, 1), (4, 2), 8),
        (COMPONENTS, (8, 1), (1, 10), 1),
        (COMPONENTS, (8, 1), (6, 2), 8),
        (COMPONENTS, (8, 1), (3, 4), 8),
        (COMPONENTS, (4, 2), (8, 1), 8),
        (COMPONENTS, (4, 2), (9, 1), 8),
        (GROVE, (8, 1), (8, 1), 8),
        (GROVE, (4, 2), (4, 2), 8),
        (GROVE, (4, 2), (8, 1), 8),
        (GROVE, (1, 1), (1, 6), 6),
    ],
    ids=str,
)
def test_what_runs_above_a_lower_limit_is_not_scaled_in_where_other_objects_run_it(
    unserved: frozenset[str], before: tuple[int, int], after: tuple[int, int], pods: int
) -> None:
    cluster = Cluster(unserved)
    cluster.configuration = GraphToy.configuration
    cluster.graph(graph(decode=service(before[0], nodes=before[1])))
    cluster.passes()

    cluster.configuration, cluster.unserved = LIMITED, frozenset()
    manifest = graph(decode=service(after[0], nodes=after[1]))
    manifest["metadata"]["annotations"] = {**manifest["metadata"].get("annotations", {}), ENABLE_GROVE: "false"}
    cluster.graph(manifest)
    cluster.passes()

    assert (cluster.asked(), cluster.count("PodCliqueSet")) == (pods, 0)


@pytest.mark.parametrize(("measure", "nodes"), [("pods", 1), ("PodCliques", 2)])
def test_components_are_not_replaced_by_a_set_that_is_too_large_to_be_created(measure: str, nodes: int) -> None:
    cluster = Cluster(COMPONENTS, nodes)
    cluster.configuration = replace(LIMITED, limits=WorkloadLimits(replace(SET_LIMITS, **{"pods" if nodes == 1 else "cliques": 5})))

    cluster.unserved = frozenset()
    cluster.pods_of_graph(8)
    (wait,) = (wait for plan in cluster.plans() for wait in plan.deferred)
    assert "Deployments run the graph and stay" in wait.why
    assert f"the PodCliqueSet could not be created: spec: Invalid value: 8: must not have more than 5 {measure}" in wait.why
    assert wait.blocked and wait.to_do.startswith("Scale it in") and (cluster.asked(), cluster.count("PodCliqueSet")) == (8, 0)

    cluster.pods_of_graph(4)
    assert (cluster.asked(), cluster.count("Pod"), cluster.state()) == (0, 4, "successful")


@pytest.mark.parametrize("size", [0, 1, None])
def test_a_leaderworkerset_whose_size_another_writer_has_changed_is_repaired_and_stays(size: int | None) -> None:
    cluster = Cluster(COMPONENTS, nodes=2)
    for id in [id for id in cluster.objects if id.kind == "LeaderWorkerSet"]:
        cluster.write(id, {"spec": {"leaderWorkerTemplate": {"size": size}}})

    cluster.pods_of_graph(12)

    assert (cluster.count("LeaderWorkerSet"), cluster.asked(), cluster.count("Deployment")) == (4, 8, 0)


def test_replicas_that_are_lost_do_not_take_running_ones_with_them() -> None:
    cluster = Cluster(COMPONENTS)
    cluster.configuration, cluster.nodes = GraphToy.configuration, 2
    cluster.pods_of_graph(24)
    cluster.configuration = LIMITED

    for index in range(10):
        cluster.delete(kinds.LEADER_WORKER_SET.id("default", f"chat-decode-{index}"))
    cluster.passes()

    assert (cluster.asked(), cluster.state()) == (24, "successful")


def test_without_a_webhook_only_the_growth_of_a_set_is_blocked_also_if_it_is_made_anew() -> None:
    cluster = Cluster(GROVE)

    cluster.pods_of_graph(HUGE)
    assert cluster.count("Pod") == 8 and "asks for 2147483647 replicas and gets 8" in cluster.stalled()

    cluster.lose("PodCliqueSet")
    assert cluster.count("Pod") == 0 and "spec.replicas is 1, of which 0 are created" in cluster.stalled()


def test_a_set_that_is_too_large_to_be_created_again_is_not_replaced() -> None:
    cluster = Cluster(GROVE)
    uid = cluster.objects[SET]["metadata"]["uid"]

    cluster.nodes = 2
    cluster.pods_of_graph(8)
    (wait,) = (wait for plan in cluster.plans() for wait in plan.deferred)
    assert "it could not be created again: spec: Invalid value: 8: must not have more than 5 pods" in wait.why
    assert (cluster.count("Pod"), cluster.objects[SET]["metadata"]["uid"]) == (8, uid)

    cluster.pods_of_graph(4)
    assert (cluster.count("Pod"), cluster.state()) == (4, "successful")


@pytest.mark.parametrize("unserved", [COMPONENTS, GROVE])
def test_a_new_graph_above_the_limits_is_not_carried_out(unserved: frozenset[str]) -> None:
    cluster = GraphToy()
    cluster.unserved, cluster.configuration = unserved, LIMITED
    cluster.graph(graph(decode=service(6)))

    plans = cluster.plans()

    (alarm,) = (alarm for plan in plans for alarm in plan.alarms)
    assert alarm.text.endswith("(limits.set.pods)")
    assert {operation.id for plan in plans for operation in plan.operations} == {CHAT}


def test_what_a_manifest_names_is_looked_up_however_large_it_is() -> None:
    manifest = graph(decode=service(6, volumeMounts=[{"name": "cache", "mountPoint": "/cache"}]))
    manifest["spec"]["pvcs"] = [{"name": "cache"}]

    assert kinds.PVC.id("default", "cache") in lookups_of(CHAT, manifest, LIMITED, Memo())


def test_a_stored_graph_with_more_replicas_than_there_may_be_leader_worker_sets_is_carried_out(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Cluster(COMPONENTS, nodes=2)
    cluster.configuration = GraphToy.configuration
    monkeypatch.setattr(replica_limit, "MOST_INSTANCES", 3)
    assert cluster.count("LeaderWorkerSet") == 4

    cluster.lose("LeaderWorkerSet")
    assert (cluster.count("LeaderWorkerSet"), cluster.state()) == (4, "successful")

    cluster.pods_of_graph(HUGE, **IMAGE)
    assert cluster.count("LeaderWorkerSet") == 4 and cluster.images() == {"example/dynamo:2"}
    assert f"service decode asks for {HUGE // 2} replicas and gets 4" in cluster.stalled()

    cluster.pods_of_graph(4, **IMAGE)
    assert (cluster.count("LeaderWorkerSet"), cluster.state(), cluster.stalled()) == (2, "successful", "")


def test_a_forged_index_of_a_leader_worker_set_makes_no_room_for_more(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Cluster(COMPONENTS, nodes=2)
    cluster.configuration = GraphToy.configuration
    monkeypatch.setattr(replica_limit, "MOST_INSTANCES", 3)
    like = next(body for id, body in cluster.objects.items() if id.kind == "LeaderWorkerSet")
    metadata = {**like["metadata"], "name": "forged", "uid": "forged", "labels": {**like["metadata"]["labels"], INSTANCE: "998"}}
    cluster.objects[kinds.LEADER_WORKER_SET.id("default", "forged")] = {**like, "metadata": metadata}

    cluster.pods_of_graph(HUGE)

    assert "service decode asks for 1073741823 replicas and gets 4" in cluster.stalled()
    assert cluster.count("LeaderWorkerSet") == 4
