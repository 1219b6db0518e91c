"""Crash anywhere with domains: killed at any write of bring-up, scale-in and teardown, the next process ends where none would have been."""

from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from engine.runtime.sync_report import Ending
from providers.fabrics.nvidia.names import COMPUTE_DOMAIN
from resources.base import kinds
from tests.mnnvl.sets import auto, gpu, named
from tests.stories.deaths import Death, deaths
from tests.stories.fabric import DomainRecorder, left_of_domains, rack
from tests.stories.stage import Stage, forked

pytestmark = pytest.mark.anyio

Story = Callable[[Stage], Awaitable[None]]


async def bring_up(cluster: Stage) -> None:
    await cluster.apply(auto(1, gpu()))
    await cluster.apply(named("rack", "other"))


async def scale_in(cluster: Stage) -> None:
    await cluster.apply(auto(2, gpu()))
    await cluster.sync()
    await cluster.scale(kinds.PODCLIQUESET, "demo", 1)


async def take_down(cluster: Stage) -> None:
    await bring_up(cluster)
    await cluster.sync()
    for name in ("demo", "other"):
        await cluster.delete(kinds.PODCLIQUESET, name)


async def ended(cluster: Stage) -> tuple[dict[str, Any], list[str]]:
    """What there is at the end, and what is left of domains, by kind: claims have names that nobody can know."""
    await cluster.clock.advance(60)
    shape = {name: shape for name, shape in (await cluster.shape()).items() if not name.startswith("ResourceClaim ")}
    return shape, sorted(one.partition(" ")[0] for one in await left_of_domains(cluster))


async def undisturbed(beginning: Stage) -> tuple[tuple[dict[str, Any], list[str]], list[Death], list[str]]:
    """Where a sync that nobody kills ends, what it would leave behind otherwise, and what it does wrong."""
    async with forked(beginning) as cluster:
        assert (await cluster.sync()).ending is Ending.DONE
        wanted = await ended(cluster)
    async with forked(beginning) as cluster:
        recorder = DomainRecorder(cluster, ours := cluster.start())
        return wanted, await deaths(cluster, ours), recorder.fouls


async def succeeded(death: Death) -> tuple[tuple[dict[str, Any], list[str]], Counter[str], list[str]]:
    """Where the next one ends, how often each thing was made by both, and what it did wrong."""
    async with forked(death.left) as cluster:
        recorder = DomainRecorder(cluster, second := cluster.start())
        assert (await cluster.sync(second)).ending is Ending.DONE
        return await ended(cluster), death.created + second.created, recorder.fouls


@pytest.mark.parametrize("story", [bring_up, scale_in, take_down])
async def test_a_sync_killed_at_any_write_is_completed_by_the_next_one(story: Story) -> None:
    async with rack() as beginning:
        await story(beginning)
    wanted, all_deaths, fouls = await undisturbed(beginning)
    assert fouls == []

    for death in all_deaths:
        found, made, fouls = await succeeded(death)

        assert (found, fouls) == (wanted, [])
        assert {count for name, count in made.items() if name.startswith(COMPUTE_DOMAIN.name)} <= {1}
