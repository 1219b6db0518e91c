"""Garbage: which objects are deleted when owners are."""

from collections.abc import Sequence
from typing import Any

import pytest

from engine.errors import NotFound
from engine.ids import Kind
from resources.base.kinds import PODCLIQUE
from sandbox.tests.actors.stage import Stage, on, running

pytestmark = pytest.mark.anyio

CONFIG_MAP = Kind("", "v1", "ConfigMap", "configmaps")


def named(name: str, *owners: dict[str, Any], blocking: bool = True, finalizers: Sequence[str] = ()) -> dict[str, Any]:
    """A ConfigMap owned by these objects."""
    references = [
        {
            "apiVersion": owner["apiVersion"],
            "kind": owner["kind"],
            "name": owner["metadata"]["name"],
            "uid": owner["metadata"]["uid"],
            "blockOwnerDeletion": blocking,
        }
        for owner in owners
    ]
    metadata = {"name": name, "namespace": "ml", "ownerReferences": references, "finalizers": list(finalizers)}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}


async def made(stage: Stage, body: dict[str, Any]) -> dict[str, Any]:
    return {**await stage.client.create(CONFIG_MAP, "ml", body), "apiVersion": "v1", "kind": "ConfigMap"}


async def test_dependents_of_a_deleted_owner_are_deleted_with_all_descendants() -> None:
    async with running("garbage") as stage:
        root = await made(stage, named("root"))
        child = await made(stage, named("child", root))
        await made(stage, named("grandchild", child))
        await stage.turn(0)
        assert await stage.names(CONFIG_MAP) == {"root", "child", "grandchild"}

        await stage.client.delete(CONFIG_MAP, "ml", "root")
        await stage.turn(0)
        assert await stage.names(CONFIG_MAP) == set()


async def test_an_object_with_another_owner_stays_and_loses_the_reference_to_the_deleted_one() -> None:
    async with running("garbage") as stage:
        one, two = await made(stage, named("one")), await made(stage, named("two"))
        await made(stage, named("shared", one, two))
        await stage.client.delete(CONFIG_MAP, "ml", "one")
        await stage.turn(0)

        shared = await stage.client.get(CONFIG_MAP, "ml", "shared")
        assert [owner["name"] for owner in shared["metadata"]["ownerReferences"]] == ["two"]


async def test_an_object_whose_owner_never_existed_or_has_a_successor_is_deleted() -> None:
    async with running("garbage") as stage:
        root = await made(stage, named("root"))
        stranger = {**root, "metadata": {"name": "root", "uid": "00000000-0000-0000-0000-000000000000"}}
        nobody = {**root, "metadata": {"name": "nobody", "uid": "11111111-1111-1111-1111-111111111111"}}
        await made(stage, named("of-the-successor", stranger))
        await made(stage, named("of-nobody", nobody))
        await stage.turn(0)

        assert await stage.names(CONFIG_MAP) == {"root"}


async def test_an_object_whose_owner_is_of_an_unserved_kind_stays() -> None:
    async with running("garbage") as stage:
        unknown = {"apiVersion": "example.com/v1", "kind": "Unknown", "metadata": {"name": "u", "uid": "u-1"}}
        await made(stage, named("kept", unknown))
        await stage.turn(10)

        assert await stage.names(CONFIG_MAP) == {"kept"}


async def test_a_foreground_deletion_removes_the_owner_last() -> None:
    async with running("garbage") as stage:
        root = await made(stage, named("root"))
        await made(stage, named("slow", root, finalizers=["example.com/keep"]))
        await made(stage, named("quick", root))
        await stage.client.delete(CONFIG_MAP, "ml", "root", propagation="Foreground")
        await stage.turn(5)
        assert await stage.names(CONFIG_MAP) == {"root", "slow"}

        await stage.client.patch(CONFIG_MAP, "ml", "slow", {"metadata": {"finalizers": None}})
        await stage.turn(0)
        assert await stage.names(CONFIG_MAP) == set()


async def test_a_foreground_deletion_does_not_wait_for_dependents_that_do_not_block() -> None:
    async with running("garbage") as stage:
        root = await made(stage, named("root"))
        await made(stage, named("slow", root, blocking=False, finalizers=["example.com/keep"]))
        await stage.client.delete(CONFIG_MAP, "ml", "root", propagation="Foreground")
        await stage.turn(0)

        assert await stage.names(CONFIG_MAP) == {"slow"}


async def test_orphaned_dependents_stay_without_the_owner_reference() -> None:
    async with running("garbage") as stage:
        root = await made(stage, named("root"))
        await made(stage, named("child", root))
        await stage.client.delete(CONFIG_MAP, "ml", "root", propagation="Orphan")
        await stage.turn(0)

        assert await stage.names(CONFIG_MAP) == {"child"}
        assert "ownerReferences" not in (await stage.client.get(CONFIG_MAP, "ml", "child"))["metadata"]


async def test_a_circle_of_owners_does_not_keep_itself_alive() -> None:
    async with running("garbage") as stage:
        root = await made(stage, named("root"))
        child = await made(stage, named("child", root))
        reference = named("", child)["metadata"]["ownerReferences"]
        await stage.client.patch(CONFIG_MAP, "ml", "root", {"metadata": {"ownerReferences": reference}})
        await stage.client.delete(CONFIG_MAP, "ml", "root", propagation="Foreground")
        await stage.turn(5)

        assert await stage.names(CONFIG_MAP) == set()


async def test_custom_kinds_are_collected_like_all_others() -> None:
    async with running("garbage") as stage:
        spec = {"roleName": "r", "replicas": 1, "podSpec": {"containers": [{"name": "c", "image": "i"}]}}
        body = {"apiVersion": "grove.io/v1alpha1", "kind": "PodClique", "metadata": {"name": "clique"}, "spec": spec}
        clique = await stage.client.create(PODCLIQUE, "ml", body)
        await made(stage, named("child", {"apiVersion": "grove.io/v1alpha1", "kind": "PodClique", **{"metadata": clique["metadata"]}}))
        await stage.client.delete(PODCLIQUE, "ml", "clique")
        await stage.turn(0)

        assert await stage.names(CONFIG_MAP) == set()


async def test_objects_that_lost_their_owner_while_the_collector_was_down_are_deleted_after_a_restart() -> None:
    async with running() as stage:
        root = await made(stage, named("root"))
        await made(stage, named("child", root))
        await stage.client.delete(CONFIG_MAP, "ml", "root")
        async with on(stage, "garbage"):
            await stage.turn(0)

        with pytest.raises(NotFound):
            await stage.client.get(CONFIG_MAP, "ml", "child")
