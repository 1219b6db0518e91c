"""Scheduling gates that the user or another controller has put on pods: they stay until that one removes them."""

from typing import Any

import pytest

from resources.base import kinds
from tests.builders import clique, group, podcliqueset
from tests.stories.pods import is_ready, running
from tests.stories.stage import Stage, stage

pytestmark = pytest.mark.anyio

OURS, THEIRS = "grove.io/podgang-pending-creation", "quota.example.com/admitted"


def workload(*gates: str) -> dict[str, Any]:
    """Two gangs; the pods of the second are created with our gate."""
    spec = {**running(1), "schedulingGates": [{"name": name} for name in gates]}
    return podcliqueset("web", clique("worker", pod_spec=spec), groups=(group("pool", "worker", replicas=2),))


def gates(cluster: Stage) -> dict[str, list[str]]:
    """PodClique -> the gates of its pod."""
    pods = cluster.there(kinds.POD).items()
    return {name.rpartition("-")[0]: [gate["name"] for gate in pod["spec"].get("schedulingGates") or ()] for name, pod in pods}


async def admit(cluster: Stage, podclique: str) -> None:
    """The other controller removes its gate, as it would: it leaves those of others."""
    (name,) = (name for name in cluster.there(kinds.POD) if name.startswith(podclique))
    left = [{"name": gate} for gate in gates(cluster)[podclique] if gate != THEIRS]
    await cluster.kubectl.patch(kinds.POD, "default", name, {"spec": {"schedulingGates": left or None}})


@pytest.mark.parametrize("named", [(THEIRS,), (OURS, THEIRS)])
async def test_gates_of_a_template_stay_on_its_pods_and_ours_goes_without_them(named: tuple[str, ...]) -> None:
    async with stage() as cluster, cluster.running():
        await cluster.apply(workload(*named))
        await cluster.settle()
        assert gates(cluster) == {"web-0-pool-0-worker": [THEIRS], "web-0-pool-1-worker": [THEIRS, OURS]}

        await admit(cluster, "web-0-pool-0-worker")
        await cluster.settle()
        assert gates(cluster) == {"web-0-pool-0-worker": [], "web-0-pool-1-worker": [THEIRS]}

        await admit(cluster, "web-0-pool-1-worker")
        await cluster.settle()
        assert gates(cluster) == {"web-0-pool-0-worker": [], "web-0-pool-1-worker": []}
        assert all(map(is_ready, cluster.there(kinds.POD).values()))
