"""Waiting for what becomes true in real time, by asking again and again or by a watch. A busy machine only makes it later."""

from collections.abc import Callable, Mapping
from contextlib import aclosing
from inspect import isawaitable
from time import monotonic, sleep
from typing import Any, Final

import anyio

from engine.ids import Kind
from engine.runtime.provider import Client

PATIENCE: Final = 180.0
"""Seconds after which a wait fails: many times what it takes on a machine that does nothing else."""

PAUSE: Final = 0.05
"""Seconds between two questions."""

Objects = Mapping[str, dict[str, Any]]
"""Name -> object, for all objects of a kind in a namespace."""


def until(holds: Callable[[], object], otherwise: Callable[[], object] = lambda: "it does not come to be") -> None:
    """Ask until it holds. Fails with what `otherwise` returns."""
    deadline = monotonic() + PATIENCE
    while not holds():
        assert monotonic() < deadline, otherwise()
        sleep(PAUSE)


async def eventually(answer: Callable[[], Any]) -> Any:
    """Ask until the answer, which may have to be awaited, is true, while other tasks run, and return it. Raises `TimeoutError`."""
    with anyio.fail_after(PATIENCE):
        while True:
            given = answer()
            if result := await given if isawaitable(given) else given:
                return result
            await anyio.sleep(PAUSE)


async def until_objects(client: Client, kind: Kind, namespace: str, true: Callable[[Objects], object]) -> Objects:
    """Wait until that holds of the objects of a kind in a namespace (empty: in all), and return them. Raises `TimeoutError`."""
    place = namespace if kind.namespaced else ""
    listing = await client.list(kind, place)
    objects = {body["metadata"]["name"]: body for body in listing.items}
    with anyio.move_on_after(PATIENCE):
        async with aclosing(client.watch(kind, place, since=listing.revision)) as events:
            while not true(objects):
                verb, body = await anext(events)
                if verb == "DELETED":
                    objects.pop(body["metadata"]["name"], None)
                elif verb != "BOOKMARK":
                    objects[body["metadata"]["name"]] = body
            return objects
    raise TimeoutError(f"the objects of kind {kind.name} in {namespace or 'the cluster'} do not become so: {list(objects.values())}")
