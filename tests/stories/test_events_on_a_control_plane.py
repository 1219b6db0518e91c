"""Events on a real control plane: one Event for what repeats, across processes, and few for a large set."""

from typing import Any

import pytest

from engine.runtime.event_correlation import BURST, COMBINED
from engine.runtime.sync_report import Ending
from providers.kubernetes.client import KubernetesClient
from providers.recorder import COMPONENTS
from resources.base import kinds
from tests.builders import clique, podcliqueset
from tests.controlplane.cluster import ControlPlane
from tests.controlplane.enforcement import limit_pods
from tests.stories.test_control_plane import connection, define, synced

pytestmark = [pytest.mark.anyio, pytest.mark.e2e]

NAMESPACE = "events"
REPLICAS = 40


async def events(admin: KubernetesClient, reason: str = "") -> list[dict[str, Any]]:
    """Our Events, with that reason if one is given."""
    listed = (await admin.list(kinds.EVENT, NAMESPACE)).items
    return [
        event
        for event in listed
        if event["source"].get("component") in COMPONENTS.values() and event["reason"] == (reason or event["reason"])
    ]


async def test_a_large_set_has_few_events_with_numbers_and_a_failure_is_counted_by_every_process(control_plane: ControlPlane) -> None:
    async with connection(control_plane, "admin") as admin:
        await define(admin, NAMESPACE)
        await admin.create(kinds.PODCLIQUESET, NAMESPACE, podcliqueset("web", clique("a", 1), replicas=REPLICAS, namespace=NAMESPACE))
        assert (await synced(control_plane, NAMESPACE)).ending is Ending.DONE

        (created,) = await events(admin, "PodCreateSuccessful")
        assert (created["involvedObject"]["kind"], created["count"]) == ("PodCliqueSet", REPLICAS)
        assert created["message"].startswith(f"{COMBINED}Created Pod: web-")
        assert len(await events(admin)) <= BURST

        await limit_pods(admin, NAMESPACE, "full", REPLICAS, used=REPLICAS)
        await admin.patch(kinds.PODCLIQUESET, NAMESPACE, "web", {"spec": {"replicas": REPLICAS + 1}}, subresource="scale")
        for _ in range(3):
            assert (await synced(control_plane, NAMESPACE)).ending is Ending.STUCK
        (failed,) = await events(admin, "PodCreateFailed")
        assert (failed["type"], failed["count"]) == ("Warning", 3)

        await admin.delete(kinds.PODCLIQUESET, NAMESPACE, "web", propagation="Background")
        assert (await synced(control_plane, NAMESPACE)).ending is Ending.DONE
        (deleted,) = await events(admin, "PodDeleteSuccessful")
        assert (deleted["involvedObject"]["kind"], deleted["count"]) == ("PodCliqueSet", REPLICAS)
