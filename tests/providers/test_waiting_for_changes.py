"""Waits for changes since the last observation, one after the other."""

import anyio
import pytest

from resources.base.kinds import SERVICE
from tests.providers.test_watching import watched

pytestmark = pytest.mark.anyio


async def test_changes_that_one_wait_does_not_concern_are_kept_for_the_next_one_where_that_is_asked_for() -> None:
    async with watched() as cluster:
        await cluster.observe()
        await cluster.make(SERVICE, "a")
        await cluster.clock.advance(0)

        with anyio.move_on_after(0.0) as kept:
            await cluster.provider.changed(lambda change: False, keeping=True)
        await cluster.provider.changed(lambda change: change.id.name == "a")
        with anyio.move_on_after(0.0) as forgotten:
            await cluster.provider.changed(lambda change: False)
        with anyio.move_on_after(0.0) as waited:
            await cluster.provider.changed(lambda change: change.id.name == "a")

    assert kept.cancelled_caught and forgotten.cancelled_caught and waited.cancelled_caught
