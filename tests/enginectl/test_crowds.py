"""What a preview knows of the room on the nodes: from a cluster, a snapshot, or nothing."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import cast

import pytest

from engine.errors import Unreachable
from engine.runtime.provider import Observation, Scope
from enginectl.crowds import room_of
from providers.fabrics.nvidia import Nvidia
from providers.snapshot import EMPTY, Snapshot
from resources.domains.capacity import NodeCapacity
from resources.ports.fabric import Fabric
from tests.providers.fabrics.objects import claim, inventory

pytestmark = pytest.mark.anyio
NVIDIA = Nvidia()


@dataclass(frozen=True, slots=True)
class Half(Snapshot):
    """A cluster of which not everything can be seen."""

    incomplete: Mapping[str, str] = field(default_factory=dict)
    unserved: frozenset[str] = frozenset()

    async def observe(self, scope: Scope) -> Observation:
        """What there is."""
        return Observation((), (), self.incomplete, self.lives, self.unserved)


class Nobody(Snapshot):
    """A cluster that does not answer."""

    async def observe(self, scope: Scope) -> Observation:
        """Nothing."""
        raise Unreachable("nobody there")


async def test_the_room_is_the_nodes_with_a_channel_and_who_has_it() -> None:
    seen = Snapshot((inventory("n1"), inventory("n2"), inventory("n3", "daemon-0"), claim("p", "n2", "uid-far"), claim("q")))

    assert await room_of(NVIDIA, seen, complete=True) == NodeCapacity(frozenset({"n1", "n2"}), {"n2": "uid-far"})


async def test_a_cluster_without_any_has_no_room_and_a_snapshot_without_any_says_nothing() -> None:
    assert await room_of(NVIDIA, EMPTY, complete=True) == NodeCapacity(frozenset())
    assert await room_of(NVIDIA, EMPTY, complete=False) is None
    assert await room_of(NVIDIA, Snapshot((inventory("n1"),)), complete=False) == NodeCapacity(frozenset({"n1"}))


async def test_where_the_inventory_cannot_be_seen_nobody_knows_and_without_claims_all_is_free() -> None:
    lives = (inventory("n1"),)

    assert await room_of(NVIDIA, Half(lives, {"ResourceSlice": "forbidden"}), complete=True) is None
    assert await room_of(NVIDIA, Half(lives, unserved=frozenset({"ResourceSlice"})), complete=True) is None
    assert await room_of(NVIDIA, Nobody(), complete=True) is None
    assert await room_of(NVIDIA, Half(lives, {"ResourceClaim": "forbidden"}), complete=True) == NodeCapacity(frozenset({"n1"}))


async def test_a_fabric_whose_nodes_have_room_for_many_is_not_counted() -> None:
    class Roomy:
        """A fabric that says nothing about places."""

        kind = NVIDIA.kind

    assert await room_of(cast(Fabric, Roomy()), Snapshot((inventory("n1"),)), complete=True) is None
