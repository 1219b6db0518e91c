"""The node capacity that a preview knows: of a cluster, of a snapshot, or none."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import cast

import pytest

from engine.errors import Unreachable
from engine.observed import Unlisted
from engine.runtime.provider import Observation, Scope
from enginectl.actions.facts import FactReader, capacity_of
from providers.fabrics.nvidia.fabric import Nvidia
from providers.snapshot import EMPTY, Snapshot
from resources.domains.capacity import NodeCapacity
from resources.ports.fabric import Fabric
from tests.providers.fabrics.objects import claim, inventory

pytestmark = pytest.mark.anyio
NVIDIA = Nvidia()


@dataclass(frozen=True, slots=True)
class Incomplete(Snapshot):
    """A cluster of which some kinds cannot be listed."""

    incomplete: Mapping[str, Unlisted] = field(default_factory=dict)
    unserved: frozenset[str] = frozenset()

    async def observe(self, scope: Scope) -> Observation:
        """What there is."""
        return Observation((), (), self.incomplete, self.lives, self.unserved)


class Silent(Snapshot):
    """A cluster that does not answer."""

    async def observe(self, scope: Scope) -> Observation:
        """Nothing."""
        raise Unreachable("nobody there")


async def test_the_capacity_is_the_nodes_with_a_channel_and_the_domains_that_use_them() -> None:
    seen = Snapshot((inventory("n1"), inventory("n2"), inventory("n3", "daemon-0"), claim("p", "n2", "uid-far"), claim("q")))

    assert await capacity_of(NVIDIA, FactReader(seen), complete=True) == NodeCapacity(frozenset({"n1", "n2"}), {"n2": "uid-far"})


async def test_without_inventory_a_cluster_has_no_capacity_and_that_of_a_snapshot_is_unknown() -> None:
    assert await capacity_of(NVIDIA, FactReader(EMPTY), complete=True) == NodeCapacity(frozenset())
    assert await capacity_of(NVIDIA, FactReader(EMPTY), complete=False) is None
    assert await capacity_of(NVIDIA, FactReader(Snapshot((inventory("n1"),))), complete=False) == NodeCapacity(frozenset({"n1"}))


async def test_without_access_to_the_inventory_it_is_unknown_and_without_claims_all_nodes_are_free() -> None:
    lives = (inventory("n1"),)

    assert (
        await capacity_of(NVIDIA, FactReader(Incomplete(lives, incomplete={"ResourceSlice": Unlisted("forbidden")})), complete=True) is None
    )
    assert await capacity_of(NVIDIA, FactReader(Incomplete(lives, unserved=frozenset({"ResourceSlice"}))), complete=True) is None
    assert await capacity_of(NVIDIA, FactReader(Silent()), complete=True) is None
    without_claims = FactReader(Incomplete(lives, incomplete={"ResourceClaim": Unlisted("forbidden", is_forbidden=True)}))
    assert await capacity_of(NVIDIA, without_claims, complete=True) == NodeCapacity(frozenset({"n1"}))
    assert without_claims.forbidden == {"resourceclaims"}


async def test_a_fabric_whose_nodes_can_be_in_many_domains_has_no_capacity() -> None:
    class Roomy:
        """A fabric that says nothing about places."""

        kind = NVIDIA.kind
        slots = None

    assert await capacity_of(cast(Fabric, Roomy()), FactReader(Snapshot((inventory("n1"),))), complete=True) is None
