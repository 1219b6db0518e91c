"""Waiting for objects of an API server to be as a test expects, by a watch."""

from collections.abc import Callable, Mapping
from contextlib import aclosing
from typing import Any

import anyio

from engine.ids import Kind
from engine.runtime.provider import Client

PATIENCE = 60.0
"""Seconds of real time after which a wait fails."""

Objects = Mapping[str, dict[str, Any]]
"""Name -> object, for all objects of a kind in a namespace."""


async def until(client: Client, kind: Kind, namespace: str, true: Callable[[Objects], bool]) -> Objects:
    """Wait until that holds of the objects of a kind in a namespace (empty: in all), and return them. Raises `TimeoutError`."""
    listing = await client.list(kind, namespace)
    objects = {body["metadata"]["name"]: body for body in listing.items}
    with anyio.fail_after(PATIENCE):
        async with aclosing(client.watch(kind, namespace, since=listing.revision)) as events:
            while not true(objects):
                verb, body = await anext(events)
                if verb == "DELETED":
                    del objects[body["metadata"]["name"]]
                elif verb != "BOOKMARK":
                    objects[body["metadata"]["name"]] = body
    return objects
