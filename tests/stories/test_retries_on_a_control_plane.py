"""`engine run` on a real API server: what it does again in time, what it says of what it cannot do, and what it leaves alone."""

import json
from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import pytest

from enginectl.base.exit_codes import Exit
from providers.kubernetes.client import KubernetesClient
from resources.base import kinds
from tests.builders import clique, group, podcliqueset
from tests.controlplane.cluster import ControlPlane
from tests.controlplane.enforcement import limit_pods
from tests.enginectl.calling import finished
from tests.stories.engine_processes import EngineProcess, engine_run
from tests.stories.test_control_plane import connection, define
from tests.waiting import eventually, until_objects

pytestmark = [pytest.mark.anyio, pytest.mark.e2e]

NAMESPACE, LIMITED = "retries", "retries-limited"
SOON = 40.0
"""Seconds within which it does again what can succeed now. What it suspends, it repeats after a minute."""
ROUNDS = 7
"""More than the changes of one object in a row that count as reverted by another writer."""
KEEPER = "example.com/keeper"
DELAY = 2.0
"""Seconds for which a gang may lack pods."""


@pytest.fixture
async def admin(control_plane: ControlPlane) -> AsyncIterator[KubernetesClient]:
    """A client, with the namespaces."""
    async with connection(control_plane, "admin") as client:
        if NAMESPACE not in await client.names(kinds.NAMESPACE, ""):
            await define(client, NAMESPACE)
            await client.create(kinds.NAMESPACE, "", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": LIMITED}})
        yield client


@pytest.fixture
async def engine(control_plane: ControlPlane, admin: KubernetesClient, tmp_path: Path) -> AsyncIterator[EngineProcess]:
    """`engine run` for the namespaces of these tests, whose sets it removes at the end."""
    config = tmp_path / "config.yaml"
    election = {"resourceName": "retries", "resourceNamespace": "default"}
    config.write_text(json.dumps({"leaderElection": election, "namespaces": [NAMESPACE, LIMITED]}))
    kubeconfig = str(control_plane.kubeconfig("admin"))
    with engine_run(tmp_path / "engine.log", "--config", config, KUBECONFIG=kubeconfig) as process:
        yield process
        for namespace in (NAMESPACE, LIMITED):
            for name in await admin.names(kinds.PODCLIQUESET, namespace):
                await admin.delete(kinds.PODCLIQUESET, namespace, name, propagation="Background")
            await until_objects(admin, kinds.PODCLIQUESET, namespace, lambda sets: not sets)
        process.end()


async def available(client: KubernetesClient, name: str, replicas: int = 1, namespace: str = NAMESPACE) -> None:
    """Wait until the status of the set says so. Raises `TimeoutError` if it does not soon."""
    with anyio.fail_after(SOON):
        await until_objects(
            client,
            kinds.PODCLIQUESET,
            namespace,
            lambda sets: (sets.get(name, {}).get("status") or {}).get("availableReplicas", 0) == replicas,
        )


async def test_a_set_that_is_made_again_under_its_name_is_ready_as_soon_each_time(engine: EngineProcess, admin: KubernetesClient) -> None:
    for _ in range(ROUNDS):
        await admin.create(kinds.PODCLIQUESET, NAMESPACE, podcliqueset("again", clique("w", 1), namespace=NAMESPACE))
        await available(admin, "again")
        await admin.delete(kinds.PODCLIQUESET, NAMESPACE, "again", propagation="Background")
        await until_objects(admin, kinds.PODCLIQUESET, NAMESPACE, lambda sets: "again" not in sets)
    assert "reverted" not in str(engine.logged())


async def test_a_group_that_is_scaled_out_and_in_again_has_its_gang_running_as_soon_each_time(
    engine: EngineProcess, admin: KubernetesClient
) -> None:
    await admin.create(
        kinds.PODCLIQUESET, NAMESPACE, podcliqueset("flap", clique("w", 2), groups=(group("grp", "w"),), namespace=NAMESPACE)
    )
    await available(admin, "flap")
    for _ in range(ROUNDS):
        await admin.patch(kinds.SCALING_GROUP, NAMESPACE, "flap-0-grp", {"spec": {"replicas": 2}})
        with anyio.fail_after(SOON):
            await until_objects(
                admin, kinds.PODGANG, NAMESPACE, lambda gangs: gangs.get("flap-0-grp-0", {}).get("status", {}).get("phase") == "Running"
            )
        await admin.patch(kinds.SCALING_GROUP, NAMESPACE, "flap-0-grp", {"spec": {"replicas": 1}})
        await until_objects(admin, kinds.PODGANG, NAMESPACE, lambda gangs: "flap-0-grp-0" not in gangs)
    assert "reverted" not in str(engine.logged())


async def test_pods_that_a_quota_refused_are_created_soon_after_it_is_raised(engine: EngineProcess, admin: KubernetesClient) -> None:
    await limit_pods(admin, LIMITED, "few", 1)
    await admin.create(kinds.PODCLIQUESET, LIMITED, podcliqueset("limited", clique("w", 3), namespace=LIMITED))
    await eventually(lambda: len(engine.logged("failed")) >= 2)
    await anyio.sleep(6)
    room = {"hard": {"pods": "10"}}
    await admin.patch(kinds.RESOURCE_QUOTA, LIMITED, "few", {"spec": room})
    await admin.patch(kinds.RESOURCE_QUOTA, LIMITED, "few", {"status": room}, subresource="status")
    await available(admin, "limited", namespace=LIMITED)


async def test_what_a_finalizer_of_others_keeps_is_named_with_it_and_is_not_settled(
    engine: EngineProcess, admin: KubernetesClient, control_plane: ControlPlane
) -> None:
    await admin.create(kinds.PODCLIQUESET, NAMESPACE, podcliqueset("kept", clique("w", 1), replicas=2, namespace=NAMESPACE))
    await available(admin, "kept", 2)
    service = await admin.get(kinds.SERVICE, NAMESPACE, "kept-1")
    await admin.patch(kinds.SERVICE, NAMESPACE, "kept-1", {"metadata": {"finalizers": [KEEPER]}})
    await admin.patch(kinds.PODCLIQUESET, NAMESPACE, "kept", {"spec": {"replicas": 1}})
    await until_objects(admin, kinds.SERVICE, NAMESPACE, lambda services: "deletionTimestamp" in services["kept-1"]["metadata"])

    fixed = ("--kubeconfig", control_plane.kubeconfig("admin"), "-n", NAMESPACE)
    for words in (("diff",), ("status",), ("why", "service/kept-1")):
        answer = await anyio.to_thread.run_sync(lambda: finished(*words, *fixed))  # noqa: B023
        assert KEEPER in answer.out and "No changes." not in answer.out, (words, answer)
        assert answer.code == (Exit.STUCK if words == ("diff",) else Exit.DONE), (words, answer)
    await admin.patch(kinds.SERVICE, NAMESPACE, "kept-1", {"metadata": {"finalizers": None}})
    await until_objects(admin, kinds.SERVICE, NAMESPACE, lambda services: service["metadata"]["name"] not in services)


async def test_a_clique_that_is_scaled_below_its_minimum_by_its_own_number_is_no_breach(
    engine: EngineProcess, admin: KubernetesClient
) -> None:
    small = podcliqueset("small", clique("w", 2, minAvailable=2), namespace=NAMESPACE, terminationDelay=f"{DELAY:g}s")
    await admin.create(kinds.PODCLIQUESET, NAMESPACE, small)
    await available(admin, "small")
    await admin.patch(kinds.PODCLIQUE, NAMESPACE, "small-0-w", {"spec": {"replicas": 1}})
    (left,) = (await until_objects(admin, kinds.POD, NAMESPACE, lambda pods: len(pods) == 1)).values()
    await anyio.sleep(3 * DELAY)

    (same,) = (await admin.list(kinds.POD, NAMESPACE)).items
    reasons = {event["reason"] for event in (await admin.list(kinds.EVENT, NAMESPACE)).items if "small" in event["message"]}
    assert same["metadata"]["uid"] == left["metadata"]["uid"] and not any("Terminat" in reason for reason in reasons), reasons
