"""Publishing: Events that are published beside the passes."""

import anyio
import anyio.lowlevel
import pytest

from engine.runtime.execution import Publishing

pytestmark = pytest.mark.anyio


async def test_what_was_asked_for_is_published_before_the_end() -> None:
    published, asked = list[int](), [1, 2, 3]

    async def publish(flush: bool) -> None:
        taken = asked[:]
        asked.clear()
        for each in taken:
            await anyio.lowlevel.checkpoint()
            published.append(each)

    publishing = Publishing()
    async with anyio.create_task_group() as tasks:
        await publishing.finish()
        tasks.start_soon(publishing.run, publish)
        publishing.ask(flush=True)
        await anyio.lowlevel.checkpoint()
        asked.append(4)
        publishing.ask(flush=True)
        await publishing.finish()
        tasks.cancel_scope.cancel()

    assert published == [1, 2, 3, 4]


async def test_a_publication_that_fails_ends_too_and_is_raised_by_the_next() -> None:
    async def publish(flush: bool) -> None:
        raise ValueError("a defect")

    publishing = Publishing()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(publishing.run, publish)
        publishing.ask(flush=False)
        await publishing.finish()
        with pytest.raises(ValueError, match="a defect"):
            publishing.ask(flush=False)
        tasks.cancel_scope.cancel()
