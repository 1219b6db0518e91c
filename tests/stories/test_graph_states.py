"""What a new graph says of itself until it serves, and what a topology that cannot be keeps from being made."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pytest
from msgspec.structs import replace

from engine.conditions import find
from engine.plan import Plan
from engine.runtime.progress import NoProgress
from engine.runtime.session import LONGEST_PAUSE
from engine.runtime.sync_report import Ending
from resources.base import kinds
from tests.stories.graphs import graph, service
from tests.stories.stage import Stage, stage
from tests.stories.test_graph_form import ADDONS, PATHS
from tests.stories.test_topology import LEVELS, binding

pytestmark = pytest.mark.anyio
SLOW: dict[str, Any] = {"extraPodMetadata": {"annotations": {"sandbox.grove.io/ready-after": "20s"}}}
ORDER = ("initializing", "pending", "successful")


def state(cluster: Stage) -> tuple[str, str]:
    """The state of the graph, and the reason of its condition Ready."""
    status: dict[str, Any] = cluster.there(kinds.DYNAMO_GRAPH)["chat"].get("status") or {}
    return status.get("state", ""), (find(status.get("conditions") or (), "Ready") or {}).get("reason", "")


@pytest.mark.parametrize("path", PATHS)
async def test_a_new_graph_is_initializing_then_pending_then_successful(path: str) -> None:
    async with stage(addons=ADDONS[path]) as cluster, cluster.running():
        await cluster.apply(graph(annotations=PATHS[path], decode=service(nodes=2, **SLOW), other=service(**SLOW)))
        seen: list[tuple[str, str]] = []
        for _ in range(600):
            if (now := state(cluster)) != (seen[-1] if seen else ("", "")) and now[0]:
                seen.append(now)
            if now[0] == "successful":
                break
            await cluster.clock.advance(0.1)

        states = [name for name, _ in seen]
        assert states[-1] == "successful" and seen[-1][1] == "all_resources_are_ready"
        assert "pending" in states and "failed" not in states
        assert all(ORDER.index(before) <= ORDER.index(after) for before, after in pairwise(states)), seen


class Pauses(NoProgress):
    """How long a session pauses after each pass."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    def idle(self, plans: Sequence[Plan], seconds: float) -> None:
        """Note the pause."""
        self.seconds.append(seconds)


async def test_a_sync_that_waits_for_a_set_that_cannot_be_made_looks_at_the_cluster_every_two_seconds() -> None:
    made = graph(decode=service(nodes=2, topologyConstraint={"packDomain": "zone"}))
    made["spec"]["topologyConstraint"] = {"clusterTopologyName": "hall", "packDomain": "rack"}
    pauses = Pauses()
    async with stage() as cluster:
        cluster.setup = replace(cluster.setup, topology=True)
        await cluster.kubectl.create(kinds.TOPOLOGY_BINDING, "", binding(LEVELS))

        report = await cluster.sync(manifests=[made], patience=30, progress=pauses)

        assert report.timed_out and pauses.seconds[-5:] == [LONGEST_PAUSE] * 5 and len(pauses.seconds) < 30


@pytest.mark.parametrize(("whole", "part", "fits"), [("zone", "rack", True), ("rack", "zone", False)])
async def test_a_component_has_the_domain_of_its_graph_or_a_narrower_one(whole: str, part: str, fits: bool) -> None:
    made = graph(decode=service(nodes=2, topologyConstraint={"packDomain": part}))
    made["spec"]["topologyConstraint"] = {"clusterTopologyName": "hall", "packDomain": whole}
    async with stage() as cluster:
        cluster.setup = replace(cluster.setup, topology=True)
        await cluster.kubectl.create(kinds.TOPOLOGY_BINDING, "", binding(LEVELS))

        report = await cluster.sync(manifests=[made])

        assert (report.ending is Ending.DONE) is fits
        problems = [problem for plan in (await cluster.look(manifests=[made])).planned.plans for problem in plan.problems]
        if fits:
            assert problems == [] and len(cluster.there(kinds.POD)) == 2
        else:
            assert any(f"topology constraint domain '{whole}' is narrower than" in problem for problem in problems), problems
            assert cluster.there(kinds.POD) == {}
