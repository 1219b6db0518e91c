"""The parent of an ApplySet: it names old and new members while they are written, and is never written over somebody else's change."""

import pytest

from engine.errors import EngineError
from engine.ids import ResourceId
from providers.applyset_parent import ApplySetParent
from providers.sandbox.api.verbs import Api
from providers.sandbox.clients.inprocess import InProcessClient
from providers.sandbox.clock import VirtualClock
from resources.base import applyset
from resources.base.applyset import Extent, Record, parent_metadata, recorded_extent
from resources.base.kinds import CONFIG_MAP, PODCLIQUESET, SECRET, TOPOLOGY_BINDING

pytestmark = pytest.mark.anyio

TEAM = CONFIG_MAP.id("default", "team")
BOTH = Extent(frozenset({"PodCliqueSet.grove.io", "ClusterTopologyBinding.grove.io"}), frozenset({"far"}))
SETS = Extent(frozenset({"PodCliqueSet.grove.io"}))


@pytest.fixture
def client() -> InProcessClient:
    """A client of an API server."""
    return InProcessClient(Api(VirtualClock(), seed=1), "engine")


async def extent(client: InProcessClient, id: ResourceId = TEAM) -> Extent:
    """What the parent says."""
    return recorded_extent(await client.get(CONFIG_MAP if id.kind == "ConfigMap" else SECRET, id.namespace, id.name))


async def recorded(client: InProcessClient, said: Extent, needed: Extent) -> ApplySetParent:
    """A parent that says the one, as it was read, and is to say the other."""
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "team", "namespace": "default", **parent_metadata(TEAM, said)}}
    metadata = (await client.create(CONFIG_MAP, "default", body))["metadata"]
    return ApplySetParent(client, Record(TEAM, metadata["uid"], metadata["resourceVersion"], said, needed))


@pytest.mark.parametrize("parent", [TEAM, SECRET.id("default", "team")], ids=lambda id: id.kind)
async def test_a_new_parent_names_what_is_needed_before_anything_is_written(client: InProcessClient, parent: ResourceId) -> None:
    books = ApplySetParent(client, Record(parent, "", "", None, BOTH))
    assert not books.are_closed

    await books.open()

    assert await extent(client, parent) == BOTH
    assert books.are_closed


async def test_old_and_new_members_are_named_until_everything_is_done(client: InProcessClient) -> None:
    books = await recorded(client, Extent(frozenset({"ClusterTopologyBinding.grove.io"}), frozenset({"far"})), SETS)

    await books.open()
    assert (await extent(client), books.are_closed) == (BOTH, False)

    await books.close()
    assert (await extent(client), books.are_closed) == (SETS, True)


async def test_what_is_said_already_is_not_written_again(client: InProcessClient) -> None:
    books = await recorded(client, BOTH, BOTH)
    before = (await client.get(CONFIG_MAP, "default", "team"))["metadata"]["resourceVersion"]

    await books.open()
    await books.close()

    assert (await client.get(CONFIG_MAP, "default", "team"))["metadata"]["resourceVersion"] == before


async def test_a_parent_that_somebody_has_changed_or_made_meanwhile_is_not_overwritten(client: InProcessClient) -> None:
    books = await recorded(client, SETS, BOTH)
    await client.patch(CONFIG_MAP, "default", "team", {"metadata": {"annotations": {"example.com/note": "ours"}}})

    for late in (books, ApplySetParent(client, Record(TEAM, "", "", None, BOTH))):
        with pytest.raises(EngineError, match="was changed meanwhile by somebody else: run the command again"):
            await late.open()
    assert await extent(client) == SETS


def test_ids_are_as_kubectl_computes_them() -> None:
    # printf 'team.default.ConfigMap.' | openssl dgst -sha256 -binary | basenc --base64url
    assert applyset.applyset_id(TEAM) == "applyset--ob3QmWOKrZDRcR05wpc1jhS3WhIVEM7q8OOXgLAe50-v1"


def test_an_extent_names_kinds_with_their_groups_and_no_namespace_twice() -> None:
    roots = [PODCLIQUESET.id("default", "a"), PODCLIQUESET.id("far", "b"), TOPOLOGY_BINDING.id("", "racks")]

    assert applyset.extent_of_roots(roots, TEAM) == BOTH
