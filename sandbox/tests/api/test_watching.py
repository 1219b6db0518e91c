"""Watches: what comes, in which order, and how they end."""

import anyio
import pytest

from grove_sandbox.api.request import Selection, WatchEvent
from grove_sandbox.api.watching import Watch
from sandbox.tests.in_memory import CONFIG, CRD, TOY, about, config, fresh, toy, toys

pytestmark = pytest.mark.anyio


def received(events: list[WatchEvent]) -> list[tuple[str, str]]:
    """Types and names."""
    return [(event.type, event.body["metadata"].get("name", "")) for event in events]


async def test_a_watcher_that_waits_is_woken() -> None:
    api, seen = fresh(), list[WatchEvent]()

    async def first() -> None:
        async with api.watch(about(api, CONFIG), Selection(revision=api.revision)) as watch:
            seen.append(await anext(watch))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(first)
        await anyio.lowlevel.checkpoint()
        api.create(about(api, CONFIG), config("a"))

    assert received(seen) == [("ADDED", "a")]


async def test_every_watcher_sees_every_event_once() -> None:
    api = fresh()
    watches = [api.watch(about(api, CONFIG), Selection(revision=api.revision)) for _ in range(3)]

    for name in ("a", "b"):
        api.create(about(api, CONFIG), config(name))

    assert [received(watch.pending()) for watch in watches] == [[("ADDED", "a"), ("ADDED", "b")]] * 3
    assert [watch.pending() for watch in watches] == [[], [], []]


async def test_a_watcher_of_one_namespace_sees_no_other() -> None:
    api = fresh()
    watch = api.watch(about(api, CONFIG, namespace="default"), Selection(revision=api.revision))

    api.create(about(api, CONFIG, namespace="kube-system"), config("theirs"))
    api.create(about(api, CONFIG, namespace="default"), config("ours"))

    assert received(watch.pending()) == [("ADDED", "ours")]


async def test_a_watcher_that_falls_behind_the_memory_is_told_so() -> None:
    api = fresh(history=2)
    watch = api.watch(about(api, CONFIG), Selection(revision=api.revision))

    for number in range(9):
        api.create(about(api, CONFIG), config(f"c{number}"))

    assert [(event.type, event.body["code"]) for event in watch.pending()] == [("ERROR", 410)]
    with pytest.raises(StopAsyncIteration):
        await anext(watch)


async def test_a_watch_ends_at_its_time_with_a_bookmark_if_it_may() -> None:
    api = fresh()
    watch = api.watch(about(api, CONFIG), Selection(revision=api.revision, timeout=0.01, bookmarks=True))

    events = [event async for event in watch]

    assert [(event.type, event.body["metadata"]["resourceVersion"]) for event in events] == [("BOOKMARK", api.revision)]


async def test_a_watch_ends_when_its_kind_is_served_no_more() -> None:
    api = fresh()
    api.create(about(api, CRD), toys())
    api.create(about(api, TOY), toy("a"))
    watch: Watch = api.watch(about(api, TOY), Selection(revision="0"))

    api.delete(about(api, CRD, "toys.example.com"))

    assert received([event async for event in watch]) == [("ADDED", "a"), ("DELETED", "a")]
