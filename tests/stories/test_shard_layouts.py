"""The number of shards: all writers agree on it, a sync follows it, and another number waits until nobody works by the old one."""

from collections import Counter
from typing import Any

import pytest

from engine.errors import LeaseTaken
from engine.runtime.lease import LEASE, Lease
from engine.runtime.lease_holder import SHARDS, layout_of
from engine.runtime.sync_report import Ending, SyncReport
from engine.shards import shard_of
from enginectl.wiring.scope import ROOTS, Selection
from resources.base import kinds
from resources.ports.configuration import Configuration
from tests.builders import clique, podcliqueset
from tests.stories.process import Process
from tests.stories.replicas import NAME, everywhere, fleet, holders, pods_ready, populate
from tests.stories.stage import Stage, stage

pytestmark = pytest.mark.anyio

WITHOUT = ("driver", "autoscaler", "claims", "lws", "deployments")


def layout_in(cluster: Stage) -> int:
    """The number of shards that the Leases say."""
    return layout_of(cluster.there(LEASE)[NAME])


def lease_for(cluster: Stage, process: Process, identity: str) -> Lease:
    return Lease(process, cluster.clock, "default", NAME, identity, purpose="sync")


async def test_replicas_with_another_number_wait_until_the_last_one_with_the_old_number_has_ended() -> None:
    async with stage(without=WITHOUT) as cluster, fleet(cluster) as replicas:
        names = await populate(cluster, 6)
        old = [replicas.start(2), replicas.start(2)]
        await cluster.until(lambda: pods_ready(cluster) == Counter(names), within=120)
        new = [replicas.start(5), replicas.start(5)]
        await cluster.clock.advance(60)
        assert (layout_in(cluster), [replica.count for replica in new]) == (2, [0, 0])

        old[0].stop.cancel()
        await cluster.clock.advance(60)
        assert (layout_in(cluster), [replica.count for replica in new]) == (2, [0, 0])
        old[1].kill()
        await cluster.until(lambda: set(holders(cluster, 5)) == {replica.identity for replica in new}, within=40)

        assert layout_in(cluster) == 5
        assert replicas.fouls == []
        assert "waiting for the lease holder=replica-" in new[0].log.getvalue()


async def test_back_to_one_shard_leaves_one_lease_without_a_mark() -> None:
    async with stage(without=WITHOUT) as cluster, fleet(cluster) as replicas:
        three = replicas.start(3)
        await cluster.until(lambda: set(holders(cluster, 3)) == {three.identity})
        one = replicas.start(1)
        await cluster.clock.advance(30)
        assert layout_in(cluster) == 3

        three.stop.cancel()
        await cluster.until(lambda: holders(cluster, 1) == [one.identity], within=30)

        leases = cluster.there(LEASE)
        assert set(leases) == {NAME} and SHARDS not in leases[NAME]["metadata"].get("annotations", {})
        names = await populate(cluster, 2)
        await cluster.until(lambda: pods_ready(cluster) == Counter(names), within=60)


async def test_a_program_that_knows_of_no_shards_and_takes_the_first_lease_stops_all_replicas() -> None:
    async with stage(without=WITHOUT) as cluster, fleet(cluster) as replicas:
        ours = replicas.start(3)
        await cluster.until(lambda: set(holders(cluster, 3)) == {ours.identity})
        spec = {"holderIdentity": "somebody-else", "leaseDurationSeconds": 30, "renewTime": "2030-01-01T00:00:00.000000Z"}

        await cluster.kubectl.patch(LEASE, "default", NAME, {"spec": spec})
        await cluster.clock.advance(8)

        assert holders(cluster, 3) == ["somebody-else", "", ""]
        await cluster.until(lambda: set(holders(cluster, 3)) == {ours.identity}, within=60)
        assert replicas.fouls == []


async def test_a_sync_takes_the_leases_of_its_namespaces_and_disturbs_no_other() -> None:
    async with stage(without=WITHOUT) as cluster, fleet(cluster) as replicas:
        replica = replicas.start(3)
        names = await populate(cluster, 6)
        await cluster.until(lambda: pods_ready(cluster) == Counter(names), within=120)
        own = next(name for name in names if shard_of(name, 3) == 1)
        process = cluster.start()

        with pytest.raises(
            LeaseTaken, match=r"default/engine-shard-1 is held by replica-0, since .*, for: run in all namespaces, shard 1 of 3"
        ):
            await sync_in(cluster, process, own)

        replica.stop.cancel()
        await cluster.until(lambda: not any(holders(cluster, 3)))
        manifest = podcliqueset(f"{own}-more", clique("worker", 1), namespace=own)
        report = await sync_in(cluster, process, own, manifests=[manifest])
        assert report.ending is Ending.DONE
        assert {body["metadata"]["name"] for body in everywhere(cluster, kinds.PODCLIQUESET)} == {*names, f"{own}-more"}
        assert layout_in(cluster) == 3


async def sync_in(cluster: Stage, process: Process, namespace: str, **options: Any) -> SyncReport[Configuration]:
    """`engine sync -n NAMESPACE`."""
    cluster.reads = Selection((namespace,), tuple(kind for kind in ROOTS if kind.namespaced))
    return await cluster.sync(process, lease=lease_for(cluster, process, "a-sync"), **options)


async def test_a_sync_in_all_namespaces_takes_all_leases_and_gives_them_back() -> None:
    async with stage(without=WITHOUT) as cluster, fleet(cluster) as replicas:
        replica = replicas.start(3)
        await cluster.until(lambda: set(holders(cluster, 3)) == {replica.identity})
        replica.stop.cancel()
        await cluster.until(lambda: not any(holders(cluster, 3)))
        names = await populate(cluster, 4)
        process, seen = cluster.start(), set[tuple[str, ...]]()
        process.on_write = lambda: seen.add(tuple(holders(cluster, 3)))

        report = await cluster.sync(process, lease=lease_for(cluster, process, "a-sync"))

        assert (report.ending, pods_ready(cluster)) == (Ending.DONE, Counter(names))
        assert seen == {("a-sync", "a-sync", "a-sync")}
        assert (holders(cluster, 3), layout_in(cluster)) == (["", "", ""], 3)
