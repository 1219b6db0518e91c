"""Fairness on a real control plane: a small set is ready as soon as on an idle cluster, whatever is refused or deleted for another team."""

import json
from collections.abc import Iterator
from pathlib import Path
from time import monotonic
from typing import Any

import anyio
import pytest

from providers.kubernetes.client import KubernetesClient
from resources.base import kinds
from tests.builders import clique, podcliqueset
from tests.controlplane.cluster import ControlPlane
from tests.controlplane.enforcement import limit_pods
from tests.controlplane.fixtures import started
from tests.stories.engine_processes import EngineProcess, engine_run
from tests.stories.test_control_plane import connection, define
from tests.waiting import eventually, until_objects

pytestmark = [pytest.mark.anyio, pytest.mark.e2e]

REPLICAS = 3000
ROOM = 5
"""How many pods the quota of the large set's namespace allows."""
FACTOR = 3.0
"""How many times as long as on an idle cluster a small set may take."""
LEAST = 1.5
"""Seconds that count at least as the time on an idle cluster: a status is written a second after it changed."""
LARGE, SMALL = "large-team", "small-team"


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """A cluster of its own: what is left of thousands of objects would slow down other tests."""
    with started(tmp_path_factory, ["kcm", "scheduler", "kwok"], nodes=10) as plane:
        yield plane


async def seconds_until_ready(admin: KubernetesClient, name: str) -> float:
    """How long it takes from the creation of a set of two pods until its status says that it is available."""
    began = monotonic()
    await admin.create(kinds.PODCLIQUESET, SMALL, podcliqueset(name, clique("w", 2), namespace=SMALL))
    await until_objects(
        admin,
        kinds.PODCLIQUESET,
        SMALL,
        lambda sets: (sets.get(name, {}).get("status") or {}).get("availableReplicas") == 1,
    )
    return monotonic() - began


def refused(engine: EngineProcess) -> int:
    """How many calls were refused."""
    return len(engine.logged("failed"))


async def held_back(admin: KubernetesClient) -> list[dict[str, Any]]:
    """The Events about calls that are held back."""
    return [event for event in (await admin.list(kinds.EVENT, LARGE)).items if event["reason"] == "CallsHeldBack"]


async def test_a_small_set_is_ready_as_soon_beside_thousands_of_refused_replicas_and_beside_their_deletion(
    plane: ControlPlane, tmp_path: Path
) -> None:
    config = tmp_path / "config.yaml"
    config.write_text(json.dumps({"leaderElection": {"resourceName": "fair", "resourceNamespace": "default"}}))
    async with connection(plane, "admin") as admin:
        await define(admin, SMALL)
        await admin.create(kinds.NAMESPACE, "", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": LARGE}})
        await limit_pods(admin, LARGE, "few", ROOM)
        words = ("-A", "--config", str(config))
        with engine_run(tmp_path / "engine.log", *words, KUBECONFIG=str(plane.kubeconfig("admin"))) as engine:
            await eventually(lambda: bool(engine.logged("leading")))
            alone = max([await seconds_until_ready(admin, name) for name in ("first", "second")])
            large = podcliqueset("large", clique("w", 1), replicas=REPLICAS, namespace=LARGE)
            await admin.create(kinds.PODCLIQUESET, LARGE, large)
            await eventually(lambda: refused(engine) >= 3)
            beside_refused = await seconds_until_ready(admin, "beside-refused")
            (event,) = await eventually(lambda: held_back(admin))
            await anyio.sleep(20.0)
            again = await seconds_until_ready(admin, "again")
            calls = refused(engine)
            await admin.delete(kinds.PODCLIQUESET, LARGE, "large", propagation="Background")
            await anyio.sleep(3.0)
            beside_deletion = await seconds_until_ready(admin, "beside-deletion")
            engine.end()

    assert max(beside_refused, again, beside_deletion) < FACTOR * max(alone, LEAST)
    assert event["message"].startswith(f"calls held back (create Pod): {REPLICAS - ROOM}, because the API server refuses such calls: ")
    assert calls < REPLICAS / 10
