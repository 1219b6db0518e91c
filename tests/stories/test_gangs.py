"""Gangs: all of the minimum or nothing, whatever there is room for; and the shortage is reported."""

import pytest

from engine.runtime.sync_report import Ending
from resources.base import kinds
from resources.reports.summary import summary
from tests.builders import clique, group, podcliqueset
from tests.stories.pods import asking, is_bound, is_ready, label
from tests.stories.stage import Stage, stage

pytestmark = pytest.mark.anyio

SMALL = {"cpu": "4", "memory": "1Ti", "pods": "110"}
SIMULATED = {"sandbox.grove.io/simulated": "true"}


async def add_node(cluster: Stage, name: str) -> None:
    """Somebody adds a small node."""
    await cluster.kubectl.create(kinds.NODE, "", {"metadata": {"name": name, "labels": SIMULATED}})
    await cluster.clock.advance(1)


def bound(cluster: Stage) -> dict[str, int]:
    """How many pods of each gang have a node."""
    counts: dict[str, int] = {}
    for pod in cluster.there(kinds.POD).values():
        counts[label(pod, "podgang")] = counts.get(label(pod, "podgang"), 0) + is_bound(pod)
    return counts


async def test_no_pod_of_a_gang_is_bound_until_its_whole_minimum_fits() -> None:
    async with stage(nodes=2, capacity=SMALL) as cluster, cluster.running():
        await cluster.apply(podcliqueset("web", clique("leader", pod_spec=asking(2)), clique("worker", 3, pod_spec=asking(3))))
        await cluster.clock.advance(120)

        assert bound(cluster) == {"web-0": 0}

        await add_node(cluster, "third")
        await cluster.clock.advance(60)
        assert bound(cluster) == {"web-0": 0}

        await add_node(cluster, "fourth")
        await cluster.settle()
        assert bound(cluster) == {"web-0": 4}
        assert all(map(is_ready, cluster.there(kinds.POD).values()))
        assert cluster.there(kinds.PODGANG)["web-0"]["status"]["phase"] == "Running"


async def test_what_is_beyond_the_minimum_may_come_later() -> None:
    async with stage(nodes=1, capacity=SMALL) as cluster, cluster.running():
        await cluster.apply(podcliqueset("web", clique("worker", 3, minAvailable=2, pod_spec=asking(2))))
        await cluster.settle()
        assert bound(cluster) == {"web-0": 2}

        await add_node(cluster, "second")
        await cluster.settle()
        assert bound(cluster) == {"web-0": 3}


async def test_a_gang_that_waits_keeps_no_room_from_one_that_fits() -> None:
    async with stage(nodes=2, capacity=SMALL) as cluster, cluster.running():
        await cluster.apply(podcliqueset("big", clique("worker", 3, pod_spec=asking(4))))
        await cluster.clock.advance(30)
        await cluster.apply(podcliqueset("small", clique("worker", 2, pod_spec=asking(4))))
        await cluster.settle()
        assert bound(cluster) == {"big-0": 0, "small-0": 2}

        await cluster.delete(kinds.PODCLIQUESET, "small")
        await add_node(cluster, "third")
        await cluster.settle()
        assert bound(cluster) == {"big-0": 3}


async def test_two_gangs_that_do_not_fit_together_come_one_after_the_other() -> None:
    async with stage(nodes=3, capacity=SMALL) as cluster, cluster.running():
        for name in ("one", "two"):
            await cluster.apply(podcliqueset(name, clique("worker", 2, pod_spec=asking(4))))
        await cluster.settle()

        (first,) = [gang for gang, count in bound(cluster).items() if count == 2]
        (second,) = [gang for gang, count in bound(cluster).items() if count == 0]

        await cluster.delete(kinds.PODCLIQUESET, first.removesuffix("-0"))
        await cluster.settle()
        assert bound(cluster) == {second: 2}


async def test_a_scaled_gang_waits_behind_its_base_and_fits_as_a_whole() -> None:
    prefill, decode = clique("prefill", pod_spec=asking(2)), clique("decode", 2, pod_spec=asking(3))
    groups = (group("pool", "prefill", "decode", replicas=2, min_available=1),)
    async with stage(nodes=4, capacity=SMALL) as cluster, cluster.running():
        await cluster.apply(podcliqueset("llm", prefill, decode, groups=groups))
        await cluster.settle()

        assert bound(cluster) == {"llm-0": 3, "llm-0-pool-0": 0}
        gates = [pod["spec"].get("schedulingGates") for pod in cluster.there(kinds.POD).values()]
        assert not any(gates)

        await add_node(cluster, "fifth")
        await add_node(cluster, "sixth")
        await cluster.settle()
        assert bound(cluster) == {"llm-0": 3, "llm-0-pool-0": 3}


async def test_pods_of_a_scaled_gang_stay_gated_while_the_base_gang_has_no_room() -> None:
    groups = (group("pool", "worker", replicas=3, min_available=2),)
    async with stage(nodes=1, capacity=SMALL) as cluster, cluster.running():
        await cluster.apply(podcliqueset("llm", clique("worker", pod_spec=asking(3)), groups=groups))
        await cluster.settle()
        gated = {name: bool(pod["spec"].get("schedulingGates")) for name, pod in cluster.there(kinds.POD).items()}

        assert bound(cluster) == {"llm-0": 0, "llm-0-pool-0": 0}
        assert sorted(gated.values()) == [False, False, True]
        assert all(name.startswith("llm-0-pool-2-") for name, is_gated in gated.items() if is_gated)
        status = cluster.there(kinds.PODCLIQUE)["llm-0-pool-2-worker"]["status"]
        assert (status["scheduleGatedReplicas"], status["scheduledReplicas"]) == (1, 0)


async def test_what_a_gang_is_short_of_is_told() -> None:
    async with stage(nodes=2, capacity=SMALL) as cluster:
        await cluster.apply(podcliqueset("web", clique("worker", 3, pod_spec=asking(3))))
        report = await cluster.sync(patience=30)

        assert (report.ending, report.timed_out) == (Ending.TIMED_OUT, True)
        (waiting,) = report.pending
        assert waiting.why.startswith("0 of 3 pods ready; web-0-worker-")
        assert "Unschedulable: 0/2 nodes are available: 2 Insufficient cpu." in waiting.why
        assert waiting.why.endswith("2 of 3 pods of gang default/web-0 would fit.")

        seen = await cluster.look()
        workload = summary(seen.world.roots[0], seen.planned.plans[0])
        assert workload.state == "pending"
        assert [(gang.name, gang.phase, gang.pods, gang.ready) for gang in workload.gangs] == [("web-0", "Pending", 3, 0)]
        assert "2 Insufficient cpu" in workload.waits[0].why
