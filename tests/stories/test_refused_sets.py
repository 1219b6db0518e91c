"""A set whose calls the API server refuses backs off alone, says so once, and goes on as soon as what refuses them has changed."""

from collections.abc import Callable
from typing import Any

import pytest

from engine.errors import Forbidden, RefusedBy
from engine.ids import NAMESPACE
from engine.runtime.execution import HELD_BACK
from engine.runtime.refusals import LONGEST_PAUSE
from resources.base import kinds
from tests.builders import clique, podcliqueset
from tests.stories.process import Call, Process
from tests.stories.refusing import Quota, pods_of_image, refuse
from tests.stories.replicas import everywhere
from tests.stories.stage import Stage, stage

pytestmark = pytest.mark.anyio

REPLICAS = 200
ROOM = 5
"""How many pods the quota allows."""
SOON = 5.0
"""Seconds within which a set goes on: a few passes."""
QUIET = 100.0
"""Seconds after which the pauses are as long as they get."""


def large(**template: Any) -> dict[str, Any]:
    """A set of many pods."""
    return podcliqueset("large", clique("w", 1, **template), replicas=REPLICAS)


def pods(cluster: Stage, of: str = "large") -> int:
    """How many pods there are of that set."""
    return sum(name.startswith(f"{of}-") for name in cluster.there(kinds.POD))


def is_available(cluster: Stage, name: str) -> bool:
    """Whether the set of that name, in whichever namespace, has an available replica."""
    sets = everywhere(cluster, kinds.PODCLIQUESET)
    return any(each["metadata"]["name"] == name and (each.get("status") or {}).get("availableReplicas") == 1 for each in sets)


def held_back(cluster: Stage) -> list[dict[str, Any]]:
    """The events about calls that are held back."""
    return [event for event in cluster.there(kinds.EVENT).values() if event["reason"] == HELD_BACK]


async def seconds_until(cluster: Stage, holds: Callable[[], bool]) -> float:
    """How long it takes."""
    began = cluster.clock.monotonic()
    await cluster.until(holds)
    return cluster.clock.monotonic() - began


async def middle_of_a_long_pause(cluster: Stage, ours: Process) -> None:
    """Let time pass until a call has just been refused after one of the longest pauses."""
    await cluster.clock.advance(QUIET)
    before = len(ours.refused)
    await cluster.until(lambda: len(ours.refused) > before)
    await cluster.clock.advance(1.0)


async def test_a_set_without_room_sends_few_calls_says_so_once_and_delays_nobody() -> None:
    async with stage() as cluster:
        Quota(cluster.api, ROOM)
        await cluster.kubectl.create(NAMESPACE, "", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "another"}})
        async with cluster.running() as ours:
            await cluster.apply(large())
            await cluster.clock.advance(QUIET)

            assert pods(cluster) == ROOM
            assert len(cluster.there(kinds.PODCLIQUE)) == REPLICAS, "other calls of the set go on"
            assert len(ours.refused) < REPLICAS / 2
            (event,) = held_back(cluster)
            assert (event["type"], event["involvedObject"]["kind"], event.get("count", 1)) == ("Warning", "PodCliqueSet", 1)
            assert event["message"].startswith("calls held back (create Pod): 195, because the API server refuses such calls: pods ")
            assert "exceeded quota: few" in event["message"]

            await cluster.apply(podcliqueset("small", clique("w", 2), namespace="another"))

            assert await seconds_until(cluster, lambda: is_available(cluster, "small")) < SOON
            assert len(held_back(cluster)) == 1


async def test_a_quota_that_is_raised_lets_everything_go_on() -> None:
    async with stage(nodes=100) as cluster:
        quota = Quota(cluster.api, ROOM)
        async with cluster.running() as ours:
            await cluster.apply(large())
            await middle_of_a_long_pause(cluster, ours)
            quota.pods = REPLICAS
            quota.count()

            assert await seconds_until(cluster, lambda: pods(cluster) == REPLICAS) < SOON
            assert len(held_back(cluster)) == 1


async def test_without_the_right_to_read_quotas_everything_goes_on_after_the_pause() -> None:
    async with stage(nodes=100) as cluster:
        quota, ours, asked = Quota(cluster.api, ROOM), cluster.start(), list[Call]()

        def refuses(call: Call) -> Forbidden | None:
            if call[1] != kinds.RESOURCE_QUOTA:
                return None
            asked.append(call)
            return Forbidden("resourcequotas is forbidden")

        ours.refuses = refuses
        async with cluster.running(ours):
            await cluster.apply(large())
            await middle_of_a_long_pause(cluster, ours)
            quota.pods = REPLICAS

            assert await seconds_until(cluster, lambda: pods(cluster) == REPLICAS) < LONGEST_PAUSE + SOON
            assert len(asked) == 1


async def test_a_pod_that_is_gone_lets_those_go_on_that_have_room_now() -> None:
    async with stage() as cluster:
        Quota(cluster.api, ROOM)
        async with cluster.running() as ours:
            await cluster.apply(podcliqueset("first", clique("w", 3)))
            await cluster.settle()
            await cluster.apply(large())
            await middle_of_a_long_pause(cluster, ours)
            assert pods(cluster) == ROOM - 3
            await cluster.delete(kinds.PODCLIQUESET, "first")
            await cluster.until(lambda: pods(cluster, "first") == 0)

            assert await seconds_until(cluster, lambda: pods(cluster) == ROOM) < SOON


async def test_an_edit_ends_the_pause() -> None:
    async with stage(nodes=100) as cluster:
        refuse(cluster.api, pods_of_image("example/worker:1"))
        async with cluster.running() as ours:
            await cluster.apply(large())
            await middle_of_a_long_pause(cluster, ours)
            assert (pods(cluster), len(held_back(cluster))) == (0, 1)
            await cluster.apply(large(pod_spec={"containers": [{"name": "main", "image": "example/worker:2"}]}))

            assert await seconds_until(cluster, lambda: pods(cluster) == REPLICAS) < SOON


async def test_a_clique_that_is_refused_does_not_hold_back_another_one() -> None:
    async with stage(nodes=100) as cluster:
        refuse(cluster.api, pods_of_image("example/worker:1"))
        accepted = clique("fine", 1, pod_spec={"containers": [{"name": "main", "image": "example/worker:2"}]})
        async with cluster.running():
            await cluster.apply(podcliqueset("large", clique("w", 1), accepted, replicas=REPLICAS))

            assert await seconds_until(cluster, lambda: pods(cluster) == REPLICAS) < 2 * SOON


async def test_a_single_refused_call_is_sent_again_soon() -> None:
    until = 6.0
    async with stage() as cluster:
        ours = cluster.start()

        def refuses(call: Call) -> Forbidden | None:
            if call[:2] == ("create", kinds.POD) and cluster.clock.monotonic() - began < until:
                return Forbidden("admission webhook denied the request", by=RefusedBy.ADMISSION)
            return None

        ours.refuses = refuses
        async with cluster.running(ours):
            began = cluster.clock.monotonic()
            await cluster.apply(podcliqueset("large", clique("w", 1)))

            assert await seconds_until(cluster, lambda: pods(cluster) == 1) < 2 * until
