"""Topology: gangs carry what their set says of racks and zones, and follow the binding that says what those are."""

from dataclasses import replace
from typing import Any

import pytest

from engine.runtime.session import Ending
from resources import kinds
from tests.builders import clique, group, podcliqueset
from tests.stories.stage import Stage, stage

pytestmark = pytest.mark.anyio

ZONE, RACK = "topology.kubernetes.io/zone", "example.com/rack"
LEVELS = [{"domain": "zone", "key": ZONE}, {"domain": "rack", "key": RACK}]


def llm() -> dict[str, Any]:
    """A set in one zone, each replica of its group in one rack."""
    pool = group("pool", "worker", replicas=2, topologyConstraint={"pack": {"required": "rack"}})
    whole = {"topologyName": "hall", "pack": {"required": "zone"}}
    return podcliqueset("llm", clique("router"), clique("worker", 2), groups=(pool,), topologyConstraint=whole)


def binding(levels: list[dict[str, str]]) -> dict[str, Any]:
    """What zones and racks are here."""
    kind = kinds.TOPOLOGY_BINDING
    return {"apiVersion": kind.api_version, "kind": kind.name, "metadata": {"name": "hall"}, "spec": {"levels": levels}}


async def constraints(cluster: Stage) -> dict[str, Any]:
    """What each gang asks for as a whole."""
    return {gang["metadata"]["name"]: gang["spec"].get("topologyConstraint") for gang in await cluster.objects(kinds.PODGANG)}


async def unavailable(cluster: Stage) -> list[tuple[str, int]]:
    """What the set says of its levels, and of which generation."""
    (found,) = await cluster.objects(kinds.PODCLIQUESET)
    conditions = found["status"].get("conditions", ())
    return [(one["reason"], one["observedGeneration"]) for one in conditions if one["type"] == "TopologyLevelsUnavailable"]


def required(key: str) -> dict[str, Any]:
    return {"packConstraint": {"required": key}}


async def test_gangs_follow_the_binding_and_lose_what_is_no_level_any_more() -> None:
    async with stage() as cluster:
        cluster.setup = replace(cluster.setup, topology=True)
        await cluster.kubectl.create(kinds.TOPOLOGY_BINDING, "", binding(LEVELS))
        await cluster.apply(llm())

        assert (await cluster.sync()).ending is Ending.DONE
        assert await constraints(cluster) == {
            "llm-0": required("topology.kubernetes.io/zone"),
            "llm-0-pool-0": required("example.com/rack"),
        }
        (found,) = await cluster.objects(kinds.PODCLIQUESET)
        assert await unavailable(cluster) == [("AllClusterTopologyLevelsAvailable", found["metadata"]["generation"])]

        await cluster.kubectl.patch(kinds.TOPOLOGY_BINDING, "", "hall", {"spec": {"levels": LEVELS[:1]}})
        assert (await cluster.sync()).ending is Ending.DONE
        assert await constraints(cluster) == {"llm-0": required(ZONE), "llm-0-pool-0": None}
        gangs = {gang["metadata"]["name"]: gang["metadata"].get("annotations") for gang in await cluster.objects(kinds.PODGANG)}
        assert gangs == {"llm-0": {"grove.io/topology-name": "hall"}, "llm-0-pool-0": None}
        assert [reason for reason, _ in await unavailable(cluster)] == ["ClusterTopologyLevelsUnavailable"]

        await cluster.kubectl.delete(kinds.TOPOLOGY_BINDING, "", "hall")
        assert (await cluster.sync()).ending is Ending.DONE
        assert set((await constraints(cluster)).values()) == {None}
        assert [reason for reason, _ in await unavailable(cluster)] == ["ClusterTopologyNotFound"]


async def test_what_was_written_under_topology_goes_when_it_is_switched_off() -> None:
    async with stage() as cluster:
        on = replace(cluster.setup, topology=True)
        await cluster.kubectl.create(kinds.TOPOLOGY_BINDING, "", binding(LEVELS))
        await cluster.apply(llm())
        for setup in (on, cluster.setup):
            cluster.setup = setup
            assert (await cluster.sync()).ending is Ending.DONE

        assert set((await constraints(cluster)).values()) == {None}
        assert not any("topologyConstraintGroupConfigs" in gang["spec"] for gang in await cluster.objects(kinds.PODGANG))
        assert [reason for reason, _ in await unavailable(cluster)] == ["TopologyAwareSchedulingDisabled"]
        assert (await cluster.sync()).ending is Ending.DONE
        assert cluster.process.count == 0
