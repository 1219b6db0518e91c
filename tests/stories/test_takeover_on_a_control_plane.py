"""A take-over on a real control plane: what Grove's operator has left is adopted, and the garbage collector finds nothing to do."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from msgspec.structs import replace

from engine.ids import Kind
from engine.runtime.clock import SystemClock
from engine.runtime.passes import Engine, preview
from engine.runtime.sync_report import Ending
from engine.verb import Verb
from enginectl.wiring.scope import scope_of
from providers.cluster import Cluster
from providers.kubernetes.client import KubernetesClient
from providers.kubernetes.connect import connected
from providers.kubernetes.kubeconfig import Source
from resources.base import kinds
from resources.install.modes import Use
from resources.registry import BLUEPRINTS
from tests.controlplane.accounts import user_of
from tests.controlplane.cluster import ControlPlane
from tests.stories.pods import is_bound, is_ready
from tests.stories.test_control_plane import SETUP, Audit, connection, define, synced
from tests.takeover.epochs import POD_GANG_MAP, EpochGrove, definition
from tests.takeover.grove_operator import Grove
from tests.takeover.stored_set import Options
from tests.takeover.worlds import inference
from tests.waiting import until_objects

pytestmark = [pytest.mark.anyio, pytest.mark.e2e]

NAMESPACE = "takeover"
LATER = "takeover-later"
KINDS = (
    kinds.POD,
    kinds.PODCLIQUE,
    kinds.SCALING_GROUP,
    kinds.PODGANG,
    kinds.SERVICE,
    kinds.ROLE,
    kinds.ROLE_BINDING,
    kinds.AUTOSCALER,
    kinds.SECRET,
)
SELECTOR = "app.kubernetes.io/part-of=llm"
CLIQUE = {"apiVersion": kinds.PODCLIQUE.api_version, "kind": kinds.PODCLIQUE.name}


def workload(namespace: str = NAMESPACE) -> dict[str, Any]:
    """A set that the control plane's nodes can run: without volumes of the user, whose mounts nobody simulates."""
    manifest = inference()
    manifest["metadata"]["namespace"] = namespace
    del manifest["spec"]["template"]["priorityClassName"]
    return manifest


async def there(admin: KubernetesClient, *of: Kind, namespace: str = NAMESPACE) -> dict[str, dict[str, Any]]:
    """Kind and name of the set's objects -> object."""
    found = [(kind.name, body) for kind in of or KINDS for body in (await admin.list(kind, namespace, labels=SELECTOR)).items]
    return {f"{kind} {body['metadata']['name']}": body for kind, body in found}


def uids(bodies: dict[str, dict[str, Any]]) -> dict[str, str]:
    return {name: body["metadata"]["uid"] for name, body in bodies.items()}


async def previewed(plane: ControlPlane, namespace: str = NAMESPACE) -> list[Any]:
    """The operations that `engine diff` shows."""
    clock = SystemClock()
    async with connection(plane, user_of(plane, SETUP, Use.SYNC)) as client:
        where = replace(scope_of(SETUP), namespaces=(namespace,))
        look = await preview(Engine(Cluster(client, clock), clock, where, BLUEPRINTS, SETUP))
    return [operation for plan in look.planned.plans for operation in plan.operations]


def until_pods_run(admin: KubernetesClient, namespace: str = NAMESPACE) -> Callable[[], Awaitable[None]]:
    """Waits until every pod that exists is ready."""

    async def pause() -> None:
        await until_objects(admin, kinds.POD, namespace, lambda pods: all(is_bound(pod) and is_ready(pod) for pod in pods.values()))

    return pause


async def until_garbage_is_collected(admin: KubernetesClient, namespace: str = NAMESPACE) -> None:
    """Wait until the garbage collector, which has seen everything that was changed before, has deleted a clique whose owner is gone."""
    body = (await admin.list(kinds.PODCLIQUE, namespace)).items[0]
    (owner,) = body["metadata"]["ownerReferences"]
    metadata = {"name": "orphan", "ownerReferences": [{**owner, "uid": "8f0c3c5e-0000-4000-8000-000000000000"}]}
    await admin.create(kinds.PODCLIQUE, namespace, {**CLIQUE, "metadata": metadata, "spec": body["spec"]})
    await until_objects(admin, kinds.PODCLIQUE, namespace, lambda cliques: "orphan" not in cliques)


async def test_a_set_of_the_operator_is_adopted_scaled_and_deleted_and_no_pod_is_lost(control_plane: ControlPlane) -> None:
    source = Source(path=str(control_plane.kubeconfig()))
    async with connection(control_plane, "admin") as admin, connected(source, SystemClock(), field_manager="grove-operator") as operator:
        await define(admin, NAMESPACE)
        await Grove(operator, until_pods_run(admin), Options(), NAMESPACE).deploy(workload())
        before = await there(admin)
        audit = Audit(control_plane)

        assert {operation.verb for operation in await previewed(control_plane)} == {Verb.PATCH, Verb.STATUS}
        report = await synced(control_plane, NAMESPACE)

        assert (report.ending, report.failures) == (Ending.DONE, ())
        seen = audit.read()
        assert seen.refused == []
        assert {verb.partition(" ")[0] for verb in seen.writes} == {"patch"}
        await until_garbage_is_collected(admin)
        after = await there(admin)
        assert uids(after) == uids(before)
        assert {name: body["spec"] for name, body in after.items() if name.startswith("Pod ")} == {
            name: body["spec"] for name, body in before.items() if name.startswith("Pod ")
        }
        assert await previewed(control_plane) == []

        await admin.patch(kinds.PODCLIQUESET, NAMESPACE, "llm", {"spec": {"replicas": 3}}, subresource="scale")
        assert (await synced(control_plane, NAMESPACE)).ending is Ending.DONE
        grown = uids(await there(admin, kinds.POD))
        assert {name: grown[name] for name in uids(before) if name.startswith("Pod ")} == uids(
            {name: body for name, body in before.items() if name.startswith("Pod ")}
        )

        await admin.delete(kinds.PODCLIQUESET, NAMESPACE, "llm", propagation="Background")
        await synced(control_plane, NAMESPACE)
        assert await there(admin) == {}


async def test_a_set_of_the_later_release_is_left_alone_then_taken_over_and_no_pod_is_lost(control_plane: ControlPlane) -> None:
    source = Source(path=str(control_plane.kubeconfig()))
    async with connection(control_plane, "admin") as admin, connected(source, SystemClock(), field_manager="grove-operator") as operator:
        await define(admin, LATER, definition())
        grove = Grove(operator, until_pods_run(admin, LATER), Options(), LATER)
        await grove.deploy(workload(LATER))
        await EpochGrove(grove).migrate()
        before = await there(admin, namespace=LATER)
        audit = Audit(control_plane)

        denied = await synced(control_plane, LATER)

        assert (denied.ending, audit.read().writes) == (Ending.DENIED, {})
        assert uids(await there(admin, namespace=LATER)) == uids(before)

        report = await synced(control_plane, LATER, replace(SETUP, take_over=True))

        assert (report.ending, report.failures) == (Ending.DONE, ())
        assert audit.read().refused == []
        await until_garbage_is_collected(admin, LATER)
        after = await there(admin, namespace=LATER)
        kept = {name for name in before if not name.startswith("PodGang ")}
        assert {name: uid for name, uid in uids(after).items() if name in kept} == {name: uids(before)[name] for name in kept}
        assert {name: after[name]["spec"] for name in kept if name.startswith("Pod ")} == {
            name: before[name]["spec"] for name in kept if name.startswith("Pod ")
        }
        assert await there(admin, POD_GANG_MAP, namespace=LATER) == {}
        assert sorted(name for name in after if name.startswith("PodGang ")) == [
            "PodGang llm-0",
            "PodGang llm-0-pool-0",
            "PodGang llm-1",
            "PodGang llm-1-pool-0",
        ]
        assert await previewed(control_plane, LATER) == []

        await EpochGrove(grove).migrate()
        assert uids(await there(admin, kinds.POD, namespace=LATER)) == uids(
            {name: body for name, body in before.items() if name.startswith("Pod ")}
        )
        await admin.delete(kinds.PODCLIQUESET, LATER, "llm", propagation="Background")
        await synced(control_plane, LATER)
        assert await there(admin, *KINDS, POD_GANG_MAP, namespace=LATER) == {}
