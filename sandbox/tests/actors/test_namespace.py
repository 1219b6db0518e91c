"""Namespace: emptied, then finalized."""

import pytest

from grove_sandbox.actors.options import ActorOptions
from resources.base.kinds import NAMESPACE, POD, SECRET
from sandbox.tests.actors.manifests import pod
from sandbox.tests.actors.stage import running

pytestmark = pytest.mark.anyio


def secret(name: str, *finalizers: str) -> dict[str, object]:
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": "ml", "finalizers": list(finalizers)}}


async def test_a_deleted_namespace_takes_everything_with_it() -> None:
    async with running("namespace", "kubelet", options=ActorOptions(nodes=1)) as stage:
        await stage.create(secret("s"), pod("p", node="node-0000"))
        await stage.client.delete(NAMESPACE, "", "ml")
        await stage.turn(5)

        assert await stage.get(NAMESPACE, "ml") is None
        assert await stage.names(SECRET) == await stage.names(POD) == set()


async def test_other_objects_are_deleted_only_after_the_pods() -> None:
    async with running("namespace", "kubelet", options=ActorOptions(nodes=1, termination=10)) as stage:
        await stage.create(secret("s"), pod("p", node="node-0000"))
        await stage.turn(0)
        await stage.client.delete(NAMESPACE, "", "ml")
        await stage.turn(5)
        assert await stage.names(SECRET) == {"s"}

        await stage.turn(10)
        assert await stage.get(NAMESPACE, "ml") is None


async def test_a_namespace_that_is_not_empty_reports_what_remains() -> None:
    async with running("namespace") as stage:
        await stage.create(secret("s", "example.com/keep"))
        await stage.client.delete(NAMESPACE, "", "ml")
        await stage.turn(5)

        conditions = {one["type"]: one["message"] for one in (await stage.client.get(NAMESPACE, "", "ml"))["status"]["conditions"]}
        assert conditions["NamespaceContentRemaining"] == "Some resources are remaining: secrets. has 1 resource instances"
        assert conditions["NamespaceFinalizersRemaining"].endswith("example.com/keep in 1 resource instances")

        await stage.client.patch(SECRET, "ml", "s", {"metadata": {"finalizers": None}})
        await stage.turn(5)
        assert await stage.get(NAMESPACE, "ml") is None
