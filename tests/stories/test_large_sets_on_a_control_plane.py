"""Very large sets on a real control plane: what no server stores is sent once, and the leader keeps its Lease while it plans."""

import json
from pathlib import Path
from typing import Any

import pytest

from engine.errors import TooLarge
from providers.kubernetes.client import KubernetesClient
from resources.base import kinds
from tests.builders import clique, podcliqueset
from tests.controlplane.cluster import ControlPlane
from tests.stories.engine_processes import engine_run
from tests.stories.test_control_plane import connection, define
from tests.waiting import eventually

pytestmark = [pytest.mark.anyio, pytest.mark.e2e]

TOO_MANY = 40_000
ELECTION = {"leaseDuration": "3s", "renewDeadline": "2s", "retryPeriod": "200ms", "resourceName": "large", "resourceNamespace": "default"}
"""Shorter than it takes to plan so many pods."""


def gang(pods: int) -> dict[str, Any]:
    """A PodGang in the namespace `sizes` that lists so many pods."""
    references = [{"namespace": "sizes", "name": f"web-0-worker-{number:05d}"} for number in range(pods)]
    spec = {"podgroups": [{"name": "web-0-worker", "minReplicas": 1, "podReferences": references}]}
    metadata = {"name": f"of-{pods}", "namespace": "sizes"}
    return {"apiVersion": kinds.PODGANG.api_version, "kind": kinds.PODGANG.name, "metadata": metadata, "spec": spec}


@pytest.mark.filterwarnings("ignore:Sending a large body directly:ResourceWarning")
@pytest.mark.parametrize(("pods", "says"), [(32_000, "request is too large"), (42_000, "larger than max"), (70_000, "limit is 3145728")])
async def test_a_server_says_in_three_ways_that_an_object_is_too_large(api_server: ControlPlane, pods: int, says: str) -> None:
    async with connection(api_server, "admin") as admin:
        if not any(each["metadata"]["name"] == "sizes" for each in (await admin.list(kinds.NAMESPACE)).items):
            await define(admin, "sizes")

        with pytest.raises(TooLarge, match=says):
            await admin.create(kinds.PODGANG, "sizes", gang(pods))


async def reasons(admin: KubernetesClient, name: str) -> set[str]:
    """The reasons of the Events about an object in the namespace `large`."""
    listed = (await admin.list(kinds.EVENT, "large")).items
    return {event["reason"] for event in listed if event["involvedObject"]["name"] == name}


async def test_a_set_whose_gang_no_server_stores_is_blocked_and_the_lease_is_kept_while_others_work(
    api_server: ControlPlane, tmp_path: Path
) -> None:
    config = tmp_path / "config.yaml"
    # Sets that are older than the limits of admission may be as large.
    config.write_text(json.dumps({"leaderElection": ELECTION, "limits": {"set": {"bytes": 1_000_000_000}}}))
    async with connection(api_server, "admin") as admin:
        await define(admin, "large")
        with engine_run(
            tmp_path / "engine.log", "-n", "large", "--config", str(config), KUBECONFIG=str(api_server.kubeconfig("admin"))
        ) as engine:

            async def is_told() -> bool:
                return "PodGangTooLarge" in await reasons(admin, "huge")

            async def has_pods() -> bool:
                return len((await admin.list(kinds.POD, "large")).items) == 2

            await eventually(lambda: bool(engine.logged("leading")))
            await admin.create(kinds.PODCLIQUESET, "large", podcliqueset("huge", clique("worker", TOO_MANY), namespace="large"))
            await eventually(is_told)
            await admin.create(kinds.PODCLIQUESET, "large", podcliqueset("small", clique("worker", 2), namespace="large"))
            await eventually(has_pods)
            gangs = {each["metadata"]["name"] for each in (await admin.list(kinds.PODGANG, "large")).items}
            failed = [line for line in engine.logged("failed") if line["object"].startswith("PodGang")]
            lost = engine.logged("not leading")
            engine.end()

    assert (gangs, failed, lost) == ({"small-0"}, [], [])
