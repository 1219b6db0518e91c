"""Lag: whatever we hear late, and of some kinds later than of others, nothing is made twice or taken too early, and all settles."""

from collections import Counter
from contextlib import suppress
from typing import Any

import pytest

from engine.ids import Kind
from resources.base import kinds
from tests.builders import clique, group, podcliqueset
from tests.mnnvl.sets import auto, gpu, named
from tests.stories.domains import assert_invariants
from tests.stories.fabric import DomainRecorder, left_of_domains, rack
from tests.stories.lag import LONGEST, lagging
from tests.stories.pods import images, is_leaving, is_ready
from tests.stories.process import Call, Killed, Process
from tests.stories.stage import Stage, stage
from tests.stories.test_gang_termination import DELAY, MINUTES, demo, fail, replaced, uids
from tests.stories.test_update_under_fire import Fire, grouped, standalone
from tests.stories.umpire import Umpire

pytestmark = pytest.mark.anyio

WORKLOAD = podcliqueset(
    "llm", clique("router", 2), clique("prefill", 1), clique("decode", 2), groups=(group("pool", "prefill", "decode", replicas=2),)
)

SCALES: tuple[tuple[Kind, str, int], ...] = (
    (kinds.PODCLIQUESET, "llm", 2),
    (kinds.SCALING_GROUP, "llm-0-pool", 3),
    (kinds.PODCLIQUE, "llm-0-router", 4),
    (kinds.SCALING_GROUP, "llm-0-pool", 1),
    (kinds.PODCLIQUE, "llm-0-router", 1),
    (kinds.PODCLIQUESET, "llm", 1),
)


async def settle(cluster: Stage, ours: Process) -> None:
    """Let time pass until nothing has been done for longer than anything is late."""
    before = -1
    while before != (before := ours.count):
        await cluster.clock.advance(4 * LONGEST)


async def brought_up() -> dict[str, Any]:
    """What the workload is where nothing is late."""
    async with stage() as cluster, cluster.running() as ours:
        await cluster.apply(WORKLOAD)
        await settle(cluster, ours)
        return await cluster.shape()


@pytest.mark.parametrize("seed", range(2))
async def test_numbers_are_followed_and_nothing_is_left_over(seed: int) -> None:
    async with stage() as cluster, cluster.running(lagging(cluster, seed)) as ours:
        await cluster.apply(WORKLOAD)
        for number, (kind, name, replicas) in enumerate(SCALES):
            await cluster.until(lambda kind=kind, name=name: name in cluster.there(kind))  # type: ignore[misc]
            await cluster.clock.advance(number * seed)
            await cluster.scale(kind, name, replicas)
        await settle(cluster, ours)

        pods = Counter(name.rsplit("-", 1)[0] for name in cluster.there(kinds.POD))
        assert pods == {"llm-0-router": 1, "llm-0-pool-0-prefill": 1, "llm-0-pool-0-decode": 2}
        assert all(map(is_ready, cluster.there(kinds.POD).values()))

        await cluster.delete(kinds.PODCLIQUESET, "llm")
        await settle(cluster, ours)
        assert await cluster.names() == set()


@pytest.mark.parametrize(("workload", "minimum", "seed"), [(standalone, 1, 7), (standalone, 2, 6), (grouped, 1, 4), (grouped, 2, 3)])
async def test_an_update_takes_no_second_unit_though_it_hears_of_failures_late(workload: Any, minimum: int, seed: int) -> None:
    async with stage() as cluster, cluster.running(lagging(cluster, seed)) as ours:
        await cluster.apply(workload(1, minimum))
        await settle(cluster, ours)
        fire = Fire(cluster, seed)
        umpire = Umpire(cluster, ours, on_take=fire.strike)

        await cluster.apply(workload(2, minimum))
        for _ in range(1200):
            await cluster.clock.advance(1)
            fire.heal()
            if "updateEndedAt" in cluster.there(kinds.PODCLIQUESET)["web"]["status"].get("updateProgress", {}):
                break

        assert umpire.fouls == []
        assert len(umpire.takes) > 0
        await settle(cluster, ours)
        assert images(cluster.there(kinds.POD).values()) == {"example/worker:2"}
        status = cluster.there(kinds.PODCLIQUESET)["web"]["status"]
        assert (status["updatedReplicas"], status["availableReplicas"]) == (3, 3)


async def test_a_gang_is_recycled_once_and_no_other() -> None:
    async with stage() as cluster, cluster.running(lagging(cluster, 1)) as ours:
        await cluster.apply(demo(sets=2))
        await settle(cluster, ours)
        before = uids(cluster)

        fail(cluster, "llm-1-router")
        await cluster.clock.advance(DELAY - MINUTES)
        assert replaced(cluster, before) == set()

        made = ours.created.copy()
        await cluster.clock.advance(2 * MINUTES)
        await settle(cluster, ours)
        assert replaced(cluster, before) == {name for name in before if name.startswith("llm-1-")}
        assert {name for name, count in (ours.created - made).items() if count > 1} == set()
        assert all(map(is_ready, cluster.there(kinds.POD).values()))


@pytest.mark.parametrize("seed", range(2))
async def test_domains_come_before_their_pods_and_go_after_them(seed: int) -> None:
    async with rack() as cluster, cluster.running(lagging(cluster, seed)) as ours:
        recorder = DomainRecorder(cluster, ours)
        for manifest in (auto(2, gpu()), named("rack", "one"), named("rack", "other")):
            await cluster.apply(manifest)
        await settle(cluster, ours)
        assert all(map(is_ready, cluster.there(kinds.POD).values()))
        joining = recorder.done.count("patch rack")

        await cluster.scale(kinds.PODCLIQUESET, "demo", 1)
        await cluster.delete(kinds.PODCLIQUESET, "one")
        await cluster.until(lambda: "one" not in cluster.there(kinds.PODCLIQUESET))
        await cluster.delete(kinds.PODCLIQUESET, "other")
        await cluster.clock.advance(3 * seed)
        await cluster.apply(named("rack", "one"))
        await settle(cluster, ours)
        await assert_invariants(cluster.kubectl)
        assert all(map(is_ready, cluster.there(kinds.POD).values()))

        for name in ("demo", "one"):
            await cluster.delete(kinds.PODCLIQUESET, name)
        await settle(cluster, ours)
        assert (await left_of_domains(cluster), recorder.fouls) == ([], [])
        # Who is told that a domain has changed looks at it, instead of trying again until the news comes.
        assert joining <= 3


@pytest.mark.parametrize("seed", range(3))
async def test_a_process_killed_anywhere_is_succeeded_by_one_that_makes_nothing_twice(seed: int) -> None:
    wanted = await brought_up()
    async with stage() as cluster:
        await cluster.apply(WORKLOAD)
        made = Counter[str]()
        for death in (seed * 7 + 1, seed * 3 + 2):
            ours = lagging(cluster, seed)
            ours.dies_after = death
            with suppress(Killed, ExceptionGroup):
                async with cluster.running(ours):
                    await cluster.clock.advance(5 * MINUTES)
            assert ours.dead
            made += ours.created
        async with cluster.running(lagging(cluster, seed + 10)) as ours:
            await settle(cluster, ours)
            assert await cluster.shape() == wanted
        assert set((made + ours.created).values()) == {1}


async def test_who_recovers_before_we_hear_of_it_is_not_taken_as_broken() -> None:
    async with stage() as cluster, cluster.running() as ours:
        await cluster.apply(standalone(1, 1))
        await settle(cluster, ours)
        broken = {name: pod["metadata"]["uid"] for name, pod in cluster.there(kinds.POD).items() if name.startswith("web-0-a-")}
        survived: list[str] = []
        for name in broken:
            cluster.fail(name, "unready")
        await cluster.clock.advance(5)

        def recover(call: Call) -> None:
            verb, kind, name = call
            if (verb, kind) == ("delete", kinds.POD) and ours.uid == broken.get(name) and name not in survived:
                cluster.fail(name, None)
                survived.append(name)

        ours.refuses = recover
        await cluster.apply(standalone(2, 1))
        await cluster.until(lambda: len(survived) == len(broken))
        there = cluster.there(kinds.POD)
        assert {name: there[name]["metadata"]["uid"] for name in broken if not is_leaving(there[name])} == broken
        await settle(cluster, ours)
        assert images(cluster.there(kinds.POD).values()) == {"example/worker:2"}
