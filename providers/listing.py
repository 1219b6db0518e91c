"""Listing: all objects of one list, typed, as the engine keeps them."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, NamedTuple, Protocol, runtime_checkable

from engine.errors import ClusterError, Forbidden, NotFound, ServerFault
from engine.ids import Kind
from engine.mask import masked
from engine.observed import Live, live
from engine.resource import Body
from engine.runtime.client import Client
from engine.runtime.provider import Scope
from providers.asking import DiscoveryClient
from providers.scoping import Target
from resources.base import kinds


@runtime_checkable
class RawListingClient(Protocol):
    """A client that can leave objects unparsed."""

    async def lives(self, kind: Kind, namespace: str, labels: str) -> tuple[Sequence[Live], str]:
        """All objects of a kind, as bytes with typed metadata, and the revision from which a watch misses nothing."""
        ...


class Listed(NamedTuple):
    """What a list has brought."""

    lives: Sequence[Live]
    revision: str
    """The one at which they were so: a watch from there misses nothing."""
    kind: Kind
    """As the server has it: an older version where there is no other."""


async def listed(client: Client, target: Target) -> Listed:
    """The objects. Raises `NotFound` where there is no such kind.

    What Secrets hold is forgotten at this door: that they hold something is all that anybody may know.
    """
    versions = (target.kind.version, *kinds.OLDER.get(target.kind, ()))
    *newer, oldest = (replace(target.kind, version=version) for version in versions)
    for kind in newer:
        with suppress(NotFound):
            return await _listed(client, target._replace(kind=kind))
    return await _listed(client, target._replace(kind=oldest))


async def _listed(client: Client, target: Target) -> Listed:
    if isinstance(client, RawListingClient):
        found, revision = await client.lives(*target)
        masks = target.kind == kinds.SECRET
        return Listed([replace(one, source=masked(one.body)) for one in found] if masks else found, revision, target.kind)
    listing = await client.list(target.kind, target.namespace, labels=target.labels)
    return Listed([typed(target.kind, item) for item in listing.items], listing.revision, target.kind)


def is_older(kind: Kind, scope: Scope) -> bool:
    """Whether a kind of children is there in an older version only: what there is of it is seen, and nothing can be made of it."""
    return any((child.group, child.name) == (kind.group, kind.name) and child.version != kind.version for child in scope.children)


def typed(kind: Kind, body: dict[str, Any]) -> Live:
    """One object; an entry of a list says neither its kind nor its version."""
    framed: Body = {"apiVersion": kind.api_version, "kind": kind.name, **body}
    return live(masked(framed))


async def is_hole(client: Client, kind: Kind, error: ClusterError) -> bool:
    """Whether an error hides anything: servers forbid before they look whether there is such a kind at all."""
    if not isinstance(error, Forbidden):
        return True
    try:
        return await serves(client, kind)
    except ClusterError:
        return True


async def serves(client: Client, kind: Kind) -> bool:
    """Whether the server says that it has that kind, in that version if it tells versions. Raises `ServerFault` where it does not know."""
    if isinstance(client, DiscoveryClient):
        found = await client.discover()
        if not found.serves(kind) and kind.api_version in found.incomplete:
            raise ServerFault(f"{kind.api_version}: {found.incomplete[kind.api_version]}")
        return found.serves(kind)
    return any((served.group, served.name) == (kind.group, kind.name) for served in await client.kinds())
