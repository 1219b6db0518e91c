"""Crash anywhere: killed at any write of any sync, the next one ends where an undisturbed one would have, and makes nothing twice."""

from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from engine.runtime.sync_report import Ending
from resources.base import kinds
from tests.builders import clique, group, podcliqueset
from tests.stories.process import Killed
from tests.stories.stage import Stage, forked, stage

pytestmark = pytest.mark.anyio

Story = Callable[[Stage], Awaitable[None]]
"""What users do before the sync that is killed."""

WORKLOAD = podcliqueset(
    "llm", clique("router", 1), clique("prefill", 1), clique("decode", 2), groups=(group("pool", "prefill", "decode", replicas=2),)
)


async def ask(cluster: Stage) -> None:
    await cluster.apply(WORKLOAD)


async def ask_for_more(cluster: Stage) -> None:
    await settle(cluster)
    await cluster.scale(kinds.PODCLIQUESET, "llm", 2)


async def ask_for_less(cluster: Stage) -> None:
    await ask_for_more(cluster)
    await cluster.sync()
    await cluster.scale(kinds.PODCLIQUESET, "llm", 1)


async def ask_for_nothing(cluster: Stage) -> None:
    await settle(cluster)
    await cluster.delete(kinds.PODCLIQUESET, "llm")


async def settle(cluster: Stage) -> None:
    await ask(cluster)
    await cluster.sync()


async def undisturbed(beginning: Stage) -> tuple[dict[str, Any], int]:
    """Where a sync that nobody kills ends, and with how many writes."""
    async with forked(beginning) as cluster:
        assert (await cluster.sync()).ending is Ending.DONE
        writes = cluster.process.count
        await cluster.clock.advance(30)
        return await cluster.shape(), writes


async def disturbed(beginning: Stage, **death: int) -> tuple[dict[str, Any], Counter[str]]:
    """Where two syncs end of which the first is killed, and how often each thing was made by them."""
    async with forked(beginning) as cluster:
        first = cluster.start()
        first.dies_before, first.dies_after = death.get("before", 0), death.get("after", 0)
        with pytest.raises((Killed, ExceptionGroup)):
            await cluster.sync(first)
        assert first.dead
        assert (await cluster.sync()).ending is Ending.DONE
        second = cluster.process
        assert (await cluster.sync()).ending is Ending.DONE
        assert cluster.process.count == 0
        await cluster.clock.advance(30)
        return await cluster.shape(), first.created + second.created


@pytest.mark.parametrize("story", [ask, ask_for_more, ask_for_less, ask_for_nothing])
async def test_a_sync_killed_at_any_write_is_completed_by_the_next_one(story: Story) -> None:
    async with stage() as beginning:
        await story(beginning)
    wanted, writes = await undisturbed(beginning)

    # Before the first write, and after each: before a later one is after the one that precedes it.
    for death in ({"before": 1}, *({"after": number} for number in range(1, writes + 1))):
        ended, made = await disturbed(beginning, **death)

        assert ended == wanted
        assert set(made.values()) <= {1}
