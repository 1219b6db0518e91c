"""Namespaces: emptied, then let go."""

import pytest

from providers.sandbox.actors.settings import Settings
from resources.base.kinds import NAMESPACE, POD, SECRET
from tests.providers.sandbox.actors.manifests import pod
from tests.providers.sandbox.actors.stage import playing

pytestmark = pytest.mark.anyio


def secret(name: str, *finalizers: str) -> dict[str, object]:
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": "ml", "finalizers": list(finalizers)}}


async def test_a_deleted_namespace_takes_everything_with_it() -> None:
    async with playing("namespace", "kubelet", settings=Settings(nodes=1)) as stage:
        await stage.create(secret("s"), pod("p", node="node-0000"))
        await stage.client.delete(NAMESPACE, "", "ml")
        await stage.turn(5)

        assert await stage.get(NAMESPACE, "ml") is None
        assert await stage.names(SECRET) == await stage.names(POD) == set()


async def test_nothing_else_goes_while_pods_are_still_there() -> None:
    async with playing("namespace", "kubelet", settings=Settings(nodes=1, termination=10)) as stage:
        await stage.create(secret("s"), pod("p", node="node-0000"))
        await stage.turn(0)
        await stage.client.delete(NAMESPACE, "", "ml")
        await stage.turn(5)
        assert await stage.names(SECRET) == {"s"}

        await stage.turn(10)
        assert await stage.get(NAMESPACE, "ml") is None


async def test_a_namespace_that_cannot_go_says_what_keeps_it() -> None:
    async with playing("namespace") as stage:
        await stage.create(secret("s", "example.com/keep"))
        await stage.client.delete(NAMESPACE, "", "ml")
        await stage.turn(5)

        conditions = {one["type"]: one["message"] for one in (await stage.client.get(NAMESPACE, "", "ml"))["status"]["conditions"]}
        assert conditions["NamespaceContentRemaining"] == "Some resources are remaining: secrets. has 1 resource instances"
        assert conditions["NamespaceFinalizersRemaining"].endswith("example.com/keep in 1 resource instances")

        await stage.client.patch(SECRET, "ml", "s", {"metadata": {"finalizers": None}})
        await stage.turn(5)
        assert await stage.get(NAMESPACE, "ml") is None
