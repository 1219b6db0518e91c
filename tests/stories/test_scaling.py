"""Scaling: sets, groups and cliques, out and in, by hand and by autoscalers; what belongs to a replica comes and goes with it."""

from collections import Counter
from typing import Any

import pytest

from engine.ids import Kind
from engine.runtime.sync_report import Ending
from resources.base import kinds
from tests.builders import clique, group, podcliqueset
from tests.stories.pods import clique_of, is_ready, label
from tests.stories.stage import Stage, stage

pytestmark = pytest.mark.anyio

KNOB = "sandbox.grove.io/desired-replicas"
BUSY = {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}}}
SCALED = {"maxReplicas": 5, "metrics": [BUSY]}


def workload(**template: Any) -> dict[str, Any]:
    """A clique with an autoscaler, and a group with one."""
    cliques = [clique("router", 2, minAvailable=1, autoScalingConfig=SCALED), clique("prefill"), clique("decode", 2)]
    groups = (group("pool", "prefill", "decode", replicas=2, scaleConfig=SCALED),)
    return podcliqueset("llm", *cliques, groups=groups, **template)


async def pods(cluster: Stage) -> dict[str, int]:
    """How many pods each clique has; all of them serve."""
    found = cluster.there(kinds.POD).values()
    assert all(map(is_ready, found))
    assert not any(pod["spec"].get("schedulingGates") for pod in found)
    return Counter(map(clique_of, found))


async def turn(cluster: Stage, scaler: str, replicas: int) -> None:
    """The metrics of an autoscaler recommend so many replicas."""
    await cluster.kubectl.patch(kinds.AUTOSCALER, "default", scaler, {"metadata": {"annotations": {KNOB: str(replicas)}}})


async def test_a_set_takes_everything_of_its_replicas_along() -> None:
    async with stage() as cluster, cluster.running():
        await cluster.apply(workload())
        await cluster.settle()
        one = await cluster.names()

        await cluster.scale(kinds.PODCLIQUESET, "llm", 3)
        await cluster.settle()
        three = await cluster.names()
        for kind in ("Service", "PodGang", "PodCliqueScalingGroup", "HorizontalPodAutoscaler", "PodClique", "Pod"):
            each = len([name for name in one if name.startswith(f"{kind} ")])
            assert len([name for name in three if name.startswith(f"{kind} ")]) == 3 * each > 0
        assert cluster.there(kinds.PODCLIQUESET)["llm"]["status"]["availableReplicas"] == 3

        await cluster.scale(kinds.PODCLIQUESET, "llm", 1)
        await cluster.settle()
        assert await cluster.names() == one


@pytest.mark.parametrize(
    ("kind", "name", "removed"), [(kinds.PODCLIQUESET, "llm", "llm-1-"), (kinds.SCALING_GROUP, "llm-0-pool", "llm-0-pool-1-")]
)
async def test_sync_waits_until_everything_that_a_scale_in_removes_is_gone(kind: Kind, name: str, removed: str) -> None:
    async with stage() as cluster:
        slow = {"sandbox.grove.io/terminate-after": "30s"}
        cliques = [clique(name, annotations=slow) for name in ("router", "prefill", "decode")]
        await cluster.apply(podcliqueset("llm", *cliques, groups=(group("pool", "prefill", "decode", replicas=2),), replicas=2))
        await cluster.sync()

        await cluster.scale(kind, name, 1)
        report = await cluster.sync()

        assert report.ending is Ending.DONE
        assert not any(word.startswith(removed) for words in await cluster.names() for word in words.split()[1:])


async def test_a_set_scaled_to_nothing_keeps_only_what_it_has_once() -> None:
    async with stage() as cluster, cluster.running():
        await cluster.apply(workload())
        await cluster.settle()

        await cluster.scale(kinds.PODCLIQUESET, "llm", 0)
        await cluster.settle()

        left = {name.partition(" ")[0] for name in await cluster.names()}
        assert left <= {"PodCliqueSet", "ServiceAccount", "Role", "RoleBinding", "Secret"}


async def test_a_group_brings_a_gang_for_each_replica_beyond_its_minimum_and_takes_the_highest_away() -> None:
    async with stage() as cluster, cluster.running():
        await cluster.apply(workload())
        await cluster.settle()

        await cluster.scale(kinds.SCALING_GROUP, "llm-0-pool", 4)
        await cluster.settle()
        assert set(cluster.there(kinds.PODGANG)) == {"llm-0", "llm-0-pool-0", "llm-0-pool-1", "llm-0-pool-2"}
        assert (await pods(cluster))["llm-0-pool-3-decode"] == 2
        status = cluster.there(kinds.SCALING_GROUP)["llm-0-pool"]["status"]
        assert (status["replicas"], status["scheduledReplicas"], status["availableReplicas"], status["updatedReplicas"]) == (4, 4, 4, 4)

        leaving = ("llm-0-pool-2-", "llm-0-pool-3-")
        kept = {name: pod["metadata"]["uid"] for name, pod in cluster.there(kinds.POD).items() if not name.startswith(leaving)}
        await cluster.scale(kinds.SCALING_GROUP, "llm-0-pool", 2)
        await cluster.settle()
        assert set(cluster.there(kinds.PODGANG)) == {"llm-0", "llm-0-pool-0"}
        assert {name: pod["metadata"]["uid"] for name, pod in cluster.there(kinds.POD).items()} == kept


async def test_a_clique_that_shrinks_sends_the_newest_away_and_fills_its_seats_again() -> None:
    async with stage() as cluster, cluster.running():
        await cluster.apply(workload())
        await cluster.settle()
        first = {name for name in cluster.there(kinds.POD) if "-router-" in name}

        await cluster.scale(kinds.PODCLIQUE, "llm-0-router", 4)
        await cluster.settle()
        listed = cluster.there(kinds.PODGANG)["llm-0"]["spec"]["podgroups"][0]
        assert (len(listed["podReferences"]), listed["minReplicas"]) == (4, 1)

        await cluster.scale(kinds.PODCLIQUE, "llm-0-router", 2)
        await cluster.settle()
        routers = {name: pod for name, pod in cluster.there(kinds.POD).items() if "-router-" in name}
        assert set(routers) == first
        assert sorted(label(pod, "podclique-pod-index") for pod in routers.values()) == ["0", "1"]
        assert len(cluster.there(kinds.PODGANG)["llm-0"]["spec"]["podgroups"][0]["podReferences"]) == 2


async def test_a_member_of_a_group_is_scaled_by_itself_without_touching_the_others() -> None:
    async with stage() as cluster, cluster.running():
        await cluster.apply(workload())
        await cluster.settle()

        await cluster.scale(kinds.PODCLIQUE, "llm-0-pool-1-decode", 3)
        await cluster.settle()

        found = await pods(cluster)
        assert (found["llm-0-pool-0-decode"], found["llm-0-pool-1-decode"]) == (2, 3)
        assert "hpaPodSelector" not in cluster.there(kinds.PODCLIQUE)["llm-0-pool-1-decode"]["status"]


async def test_autoscalers_are_followed_and_never_overruled() -> None:
    async with stage() as cluster, cluster.running():
        await cluster.apply(workload())
        await cluster.settle()

        await turn(cluster, "llm-0-router", 4)
        await turn(cluster, "llm-0-pool", 3)
        await cluster.settle()
        found = await pods(cluster)
        assert (found["llm-0-router"], found["llm-0-pool-2-decode"]) == (4, 2)
        assert cluster.there(kinds.AUTOSCALER)["llm-0-router"]["status"]["currentReplicas"] == 4

        await cluster.scale(kinds.PODCLIQUESET, "llm", 2)
        await turn(cluster, "llm-0-router", 1)
        await cluster.settle()
        found = await pods(cluster)
        # The lower bound of an autoscaler is what the template starts with.
        assert (found["llm-0-router"], found["llm-1-router"], found["llm-0-pool-2-decode"]) == (2, 2, 2)
        assert set(cluster.there(kinds.AUTOSCALER)) == {f"llm-{index}-{what}" for index in (0, 1) for what in ("router", "pool")}


@pytest.mark.parametrize(
    ("kind", "name", "few", "many"),
    [(kinds.PODCLIQUESET, "llm", 1, 2), (kinds.SCALING_GROUP, "llm-0-pool", 2, 4), (kinds.PODCLIQUE, "llm-0-router", 2, 5)],
)
async def test_ten_times_out_and_in_costs_the_same_each_time(kind: Kind, name: str, few: int, many: int) -> None:
    async with stage() as cluster, cluster.running() as ours:
        await cluster.apply(workload())
        await cluster.settle()
        before = await cluster.names()
        costs, states = [], []
        for _ in range(10):
            done = Counter(ours.writes)
            for replicas in (many, few):
                await cluster.scale(kind, name, replicas)
                await cluster.settle()
            cost = Counter(ours.writes) - done
            costs.append({what: count for what, count in cost.items() if not what.endswith(" status")})
            states.append(cost.total() - sum(costs[-1].values()))

        assert await cluster.names() == before
        assert costs == costs[:1] * 10
        # A state in motion is written when it happens to rest: one more or less, but never more and more.
        assert max(states) - min(states) <= 1
        assert not ours.refused


@pytest.mark.parametrize("metrics", [{"metrics": []}, {}], ids=["empty", "left out"])
async def test_an_autoscaler_without_metrics_scales_by_those_that_the_server_fills_in_and_settles(metrics: dict[str, Any]) -> None:
    async with stage() as cluster:
        await cluster.sync(manifests=[workload()])
        scaled = {"maxReplicas": 5, **metrics}
        manifest = workload()
        manifest["spec"]["template"]["cliques"][0]["spec"]["autoScalingConfig"] = scaled

        assert (await cluster.sync(manifests=[manifest])).ending is Ending.DONE

        (plan,) = (await cluster.look()).planned.plans
        assert plan.operations == ()
        assert cluster.there(kinds.AUTOSCALER)["llm-0-router"]["spec"]["metrics"] == [BUSY]


async def test_sync_waits_for_the_cliques_of_a_removed_group_and_leaves_none() -> None:
    async with stage() as cluster:
        await cluster.sync(manifests=[workload()])

        report = await cluster.sync(manifests=[podcliqueset("llm", clique("router", 2, minAvailable=1, autoScalingConfig=SCALED))])

        assert report.ending is Ending.DONE
        assert [*cluster.there(kinds.PODCLIQUE)] == ["llm-0-router"]
        assert (await pods(cluster)) == {"llm-0-router": 2}
