"""Bindings on a real control plane: real schemas and a real garbage collector around a topology that is kept, replaced and left behind."""

from typing import Any

import pytest
from msgspec.structs import replace

from engine.runtime.sync_report import Ending
from providers.kubernetes.client import KubernetesClient
from resources.base import kinds
from tests.controlplane.cluster import ControlPlane
from tests.maps import MAP, Mapper, binding, definition
from tests.stories.stage import SETUP
from tests.stories.test_control_plane import Audit, connection, define, synced
from tests.waiting import until_objects

pytestmark = [pytest.mark.anyio, pytest.mark.e2e]

NAMESPACE = "topologies"
ZONE, RACK = "topology.kubernetes.io/zone", "example.com/rack"
MAPPED = replace(SETUP, schedulers={**SETUP.schedulers, "mapper": Mapper()}, fabrics=())


async def status(admin: KubernetesClient) -> tuple[Any, ...]:
    """What the binding says: which generation was dealt with, the answer, and what is said of each scheduler."""
    said = (await admin.get(kinds.TOPOLOGY_BINDING, "", "hall"))["status"]
    (condition,) = said["conditions"]
    return said["observedGeneration"], condition["reason"], [one["inSync"] for one in said["schedulerTopologyStatuses"]]


async def test_a_topology_is_kept_with_few_writes_and_goes_with_its_binding(control_plane: ControlPlane) -> None:
    async with connection(control_plane, "admin") as admin:
        await define(admin, NAMESPACE, definition())
        await admin.list(MAP)
        await admin.create(kinds.TOPOLOGY_BINDING, "", binding("hall", ZONE, RACK))
        audit = Audit(control_plane)

        assert (await synced(control_plane, NAMESPACE, MAPPED)).ending is Ending.DONE
        assert audit.read().writes == {"create maps": 1, "patch clustertopologybindings": 1}
        assert await status(admin) == (1, "InSync", [True])
        before = await admin.get(MAP, "", "hall")

        await admin.patch(kinds.TOPOLOGY_BINDING, "", "hall", {"spec": binding("hall", ZONE)["spec"]})
        assert (await synced(control_plane, NAMESPACE, MAPPED)).ending is Ending.DONE
        after = await admin.get(MAP, "", "hall")
        assert (after["spec"]["rows"], after["metadata"]["uid"] != before["metadata"]["uid"]) == ([ZONE], True)
        assert await status(admin) == (2, "InSync", [True])

        audit = Audit(control_plane)
        assert (await synced(control_plane, NAMESPACE, MAPPED)).ending is Ending.DONE
        assert audit.read().writes.total() == 0
        events = [one for one in (await admin.list(kinds.EVENT, "default")).items if one["involvedObject"]["name"] == "hall"]
        assert [one["reason"] for one in events] == ["TopologyInSync"]

        await admin.delete(kinds.TOPOLOGY_BINDING, "", "hall")
        await until_objects(admin, MAP, "", lambda maps: not maps)
        assert (await synced(control_plane, NAMESPACE, MAPPED)).ending is Ending.DONE
