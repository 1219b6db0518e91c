"""Churn on the sandbox's clock leaves nothing behind: no memory, no task, no thread, and no write at rest.

`make soak` does it for an hour of virtual time, `make test` for some minutes.
"""

import asyncio
import gc
import os
import sys
import threading
from collections import OrderedDict, deque
from dataclasses import dataclass
from types import BuiltinFunctionType, CodeType, FrameType, FunctionType, MethodType, ModuleType
from typing import Any

import pytest

from engine.runtime.event_correlation import WINDOW
from engine.runtime.memory import Memory
from providers.observed_changes import ChangedLives
from providers.watching import WatchingCluster
from resources.base import kinds
from tests.reliability.churn import BASE, PODS_OF_A_SET, Churn
from tests.stories.pods import is_ready
from tests.stories.stage import INTERVAL, Stage, stage

pytestmark = pytest.mark.anyio

MINUTES = float(os.environ.get("SOAK_MINUTES", "8"))
"""Virtual minutes of churn."""

PERIODS, PAUSE = 4, 5.0
"""Into how many parts rests divide the churn; seconds between two disturbances."""

MARGIN = 1.05
"""How many times as many objects as after the first two periods may be remembered after the last one."""

CODE = (ModuleType, type, FunctionType, BuiltinFunctionType, MethodType, CodeType, FrameType)
OTHERS = ("grove_sandbox", "tests", "asyncio", "anyio", "_asyncio", "_io", "_contextvars", "structlog")
"""Modules whose objects are not memory of the engine: in this test the cluster is in the same process."""


@dataclass(frozen=True)
class Footprint:
    """What `engine run` uses at rest."""

    objects: int
    """How many Python objects the memory of its loop and its caches consist of, without those that `limited` counts."""
    limited: int
    """How many entries the caches have that forget the oldest beyond a limit: of Events, deleted objects, dictionaries, and changes."""
    tasks: int
    threads: int


def footprint() -> Footprint:
    """What is used now."""
    gc.collect()
    seen: dict[int, Any] = {id(thing): thing for thing in gc.get_objects() if isinstance(thing, Memory | WatchingCluster)}
    pending, limited = list(seen.values()), 0
    while pending:
        thing = pending.pop()
        if isinstance(thing, OrderedDict | deque | ChangedLives):
            limited += len(thing)
            continue
        for part in gc.get_referents(thing):
            if id(part) not in seen and not isinstance(part, CODE) and not type(part).__module__.startswith(OTHERS):
                seen[id(part)] = part
                pending.append(part)
    return Footprint(len(seen), limited, _own_tasks(), threading.active_count())


def _own_tasks() -> int:
    """How many tasks there are, without those of the sandbox: its actors keep as many workers as they ever needed at a time."""
    return sum(not task.get_name().startswith("grove_sandbox.") for task in asyncio.all_tasks())


async def at_rest(cluster: Stage, churn: Churn) -> Footprint:
    """What is used once everything is as the churn leaves it."""
    await churn.rest()
    await cluster.settle()
    await cluster.clock.advance(WINDOW + 2 * INTERVAL)  # Until what is remembered of the last changes and their Events is forgotten.
    assert set(cluster.there(kinds.PODCLIQUESET)) == set(BASE)
    pods = cluster.there(kinds.POD).values()
    assert len(pods) == PODS_OF_A_SET * len(BASE)
    assert all(map(is_ready, pods))
    return footprint()


async def test_churn_leaves_nothing_behind() -> None:
    async with stage(nodes=10) as cluster:
        churn, used = Churn(cluster.kubectl, "default"), list[Footprint]()
        async with cluster.running() as ours:
            for _ in range(PERIODS):
                for _ in range(int(MINUTES * 60 / PAUSE / PERIODS)):
                    await churn.disturb()
                    await cluster.clock.advance(PAUSE)
                used.append(await at_rest(cluster, churn))
            written = ours.count
            await cluster.clock.advance(600)
            last = await cluster.look()

        sys.stdout.write(f"{dict(churn.done)}, {written} writes: {used}\n")
        assert ours.count == written
        assert [plan.operations for plan in last.planned.plans if plan.operations] == []
        assert {rest.tasks for rest in used} == {used[0].tasks}
        assert {rest.threads for rest in used} == {used[0].threads}
        assert used[-1].objects <= MARGIN * max(rest.objects for rest in used[:2])
