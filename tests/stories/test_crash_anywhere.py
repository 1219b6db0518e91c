"""Crash anywhere: killed at any write of any sync, the next one ends where an undisturbed one would have, and makes nothing twice."""

from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from engine.runtime.sync_report import Ending
from resources.base import kinds
from tests.builders import clique, group, podcliqueset
from tests.stories.deaths import Death, deaths
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


async def undisturbed(beginning: Stage) -> tuple[dict[str, Any], list[Death]]:
    """Where a sync that nobody kills ends, and what it would leave behind otherwise."""
    async with forked(beginning) as cluster:
        assert (await cluster.sync()).ending is Ending.DONE
        await cluster.clock.advance(30)
        shape = await cluster.shape()
    async with forked(beginning) as cluster:
        return shape, await deaths(cluster, cluster.start())


async def succeeded(death: Death) -> tuple[dict[str, Any], Counter[str]]:
    """Where the next sync ends, and how often each thing was made by both."""
    async with forked(death.left) as cluster:
        assert (await cluster.sync()).ending is Ending.DONE
        second = cluster.process
        assert (await cluster.sync()).ending is Ending.DONE
        assert cluster.process.count == 0
        await cluster.clock.advance(30)
        return await cluster.shape(), death.created + second.created


@pytest.mark.parametrize("story", [ask, ask_for_more, ask_for_less, ask_for_nothing])
async def test_a_sync_killed_at_any_write_is_completed_by_the_next_one(story: Story) -> None:
    async with stage() as beginning:
        await story(beginning)
    wanted, all_deaths = await undisturbed(beginning)

    for death in all_deaths:
        ended, made = await succeeded(death)

        assert ended == wanted
        assert set(made.values()) <= {1}
