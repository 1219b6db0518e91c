"""The recorder: an event is written once and counted when it repeats, whatever it is about."""

from collections.abc import Sequence
from typing import Any

import anyio
import pytest

from engine.event import Event
from providers.recorder import Recorder
from providers.sandbox.api.verbs import Api
from providers.sandbox.clients.inprocess import InProcessClient
from providers.sandbox.clock import VirtualClock
from resources.base import kinds

pytestmark = pytest.mark.anyio


class Bench:
    """A recorder on an API, with a clock that is turned by hand."""

    def __init__(self) -> None:
        self.clock = VirtualClock()
        self.client = InProcessClient(Api(self.clock, seed=1))
        self.recorder = Recorder(self.client, self.clock)

    async def written(self) -> Sequence[dict[str, Any]]:
        """The events that are there."""
        return (await self.client.list(kinds.EVENT, "default")).items


def event(message: str = "made", name: str = "demo") -> Event:
    """Something to tell about a clique."""
    return Event(kinds.PODCLIQUE.id("default", name), "uid-1", "Made", message)


async def test_a_repetition_is_counted_on_the_first() -> None:
    bench = Bench()
    for _ in range(3):
        await bench.recorder.record(event())
        await bench.clock.advance(10)

    (written,) = await bench.written()
    assert written["count"] == 3
    assert written["lastTimestamp"] > written["firstTimestamp"]
    assert written["involvedObject"] == {
        "apiVersion": "grove.io/v1alpha1",
        "kind": "PodClique",
        "namespace": "default",
        "name": "demo",
        "uid": "uid-1",
    }
    assert (written["type"], written["source"]) == ("Normal", {"component": "podclique-controller"})


async def test_one_that_has_expired_meanwhile_is_written_anew() -> None:
    bench = Bench()
    await bench.recorder.record(event())
    (written,) = await bench.written()
    await bench.client.delete(kinds.EVENT, "default", written["metadata"]["name"])
    await bench.recorder.record(event())

    (written,) = await bench.written()
    assert written["count"] == 1


async def test_events_of_one_moment_do_not_take_each_others_names() -> None:
    bench = Bench()
    async with anyio.create_task_group() as tellers:
        for number in range(8):
            tellers.start_soon(bench.recorder.record, event(f"made {number}"))

    assert len(await bench.written()) == 8


@pytest.mark.parametrize("name", ["x" * 253, "x" * 220 + "." + "y" * 32, ("x" * 60 + "-.")[:61] + "y." + "z" * 190])
async def test_an_object_with_the_longest_of_names_can_be_told_about(name: str) -> None:
    bench = Bench()
    await bench.recorder.record(event(name=name))

    (written,) = await bench.written()
    assert len(written["metadata"]["name"]) <= 253
    assert written["involvedObject"]["name"] == name
