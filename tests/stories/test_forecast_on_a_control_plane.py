"""The law of forecasts on a real control plane: what was forecast is what `engine sync` then does."""

from collections.abc import Mapping
from typing import Any

import pytest

from engine.operation import Outcome
from engine.runtime.sync_report import Ending
from resources.base import kinds
from resources.install.modes import Use
from tests.builders import clique, group, podcliqueset
from tests.controlplane.accounts import user_of
from tests.controlplane.cluster import ControlPlane
from tests.stories.forecasts import forecast_on, patched_fields, signature
from tests.stories.pods import running
from tests.stories.test_control_plane import SETUP, connection, define, synced

pytestmark = [pytest.mark.anyio, pytest.mark.e2e]

NAMESPACE = "forecasts"


def workload(version: int, replicas: int) -> dict[str, Any]:
    """A clique that can spare a pod, and a scaling group that can spare a replica."""
    same: dict[str, Any] = {"pod_spec": running(version)}
    cliques = [clique("router", 2, minAvailable=1, **same), clique("leader", **same), clique("worker", 2, **same)]
    groups = (group("pool", "leader", "worker", replicas=2, min_available=1),)
    return podcliqueset("llm", *cliques, groups=groups, replicas=replicas, namespace=NAMESPACE)


async def as_forecast(plane: ControlPlane) -> Mapping[tuple[str, str, str], int]:
    """Forecast, sync, and compare. Returns the operations that were forecast, which were done."""
    async with connection(plane, user_of(plane, SETUP, Use.SYNC)) as client:
        expected = await forecast_on(client, SETUP, NAMESPACE)
    assert expected is not None and expected.is_finished
    report = await synced(plane, NAMESPACE)
    done = [result.operation for result in report.results if result.outcome is Outcome.DONE]

    assert report.ending is Ending.DONE
    assert signature(expected.operations()) == signature(done)
    assert patched_fields(expected.operations()) == patched_fields(done)
    return signature(done)


async def test_bring_up_update_scaling_and_deletion_are_as_they_were_forecast(control_plane: ControlPlane) -> None:
    async with connection(control_plane, "admin") as admin:
        await define(admin, NAMESPACE)
        await admin.create(kinds.PODCLIQUESET, NAMESPACE, workload(1, 2))
        assert await as_forecast(control_plane)

        for manifest in (workload(2, 2), workload(2, 1), workload(3, 2)):
            await admin.patch(kinds.PODCLIQUESET, NAMESPACE, "llm", {"spec": manifest["spec"]})
            assert await as_forecast(control_plane)

        await admin.delete(kinds.PODCLIQUESET, NAMESPACE, "llm", propagation="Background")
        assert await as_forecast(control_plane)
        assert (await admin.list(kinds.PODCLIQUESET, NAMESPACE)).items == []
