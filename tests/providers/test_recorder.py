"""Recorder: an event is created once and counted when it repeats."""

from collections.abc import Sequence
from typing import Any

import anyio
import pytest
from msgspec.structs import replace

from engine.errors import ServerFault
from engine.event import Event
from grove_sandbox.api.verbs import Api
from grove_sandbox.clients.inprocess import InProcessClient
from grove_sandbox.clock import VirtualClock
from providers.recorder import Recorder
from resources.base import kinds

pytestmark = pytest.mark.anyio


class Bench:
    """A recorder on an API server in memory, with a virtual clock."""

    def __init__(self) -> None:
        self.clock = VirtualClock()
        self.client = InProcessClient(Api(self.clock, seed=1))
        self.recorder = Recorder(self.client, self.clock)

    async def events(self) -> Sequence[dict[str, Any]]:
        """The Event objects."""
        return (await self.client.list(kinds.EVENT, "default")).items


def event(message: str = "created", name: str = "demo") -> Event:
    """An event about a clique."""
    return Event(kinds.PODCLIQUE.id("default", name), "uid-1", "Created", message)


async def test_a_repetition_increases_the_count_of_the_first_event() -> None:
    bench = Bench()
    for _ in range(3):
        await bench.recorder.record(event())
        await bench.clock.advance(10)

    (stored,) = await bench.events()
    assert stored["count"] == 3
    assert stored["lastTimestamp"] > stored["firstTimestamp"]
    assert stored["involvedObject"] == {
        "apiVersion": "grove.io/v1alpha1",
        "kind": "PodClique",
        "namespace": "default",
        "name": "demo",
        "uid": "uid-1",
    }
    assert (stored["type"], stored["source"]) == ("Normal", {"component": "podclique-controller"})


async def test_an_event_that_has_expired_is_created_again() -> None:
    bench = Bench()
    await bench.recorder.record(event())
    (stored,) = await bench.events()
    await bench.client.delete(kinds.EVENT, "default", stored["metadata"]["name"])
    await bench.recorder.record(event())

    (stored,) = await bench.events()
    assert stored["count"] == 1


async def test_a_new_process_counts_the_event_of_the_one_before_without_reading_events() -> None:
    bench = Bench()
    await bench.recorder.record(event())
    await bench.clock.advance(60)
    bench.client.get = refuse  # type: ignore[method-assign]
    await Recorder(bench.client, bench.clock).record(event())

    (stored,) = await bench.events()
    assert stored["count"] == 2
    assert stored["lastTimestamp"] > stored["firstTimestamp"]


async def test_a_count_that_could_not_be_written_leaves_one_event() -> None:
    bench = Bench()
    await bench.recorder.record(event())
    patch, bench.client.patch = bench.client.patch, refuse  # type: ignore[method-assign]
    with pytest.raises(ServerFault):
        await bench.recorder.record(event())
    bench.client.patch = patch  # type: ignore[method-assign]
    await bench.recorder.record(event())

    (stored,) = await bench.events()
    assert stored["count"] == 2


async def refuse(*args: object, **options: object) -> dict[str, Any]:
    """A server that fails."""
    raise ServerFault("etcdserver: request timed out")


async def test_a_combined_event_has_the_count_and_the_message_of_its_latest_events() -> None:
    bench = Bench()
    for message, count in (("(combined from similar events): a", 90), ("(combined from similar events): b", 7)):
        await bench.recorder.record(replace(event(message), count=count, combined=True))

    (stored,) = await bench.events()
    assert (stored["count"], stored["message"]) == (97, "(combined from similar events): b")


@pytest.mark.parametrize("count", [None, 0, -5])
async def test_an_event_of_our_name_with_a_meaningless_count_is_counted_from_one(count: int | None) -> None:
    bench = Bench()
    await bench.recorder.record(event())
    (stored,) = await bench.events()
    await bench.client.patch(kinds.EVENT, "default", stored["metadata"]["name"], {"count": count})
    await Recorder(bench.client, bench.clock).record(event())

    (stored,) = await bench.events()
    assert stored["count"] == 2


async def test_events_of_the_same_time_have_different_names() -> None:
    bench = Bench()
    async with anyio.create_task_group() as tasks:
        for number in range(8):
            tasks.start_soon(bench.recorder.record, event(f"created {number}"))

    assert len(await bench.events()) == 8


@pytest.mark.parametrize("name", ["x" * 253, "x" * 220 + "." + "y" * 32, ("x" * 60 + "-.")[:61] + "y." + "z" * 190])
async def test_an_event_about_an_object_with_the_longest_name_is_created(name: str) -> None:
    bench = Bench()
    await bench.recorder.record(event(name=name))

    (stored,) = await bench.events()
    assert len(stored["metadata"]["name"]) <= 253
    assert stored["involvedObject"]["name"] == name
