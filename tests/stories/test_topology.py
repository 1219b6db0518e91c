"""Topology: gangs carry what their set says of racks and zones, and follow the binding that says what those are."""

from typing import Any

import pytest
from msgspec.structs import replace

from engine.errors import Forbidden
from engine.runtime.sync_report import Ending
from resources.base import kinds
from tests.builders import clique, group, podcliqueset
from tests.maps import MAP, Mapper, definition, map_of
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


async def mapped(cluster: Stage) -> None:
    """A scheduler with a topology of its own, and a binding for it to follow."""
    cluster.setup = replace(cluster.setup, schedulers={**cluster.setup.schedulers, "mapper": Mapper()})
    await cluster.kubectl.create(kinds.CRD, "", definition())
    await cluster.kubectl.create(kinds.TOPOLOGY_BINDING, "", binding(LEVELS))


async def drift(cluster: Stage) -> tuple[str, str, int | None]:
    """What the binding says of its schedulers: the answer, what is wrong with the first, and which generation was dealt with."""
    (found,) = await cluster.objects(kinds.TOPOLOGY_BINDING)
    (condition,) = found["status"]["conditions"]
    message = found["status"]["schedulerTopologyStatuses"][0].get("message", "")
    return condition["reason"], message, found["status"].get("observedGeneration")


async def event_reasons(cluster: Stage) -> list[str]:
    """The reasons of the Events about the binding, in order."""
    events = [one for one in await cluster.objects(kinds.EVENT) if one["involvedObject"]["kind"] == kinds.TOPOLOGY_BINDING.name]
    assert {(one["source"]["component"], one["metadata"]["namespace"]) for one in events} <= {("clustertopology-controller", "default")}
    return [one["reason"] for one in sorted(events, key=lambda one: (one["lastTimestamp"], one["metadata"]["name"]))]


async def test_a_scheduler_s_topology_follows_the_binding_and_goes_with_it() -> None:
    async with stage() as cluster:
        await mapped(cluster)

        assert (await cluster.sync()).ending is Ending.DONE
        assert cluster.process.writes == {"create Map": 1, "patch ClusterTopologyBinding status": 1}
        assert await drift(cluster) == ("InSync", "", 1)
        before = cluster.there(MAP)["hall"]
        assert before["spec"] == {"rows": [ZONE, RACK]}

        await cluster.kubectl.patch(kinds.TOPOLOGY_BINDING, "", "hall", {"spec": {"levels": LEVELS[:1]}})
        assert (await cluster.sync()).ending is Ending.DONE
        after = cluster.there(MAP)["hall"]
        assert (after["spec"], after["metadata"]["uid"] != before["metadata"]["uid"]) == ({"rows": [ZONE]}, True)
        assert await drift(cluster) == ("InSync", "", 2)

        assert (await cluster.sync()).ending is Ending.DONE
        assert cluster.process.count == 0
        assert await event_reasons(cluster) == ["TopologyInSync"]

        await cluster.kubectl.delete(kinds.TOPOLOGY_BINDING, "", "hall")
        assert (await cluster.sync()).ending is Ending.DONE
        await cluster.settle()
        assert (cluster.process.count, dict(cluster.there(MAP))) == (0, {})


async def test_a_topology_of_others_is_told_of_when_it_drifts_and_when_it_is_back() -> None:
    async with stage() as cluster:
        await mapped(cluster)
        await cluster.kubectl.create(MAP, "", map_of("theirs", ZONE, RACK))
        named = {"schedulerTopologyBindings": [{"schedulerName": "mapper", "topologyReference": "theirs"}]}
        await cluster.kubectl.patch(kinds.TOPOLOGY_BINDING, "", "hall", {"spec": named})

        for rows, reason, trouble in (([ZONE], "Drift", "the rows are others"), ([ZONE, RACK], "InSync", "")):
            await cluster.kubectl.patch(MAP, "", "theirs", {"spec": {"rows": rows}})
            assert (await cluster.sync()).ending is Ending.DONE
            assert await drift(cluster) == (reason, trouble, 2)
            await cluster.clock.advance(5)

        assert await event_reasons(cluster) == ["TopologyDriftDetected", "TopologyInSync"]
        assert list(cluster.there(MAP)) == ["theirs"]


async def test_a_topology_of_others_under_the_name_that_is_wanted_is_a_failure_until_somebody_takes_it_away() -> None:
    async with stage() as cluster:
        await mapped(cluster)
        await cluster.kubectl.create(MAP, "", map_of("hall"))

        assert (await cluster.sync()).ending is Ending.STUCK
        assert await drift(cluster) == ("Drift", "Map hall is not of hall", None)
        assert cluster.there(MAP)["hall"]["spec"] == {"rows": []}

        await cluster.kubectl.delete(MAP, "", "hall")
        assert (await cluster.sync()).ending is Ending.DONE
        assert await drift(cluster) == ("InSync", "", 1)


async def test_a_topology_that_may_not_be_made_is_said_to_be_missing_and_tried_again() -> None:
    async with stage() as cluster:
        await mapped(cluster)
        process = cluster.start()
        process.refuses = lambda call: Forbidden("no maps here") if call[:2] == ("create", MAP) else None

        assert (await cluster.sync(process)).ending is Ending.FAILED
        assert await drift(cluster) == ("Drift", "no Map hall", None)

        assert (await cluster.sync()).ending is Ending.DONE
        assert await drift(cluster) == ("InSync", "", 1)


async def test_a_loop_follows_bindings_that_are_roots_and_neighbours_at_once() -> None:
    async with stage() as cluster:
        await mapped(cluster)
        cluster.setup = replace(cluster.setup, topology=True)
        await cluster.apply(llm())
        async with cluster.running():
            await cluster.settle()
            assert (await drift(cluster))[0] == "InSync"
            assert (await constraints(cluster))["llm-0"] == required(ZONE)

            await cluster.kubectl.patch(kinds.TOPOLOGY_BINDING, "", "hall", {"spec": {"levels": [{"domain": "zone", "key": RACK}]}})
            await cluster.settle()

            assert cluster.there(MAP)["hall"]["spec"] == {"rows": [RACK]}
            assert (await constraints(cluster))["llm-0"] == required(RACK)
            assert await drift(cluster) == ("InSync", "", 2)


async def test_workloads_do_not_suffer_from_bindings_that_may_not_be_seen() -> None:
    async with stage() as cluster:
        await cluster.apply(podcliqueset("web"))
        process = cluster.start()
        process.refuses = lambda call: Forbidden("not for you") if call[:2] == ("list", kinds.TOPOLOGY_BINDING) else None

        report = await cluster.sync(process)

        assert (report.ending, set(report.incomplete)) == (Ending.INCOMPLETE, {"ClusterTopologyBinding"})
        (found,) = await cluster.objects(kinds.PODCLIQUESET)
        assert found["status"]["availableReplicas"] == 1
        assert found["status"]["observedGeneration"] == found["metadata"]["generation"]
        await cluster.delete(kinds.PODCLIQUESET, "web")
        assert (await cluster.sync(process)).ending is Ending.INCOMPLETE
        assert await cluster.names() == set()


async def test_what_fails_is_told_whoever_may_not_see_bindings() -> None:
    async with stage() as cluster:
        await cluster.apply(podcliqueset("web"))
        process = cluster.start()
        unseen, unmade = ("list", kinds.TOPOLOGY_BINDING), ("create", kinds.SERVICE)
        process.refuses = lambda call: Forbidden("not for you") if call[:2] in (unseen, unmade) else None

        assert (await cluster.sync(process)).ending is Ending.FAILED

        (found,) = await cluster.objects(kinds.PODCLIQUESET)
        assert [one["code"] for one in found["status"]["lastErrors"]] == ["ERR_SYNC_PODCLIQUESET_SERVICE"]


async def test_an_installation_that_is_older_than_bindings_lacks_nothing_else() -> None:
    async with stage() as cluster:
        await cluster.kubectl.delete(kinds.CRD, "", "clustertopologybindings.grove.io")
        await cluster.clock.advance(5)
        await cluster.apply(podcliqueset("web"))

        report = await cluster.sync()

        assert report.ending is Ending.DONE
        assert "ClusterTopologyBinding" in report.last_pass.world.unserved
