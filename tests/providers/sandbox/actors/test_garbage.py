"""Garbage: what goes when owners go."""

from collections.abc import Sequence
from typing import Any

import pytest

from engine.errors import NotFound
from engine.ids import Kind
from resources.base.kinds import PODCLIQUE
from tests.providers.sandbox.actors.stage import Stage, on, playing

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


async def test_what_an_owner_leaves_behind_goes_with_all_its_descendants() -> None:
    async with playing("garbage") as stage:
        root = await made(stage, named("root"))
        child = await made(stage, named("child", root))
        await made(stage, named("grandchild", child))
        await stage.turn(0)
        assert await stage.names(CONFIG_MAP) == {"root", "child", "grandchild"}

        await stage.client.delete(CONFIG_MAP, "ml", "root")
        await stage.turn(0)
        assert await stage.names(CONFIG_MAP) == set()


async def test_an_object_with_another_living_owner_stays_and_forgets_the_one_that_went() -> None:
    async with playing("garbage") as stage:
        one, two = await made(stage, named("one")), await made(stage, named("two"))
        await made(stage, named("shared", one, two))
        await stage.client.delete(CONFIG_MAP, "ml", "one")
        await stage.turn(0)

        shared = await stage.client.get(CONFIG_MAP, "ml", "shared")
        assert [owner["name"] for owner in shared["metadata"]["ownerReferences"]] == ["two"]


async def test_what_names_an_owner_that_never_was_or_has_a_successor_goes() -> None:
    async with playing("garbage") as stage:
        root = await made(stage, named("root"))
        stranger = {**root, "metadata": {"name": "root", "uid": "00000000-0000-0000-0000-000000000000"}}
        nobody = {**root, "metadata": {"name": "nobody", "uid": "11111111-1111-1111-1111-111111111111"}}
        await made(stage, named("of-the-successor", stranger))
        await made(stage, named("of-nobody", nobody))
        await stage.turn(0)

        assert await stage.names(CONFIG_MAP) == {"root"}


async def test_what_is_owned_by_a_kind_that_nobody_serves_stays() -> None:
    async with playing("garbage") as stage:
        unknown = {"apiVersion": "example.com/v1", "kind": "Unknown", "metadata": {"name": "u", "uid": "u-1"}}
        await made(stage, named("kept", unknown))
        await stage.turn(10)

        assert await stage.names(CONFIG_MAP) == {"kept"}


async def test_a_deletion_in_the_foreground_lets_the_owner_go_last() -> None:
    async with playing("garbage") as stage:
        root = await made(stage, named("root"))
        await made(stage, named("slow", root, finalizers=["example.com/keep"]))
        await made(stage, named("quick", root))
        await stage.client.delete(CONFIG_MAP, "ml", "root", propagation="Foreground")
        await stage.turn(5)
        assert await stage.names(CONFIG_MAP) == {"root", "slow"}

        await stage.client.patch(CONFIG_MAP, "ml", "slow", {"metadata": {"finalizers": None}})
        await stage.turn(0)
        assert await stage.names(CONFIG_MAP) == set()


async def test_a_deletion_in_the_foreground_does_not_wait_for_children_that_do_not_block() -> None:
    async with playing("garbage") as stage:
        root = await made(stage, named("root"))
        await made(stage, named("slow", root, blocking=False, finalizers=["example.com/keep"]))
        await stage.client.delete(CONFIG_MAP, "ml", "root", propagation="Foreground")
        await stage.turn(0)

        assert await stage.names(CONFIG_MAP) == {"slow"}


async def test_a_deletion_that_leaves_orphans_leaves_them_without_owner() -> None:
    async with playing("garbage") as stage:
        root = await made(stage, named("root"))
        await made(stage, named("child", root))
        await stage.client.delete(CONFIG_MAP, "ml", "root", propagation="Orphan")
        await stage.turn(0)

        assert await stage.names(CONFIG_MAP) == {"child"}
        assert "ownerReferences" not in (await stage.client.get(CONFIG_MAP, "ml", "child"))["metadata"]


async def test_a_circle_of_owners_does_not_keep_itself_alive() -> None:
    async with playing("garbage") as stage:
        root = await made(stage, named("root"))
        child = await made(stage, named("child", root))
        reference = named("", child)["metadata"]["ownerReferences"]
        await stage.client.patch(CONFIG_MAP, "ml", "root", {"metadata": {"ownerReferences": reference}})
        await stage.client.delete(CONFIG_MAP, "ml", "root", propagation="Foreground")
        await stage.turn(5)

        assert await stage.names(CONFIG_MAP) == set()


async def test_custom_kinds_own_and_are_owned_like_all_others() -> None:
    async with playing("garbage") as stage:
        spec = {"roleName": "r", "replicas": 1, "podSpec": {"containers": [{"name": "c", "image": "i"}]}}
        body = {"apiVersion": "grove.io/v1alpha1", "kind": "PodClique", "metadata": {"name": "clique"}, "spec": spec}
        clique = await stage.client.create(PODCLIQUE, "ml", body)
        await made(stage, named("child", {"apiVersion": "grove.io/v1alpha1", "kind": "PodClique", **{"metadata": clique["metadata"]}}))
        await stage.client.delete(PODCLIQUE, "ml", "clique")
        await stage.turn(0)

        assert await stage.names(CONFIG_MAP) == set()


async def test_what_lost_its_owner_while_nobody_looked_is_found_at_the_next_start() -> None:
    async with playing() as stage:
        root = await made(stage, named("root"))
        await made(stage, named("child", root))
        await stage.client.delete(CONFIG_MAP, "ml", "root")
        async with on(stage, "garbage"):
            await stage.turn(0)

        with pytest.raises(NotFound):
            await stage.client.get(CONFIG_MAP, "ml", "child")
