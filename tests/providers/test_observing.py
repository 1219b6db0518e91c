"""Observing a watched cluster costs a few turns of the event loop."""

import anyio
import anyio.lowlevel
import pytest

from engine.runtime.provider import Scope
from providers.watching import DELIVERY
from resources.base import kinds
from tests.providers.test_watching import Cluster

pytestmark = pytest.mark.anyio


async def test_observing_takes_no_longer_the_more_kinds_are_watched() -> None:
    turns = 0

    async def count() -> None:
        nonlocal turns
        while True:
            await anyio.lowlevel.checkpoint()
            turns += 1

    cluster, scope = Cluster(), Scope((), kinds.KINDS, "a=b")
    async with cluster.provider.watching(scope), anyio.create_task_group() as tasks:
        await cluster.provider.observe(scope)
        tasks.start_soon(count)
        await cluster.provider.observe(scope)
        tasks.cancel_scope.cancel()

    assert turns <= DELIVERY < len(kinds.KINDS)
