"""The planning of a large root in a thread is interrupted, and leaves nothing behind but what is remembered."""

import gc
import weakref
from functools import partial

import anyio
import anyio.to_thread
import pytest

from engine.memo import Preempted, Steps
from engine.runtime.passes import ATTEMPT, begun, interrupted_by

pytestmark = pytest.mark.anyio


class Manifests:
    """What a plan makes and does not remember."""


async def test_what_an_interrupted_plan_was_about_to_make_is_let_go_at_once() -> None:
    steps, made = Steps(), list[weakref.ref[Manifests]]()
    steps.is_preempted = True

    def compute() -> Manifests:
        manifests = Manifests()
        made.append(weakref.ref(manifests))
        for _ in range(2 * ATTEMPT):
            steps.take()
        return manifests

    gc.disable()
    try:
        for _ in range(3):
            with pytest.raises(Preempted):
                await interrupted_by(anyio.sleep_forever, steps, partial(anyio.to_thread.run_sync, partial(begun, steps, compute)))
            steps.is_preempted = True
        await anyio.to_thread.run_sync(lambda: None)  # The thread keeps the last thing that it has done.
        alive = [each() for each in made if each() is not None]
    finally:
        gc.enable()

    assert len(made) == 3
    assert alive == []
    assert steps.taken == 3 * ATTEMPT


async def test_what_is_not_interrupted_has_its_result() -> None:
    steps = Steps()

    assert await interrupted_by(anyio.sleep_forever, steps, partial(anyio.to_thread.run_sync, partial(begun, steps, lambda: 1))) == 1
    assert not steps.is_preempted
