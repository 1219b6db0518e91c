"""Gang termination: what has been without its minimum for too long is recycled as a whole; not sooner, not more than that, not twice."""

from datetime import timedelta
from typing import Any

import pytest

from engine.conditions import find
from engine.errors import Forbidden
from engine.runtime.sync_report import Ending
from resources.base import kinds
from resources.lifecycle.availability import BREACHED
from resources.reports.summary import summary
from tests.builders import clique, group, podcliqueset
from tests.stories.deaths import deaths
from tests.stories.pods import clique_of, is_ready
from tests.stories.stage import Stage, forked, stage

pytestmark = pytest.mark.anyio

MINUTES = 60.0
DELAY = 10 * MINUTES
OUTLIVES = (kinds.SERVICE, kinds.PODGANG, kinds.SCALING_GROUP, kinds.PODCLIQUESET)


def demo(sets: int = 1, replicas: int = 3, minimum: int = 2) -> dict[str, Any]:
    """A clique that stands alone, and a group that can spare one replica."""
    groups = (group("pool", "leader", "worker", replicas=replicas, min_available=minimum),)
    cliques = (clique("router", 2), clique("leader"), clique("worker", 2))
    return podcliqueset("llm", *cliques, groups=groups, replicas=sets, terminationDelay="10m")


def uids(cluster: Stage, *of: Any) -> dict[str, str]:
    """The incarnations of all objects of these kinds."""
    return {name: body["metadata"]["uid"] for kind in of or (kinds.PODCLIQUE,) for name, body in cluster.there(kind).items()}


def fail(cluster: Stage, *cliques: str, how: str | None = "unready") -> None:
    """All pods of these cliques stop serving, or serve again."""
    for name, pod in cluster.there(kinds.POD).items():
        if clique_of(pod) in cliques:
            cluster.fail(name, how)


def replaced(cluster: Stage, before: dict[str, str]) -> set[str]:
    """The cliques that are not those of before."""
    return {name for name, uid in uids(cluster).items() if before.get(name) != uid}


async def test_a_replica_is_recycled_whole_when_its_time_has_come_and_not_a_minute_sooner() -> None:
    async with stage() as cluster, cluster.running() as ours:
        await cluster.apply(demo(sets=2))
        await cluster.settle()
        before, outlives = uids(cluster), uids(cluster, *OUTLIVES)

        fail(cluster, "llm-1-router")
        await cluster.clock.advance(DELAY - MINUTES)
        assert replaced(cluster, before) == set()

        await cluster.clock.advance(2 * MINUTES)
        await cluster.settle()
        assert replaced(cluster, before) == {name for name in before if name.startswith("llm-1-")}
        assert uids(cluster).keys() == before.keys()
        assert uids(cluster, *OUTLIVES) == outlives
        assert all(map(is_ready, cluster.there(kinds.POD).values()))
        assert not ours.refused


async def test_a_replica_of_a_group_that_can_be_spared_goes_alone() -> None:
    async with stage() as cluster, cluster.running():
        await cluster.apply(demo())
        await cluster.settle()
        before = uids(cluster)

        fail(cluster, "llm-0-pool-1-worker")
        await cluster.clock.advance(DELAY + MINUTES)
        await cluster.settle()

        assert replaced(cluster, before) == {"llm-0-pool-1-leader", "llm-0-pool-1-worker"}


async def test_a_group_below_its_minimum_takes_the_whole_replica_along() -> None:
    async with stage() as cluster, cluster.running():
        await cluster.apply(demo())
        await cluster.settle()
        before = uids(cluster)

        fail(cluster, "llm-0-pool-1-worker", "llm-0-pool-2-leader")
        await cluster.clock.advance(DELAY + MINUTES)
        await cluster.settle()

        assert replaced(cluster, before) == set(before)


async def test_a_group_below_its_minimum_takes_the_whole_replica_along_although_one_of_its_replicas_is_pending() -> None:
    async with stage(nodes=1) as cluster, cluster.running():
        await cluster.apply(demo(replicas=2, minimum=1))
        await cluster.settle()
        await cluster.kubectl.patch(kinds.NODE, "", "node-0000", {"spec": {"unschedulable": True}})
        before = uids(cluster)
        fail(cluster, "llm-0-pool-0-worker")
        await cluster.clock.advance(DELAY + MINUTES)
        assert replaced(cluster, before) == {"llm-0-pool-0-leader", "llm-0-pool-0-worker"}

        before = uids(cluster)
        fail(cluster, "llm-0-pool-1-worker")
        await cluster.clock.advance(DELAY - MINUTES)
        assert replaced(cluster, before) == set()

        await cluster.clock.advance(2 * MINUTES)
        assert replaced(cluster, before) == set(before)


async def test_who_recovers_in_time_is_spared_and_a_second_breach_has_the_whole_delay() -> None:
    async with stage() as cluster, cluster.running():
        await cluster.apply(demo())
        await cluster.settle()
        before = uids(cluster)

        for _ in range(3):
            fail(cluster, "llm-0-router")
            await cluster.clock.advance(DELAY - 2 * MINUTES)
            fail(cluster, "llm-0-router", how=None)
            await cluster.clock.advance(MINUTES)

        assert replaced(cluster, before) == set()


async def test_a_gang_that_was_never_scheduled_waits_for_ever() -> None:
    async with stage(nodes=0) as cluster, cluster.running():
        await cluster.apply(demo())
        await cluster.clock.advance(5)
        before = uids(cluster)

        await cluster.clock.advance(3 * DELAY)

        condition = find(cluster.there(kinds.PODCLIQUE)["llm-0-router"]["status"]["conditions"], BREACHED) or {}
        assert (condition["status"], condition["reason"]) == ("True", "ScheduledReplicasBelowMinAvailable")
        assert uids(cluster) == before != {}


async def test_what_is_recycled_and_finds_no_room_is_not_recycled_again() -> None:
    async with stage(nodes=1) as cluster, cluster.running():
        await cluster.apply(demo())
        await cluster.settle()
        before = uids(cluster)
        fail(cluster, "llm-0-router")
        await cluster.kubectl.patch(kinds.NODE, "", "node-0000", {"spec": {"unschedulable": True}})

        await cluster.clock.advance(DELAY + MINUTES)
        once = uids(cluster)
        assert once.keys() == before.keys()
        assert replaced(cluster, before) == set(before)

        await cluster.clock.advance(2 * DELAY)
        assert uids(cluster) == once


async def test_it_is_told_since_when_and_until_when_and_afterwards_that_it_has_happened() -> None:
    async with stage() as cluster, cluster.running():
        await cluster.apply(demo())
        await cluster.settle()
        fail(cluster, "llm-0-router")
        await cluster.clock.advance(MINUTES)

        seen = await cluster.look()
        (until,) = {wait.until for wait in summary(seen.world.roots[0], seen.planned.plans[0]).waits if wait.until}
        onset = find(cluster.there(kinds.PODCLIQUE)["llm-0-router"]["status"]["conditions"], BREACHED) or {}
        assert f"{until - timedelta(seconds=DELAY):%Y-%m-%dT%H:%M:%SZ}" == onset["lastTransitionTime"]
        assert seen.planned.plans[0].wake_at == until
        assert any(f"below minAvailable since {onset['lastTransitionTime']}" in waiting.why for waiting in seen.planned.plans[0].pending)

        await cluster.clock.advance(DELAY)
        await cluster.settle()
        events = {event["reason"]: event["message"] for event in (await cluster.kubectl.list(kinds.EVENT, "default")).items}
        assert events["PodCliqueSetReplicaDeleteSuccessful"] == "PodCliqueSet replica 0 deleted"


FRONT, LEADER = "llm-0-front", "llm-0-pool-1-leader"
"""The witnesses: by name each comes before those that go with it, so that it is no chance when it goes last."""
MEMBERS = {FRONT: ("worker",), LEADER: ("leader", "worker")}


async def breached(cluster: Stage, victim: str) -> None:
    """A small set whose time has come while nobody of us was there to see it."""
    members = MEMBERS[victim]
    groups = (group("pool", *members, replicas=2),)
    await cluster.apply(podcliqueset("llm", clique("front"), *map(clique, members), groups=groups, terminationDelay="1m"))
    await cluster.sync()
    fail(cluster, victim)
    async with cluster.running():
        await cluster.clock.advance(MINUTES / 2)
    await cluster.clock.advance(MINUTES)


@pytest.mark.parametrize("victim", [FRONT, LEADER], ids=["set scope", "group scope"])
async def test_the_witness_stays_as_long_as_one_that_should_go_with_it_cannot_go(victim: str) -> None:
    async with stage(nodes=2) as cluster:
        await breached(cluster, victim)
        before, ours = uids(cluster), cluster.start()
        ours.refuses = lambda call: Forbidden("not yet") if call == ("delete", kinds.PODCLIQUE, "llm-0-pool-1-worker") else None

        assert (await cluster.sync(ours)).ending is Ending.FAILED
        assert uids(cluster)[victim] == before[victim]
        assert "deletionTimestamp" not in cluster.there(kinds.PODCLIQUE)[victim]["metadata"]

        await cluster.sync()
        assert {victim, "llm-0-pool-1-worker"} <= replaced(cluster, before)


@pytest.mark.parametrize(("victim", "doomed"), [(FRONT, 3), (LEADER, 2)], ids=["set scope", "group scope"])
async def test_killed_at_any_write_of_a_recycling_the_next_process_completes_it_and_makes_nothing_twice(victim: str, doomed: int) -> None:
    async with stage(nodes=2) as beginning:
        await breached(beginning, victim)
    async with forked(beginning) as cluster:
        before, undisturbed = uids(cluster), cluster.start()
        all_deaths = await deaths(cluster, undisturbed)
        assert len(replaced(cluster, before)) == doomed

    for death in all_deaths:
        async with forked(death.left) as cluster:
            next_one = cluster.start()
            assert (await cluster.sync(next_one)).ending is Ending.DONE

            made = death.created + next_one.created
            assert len(replaced(cluster, before)) == doomed
            assert uids(cluster).keys() == before.keys()
            assert sum(count for name, count in made.items() if name.startswith("PodClique ")) == doomed
            assert all(map(is_ready, cluster.there(kinds.POD).values()))
