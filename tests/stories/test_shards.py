"""Shards: replicas divide the namespaces, take over those of a dead one, and no two of them ever write in one namespace."""

from collections import Counter

import pytest

from engine.runtime.lease import LEASE
from engine.runtime.shard_leases import lease_name
from engine.shards import shard_of
from resources.base import kinds
from tests.stories.replicas import NAME, fleet, holders, pods_ready, populate
from tests.stories.stage import stage

pytestmark = pytest.mark.anyio

WITHOUT = ("driver", "autoscaler", "claims", "lws", "deployments")


async def test_three_replicas_divide_the_namespaces_and_bring_up_every_set() -> None:
    async with stage(without=WITHOUT) as cluster, fleet(cluster) as replicas:
        names = await populate(cluster, 8)
        for _ in range(3):
            replicas.start(6)

        await cluster.until(lambda: pods_ready(cluster) == Counter(names), within=120)

        assert replicas.fouls == []
        assert set(replicas.created.values()) == {1}
        assert sorted(replicas.shares(6).values()) == [2, 2, 2]


async def test_the_shards_of_a_killed_replica_are_taken_over_when_its_leases_have_expired() -> None:
    async with stage(without=WITHOUT) as cluster, fleet(cluster) as replicas:
        first, second = replicas.start(4), replicas.start(4)
        await cluster.until(lambda: sorted(replicas.shares(4).values()) == [2, 2])
        killed_at = cluster.clock.monotonic()
        first.kill()

        await cluster.until(lambda: set(holders(cluster, 4)) == {second.identity})

        assert 10 <= cluster.clock.monotonic() - killed_at <= 15 + 2 * 2.2
        names = await populate(cluster, 8)
        await cluster.until(lambda: pods_ready(cluster) == Counter(names), within=60)
        assert replicas.fouls == []


async def test_the_leases_of_killed_replicas_go_with_that_of_the_first_shard() -> None:
    async with stage(without=WITHOUT) as cluster, fleet(cluster) as replicas:
        first, second = replicas.start(2), replicas.start(2)
        await cluster.until(lambda: sorted(replicas.shares(2).values()) == [1, 1])
        for replica in (first, second):
            replica.kill()
        assert len(cluster.there(LEASE)) == 4

        for shard in range(2):
            await cluster.delete(LEASE, lease_name(NAME, shard))
        await cluster.clock.advance(60)

        assert cluster.there(LEASE) == {}


async def test_a_replica_that_joins_gets_its_share_and_none_of_its_shards_moves_again() -> None:
    async with stage(without=WITHOUT) as cluster, fleet(cluster) as replicas:
        first = replicas.start(5)
        await cluster.until(lambda: replicas.shares(5) == {first.identity: 5})
        names = await populate(cluster, 8)
        await cluster.until(lambda: pods_ready(cluster) == Counter(names), within=60)
        joined_at = cluster.clock.monotonic()
        second = replicas.start(5)

        await cluster.until(lambda: sorted(replicas.shares(5).values()) == [2, 3])

        assert cluster.clock.monotonic() - joined_at < 10
        before = holders(cluster, 5)
        await cluster.clock.advance(300)
        assert (holders(cluster, 5), replicas.fouls) == (before, [])
        assert {first.identity, second.identity} == set(before)
        assert set(replicas.created.values()) == {1}
        theirs = [name for name in names if before[shard_of(name, 5)] == second.identity]
        written = second.count
        await cluster.kubectl.delete(kinds.SERVICE, theirs[0], f"{theirs[0]}-0")
        await cluster.clock.advance(5)
        assert second.count > written
