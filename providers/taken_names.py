"""Taken names: which of many objects exist, found out with one call for each kind and namespace."""

from collections.abc import Iterable, Sequence
from typing import Protocol, runtime_checkable

import anyio

from engine.errors import ClusterError, NotFound, Unauthorized
from engine.ids import Kind, ResourceId
from engine.runtime.provider import TRANSIENT, Client, TakenNames

FEW = 3
"""At most so many objects of a kind in a namespace are read one by one; of more, all names in the namespace are listed."""
CONCURRENCY = 8
"""How many calls are made at a time."""


@runtime_checkable
class NamingClient(Protocol):
    """A client that can list names without the objects."""

    async def names(self, kind: Kind, namespace: str) -> frozenset[str]:
        """The names of all objects of the kind in a namespace."""
        ...


async def taken_names(client: Client, objects: Iterable[tuple[Kind, ResourceId]]) -> TakenNames:
    """Which of the objects exist. Raises `Unauthorized` and transient errors; the answer names what may not be read."""
    groups: dict[tuple[Kind, str], list[ResourceId]] = {}
    for kind, id in objects:
        groups.setdefault((kind, id.namespace), []).append(id)
    limit, taken, unread, errors = anyio.CapacityLimiter(CONCURRENCY), set[ResourceId](), dict[str, ClusterError](), list[ClusterError]()

    async def find(kind: Kind, namespace: str, ids: Sequence[ResourceId]) -> None:
        try:
            async with limit:
                taken.update(await _existing(client, kind, namespace, ids))
        except NotFound:
            return  # The server does not serve the kind.
        except (*TRANSIENT, Unauthorized) as error:
            errors.append(error)
        except ClusterError as error:
            unread[kind.name] = error

    async with anyio.create_task_group() as tasks:
        for (kind, namespace), ids in groups.items():
            tasks.start_soon(find, kind, namespace, ids)
    for error in errors:
        raise error
    return TakenNames(frozenset(taken), unread)


async def _existing(client: Client, kind: Kind, namespace: str, ids: Sequence[ResourceId]) -> Sequence[ResourceId]:
    """Those of the objects, of one kind and namespace, that exist. Raises `NotFound` if the server does not serve the kind."""
    if len(ids) <= FEW:
        return [id for id in ids if await _exists(client, kind, id)]
    names = await _names(client, kind, namespace)
    return [id for id in ids if id.name in names]


async def _exists(client: Client, kind: Kind, id: ResourceId) -> bool:
    try:
        await client.get(kind, id.namespace, id.name)
    except NotFound:
        return False
    return True


async def _names(client: Client, kind: Kind, namespace: str) -> frozenset[str]:
    if isinstance(client, NamingClient):
        return await client.names(kind, namespace)
    listing = await client.list(kind, namespace)
    return frozenset(item["metadata"]["name"] for item in listing.items)
