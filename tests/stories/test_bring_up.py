"""Bring-up: what is asked for comes to be, with few writes, and then nothing is written any more."""

import pytest

from engine.runtime.sync_report import Ending
from resources.base import kinds
from tests.builders import clique, group, podcliqueset
from tests.stories.stage import stage

pytestmark = pytest.mark.anyio


async def test_a_set_comes_up_whole_and_a_second_sync_writes_nothing() -> None:
    async with stage() as cluster:
        await cluster.apply(podcliqueset("web", clique("worker", 2), replicas=2))

        report = await cluster.sync()

        assert report.ending is Ending.DONE
        assert cluster.process.refused == []
        assert len(await cluster.objects(kinds.POD)) == 4
        assert all(_is_ready(pod) for pod in await cluster.objects(kinds.POD))

        again = await cluster.sync()

        assert again.ending is Ending.DONE
        assert cluster.process.count == 0
        assert cluster.process.refused == []


async def test_fifty_replicas_of_two_pods_take_at_most_ten_writes_each() -> None:
    async with stage(nodes=50) as cluster:
        await cluster.apply(podcliqueset("web", clique("worker", 2), replicas=50))

        report = await cluster.sync()

        assert report.ending is Ending.DONE
        assert cluster.process.count <= 50 * 10
        assert cluster.process.refused == []


async def test_scaled_gangs_wait_for_their_base_and_come_up_after_it() -> None:
    prefill, decode = clique("prefill", 2), clique("decode", 2)
    async with stage() as cluster:
        await cluster.apply(podcliqueset("llm", prefill, decode, groups=(group("pool", "prefill", "decode", replicas=3, min_available=1),)))

        report = await cluster.sync()

        assert report.ending is Ending.DONE
        pods = await cluster.objects(kinds.POD)
        assert len(pods) == 3 * 4
        assert not any(pod["spec"].get("schedulingGates") for pod in pods)
        assert (await cluster.sync()).ending is Ending.DONE
        assert cluster.process.count == 0


async def test_a_manifest_given_to_sync_comes_up_as_if_it_had_been_applied() -> None:
    async with stage() as cluster:
        report = await cluster.sync(manifests=[podcliqueset("web", clique("worker", 2))])

        assert report.ending is Ending.DONE
        assert len(await cluster.objects(kinds.POD)) == 2

        await cluster.sync()

        assert cluster.process.count == 0


async def test_scaling_is_followed_both_ways() -> None:
    async with stage() as cluster:
        await cluster.apply(podcliqueset("web", clique("worker", 1)))
        await cluster.sync()

        for replicas in (3, 1):
            await cluster.scale(kinds.PODCLIQUESET, "web", replicas)
            assert (await cluster.sync()).ending is Ending.DONE
            assert len(await cluster.objects(kinds.POD)) == replicas
            assert len(await cluster.objects(kinds.PODCLIQUE)) == replicas


async def test_a_set_that_is_deleted_leaves_nothing_behind() -> None:
    async with stage() as cluster:
        await cluster.apply(podcliqueset("web", clique("worker", 2), replicas=2))
        await cluster.sync()

        await cluster.delete(kinds.PODCLIQUESET, "web")
        report = await cluster.sync()
        await cluster.clock.advance(30)

        assert report.ending is Ending.DONE
        assert await cluster.names() == set()


async def test_a_pod_that_somebody_deletes_is_replaced() -> None:
    async with stage() as cluster:
        await cluster.apply(podcliqueset("web", clique("worker", 2)))
        await cluster.sync()
        first = (await cluster.objects(kinds.POD))[0]["metadata"]

        await cluster.delete(kinds.POD, first["name"])
        report = await cluster.sync()

        assert report.ending is Ending.DONE
        pods = await cluster.objects(kinds.POD)
        assert len(pods) == 2
        assert first["uid"] not in {pod["metadata"]["uid"] for pod in pods}
        assert all(map(_is_ready, pods))


def _is_ready(pod: dict[str, object]) -> bool:
    status = pod["status"]
    assert isinstance(status, dict)
    return any(one["type"] == "Ready" and one["status"] == "True" for one in status.get("conditions", ()))
