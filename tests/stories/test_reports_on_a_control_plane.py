"""What is reported when a real server refuses calls: `lastErrors` in statuses and Events, and neither afterwards."""

from typing import Any

import pytest

from engine.runtime.sync_report import Ending
from providers.kubernetes.client import KubernetesClient
from resources.base import kinds
from tests.builders import clique, podcliqueset
from tests.controlplane.cluster import ControlPlane
from tests.controlplane.enforcement import limit_pods
from tests.stories.test_control_plane import Audit, connection, define, synced

pytestmark = [pytest.mark.anyio, pytest.mark.e2e]

NAMESPACE = "reported"
LONG = "w" * 30


async def errors(admin: KubernetesClient) -> list[dict[str, Any]]:
    """What the clique tells."""
    status = (await admin.get(kinds.PODCLIQUE, NAMESPACE, f"web-0-{LONG}"))["status"]
    return list(status.get("lastErrors", ()))


async def test_what_a_quota_refuses_is_told_and_taken_back_when_there_is_room(control_plane: ControlPlane) -> None:
    async with connection(control_plane, "admin") as admin:
        await define(admin, NAMESPACE)
        await limit_pods(admin, NAMESPACE, "few", 1)
        await admin.create(kinds.PODCLIQUESET, NAMESPACE, podcliqueset("web", clique(LONG, 3), namespace=NAMESPACE))
        assert (await synced(control_plane, NAMESPACE)).ending is Ending.STUCK

        reported = await errors(admin)
        events = [event for event in (await admin.list(kinds.EVENT, NAMESPACE)).items if event["reason"] == "PodCreateFailed"]
        assert [entry["code"] for entry in reported] == ["ERR_CREATE_POD"] * 2
        assert all("exceeded quota: few" in entry["description"] for entry in reported)
        assert {(event["type"], event["involvedObject"]["name"]) for event in events} == {("Warning", f"web-0-{LONG}")}
        assert {event["source"]["component"] for event in events} == {"podclique-controller"}

        audit = Audit(control_plane)
        assert (await synced(control_plane, NAMESPACE)).ending is Ending.STUCK
        assert (await errors(admin), audit.read().writes) == (reported, {"create pods": 2})

        await admin.delete(kinds.RESOURCE_QUOTA, NAMESPACE, "few")
        assert (await synced(control_plane, NAMESPACE)).ending is Ending.DONE
        assert await errors(admin) == []
        audit = Audit(control_plane)
        assert (await synced(control_plane, NAMESPACE)).ending is Ending.DONE
        assert audit.read().writes.total() == 0
