"""Listing: all objects of one list, typed."""

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple, Protocol, TypeGuard, runtime_checkable

import orjson
from msgspec.structs import replace

from engine.errors import ClusterError, Forbidden, NotFound, ServerFault
from engine.ids import Kind
from engine.mask import masked
from engine.observed import Compressor, Live, Source, live
from engine.resource import Body
from engine.runtime.provider import Client, Scope
from providers.queries import DiscoveryClient
from providers.snapshot import Target
from resources.base import kinds, labels

Keep = Callable[[Mapping[str, str], bytes], Source]
"""What is kept of the bytes of an object with these labels: all of it, perhaps compressed."""


def keeper(compressor: Compressor) -> Keep:
    """Compresses objects; those of one template together."""
    return lambda own_labels, content: compressor.compress(own_labels.get(labels.TEMPLATE_HASH), content)


@runtime_checkable
class RawListingClient(Protocol):
    """A client that can leave objects unparsed."""

    async def lives(self, kind: Kind, namespace: str, labels: str, keep: Keep) -> tuple[Sequence[Live], str]:
        """All objects of a kind, unparsed with typed metadata, and the revision from which a watch misses nothing."""
        ...


class ListedLives(NamedTuple):
    """The result of a list."""

    lives: Sequence[Live]
    revision: str
    """A watch from this revision misses nothing."""
    kind: Kind
    """The kind in the version that the server has: an older one if it does not serve ours."""


async def list_lives(client: Client, target: Target, compressor: Compressor | None = None) -> ListedLives:
    """The objects, compressed by the compressor of their kind; the contents of Secrets are masked, their keys stay.

    Raises `NotFound` if the server does not serve the kind, also if it answers `Forbidden` (authorization is checked first).
    """
    try:
        return await _list_any_version(client, target, keeper(compressor or Compressor()))
    except Forbidden as error:
        if await _is_known_unserved(client, target.kind):
            raise NotFound(f"{target.kind.plural} are not served") from error
        raise


async def _list_any_version(client: Client, target: Target, keep: Keep) -> ListedLives:
    """The objects in the first version that the server serves: ours, else another one. Raises `NotFound` if it serves none.

    A kind that we also write in another version is listed in that one as well if the server cannot convert its objects. That it could not
    is raised if it does not serve the other one.
    """
    faults: list[ClusterError] = []
    for kind in versions_of(target.kind):
        try:
            return await _list(client, target._replace(kind=kind), keep)
        except NotFound as error:
            faults.append(error)
        except ServerFault as error:
            if not kinds.newer(target.kind):
                raise
            faults.append(error)
    raise next((fault for fault in faults if isinstance(fault, ServerFault)), faults[-1])


def versions_of(kind: Kind) -> tuple[Kind, ...]:
    """The kind in all versions in which it may be listed: ours first."""
    older = (replace(kind, version=version) for version in kinds.OLDER.get(kind, ()))
    return (kind, *older, *kinds.newer(kind))


def is_newer(kind: Kind, target: Kind) -> bool:
    """Whether a kind was listed in a newer version than that of the target, in which it is written as well."""
    return kind != target and kind in kinds.newer(target)


async def _list(client: Client, target: Target, keep: Keep) -> ListedLives:
    """The objects in exactly the target's version."""
    if _lists_raw(client):
        kept = keep if target.kind != kinds.SECRET else _masking(keep)
        lives, revision = await client.lives(target.kind, target.namespace, target.sent, kept)
    else:
        listing = await client.list(target.kind, target.namespace, labels=target.sent)
        lives, revision = [typed(target.kind, item) for item in listing.items], listing.revision
    return ListedLives([live for live in lives if target.contains(live)] if target.finalizers else lives, revision, target.kind)


def _lists_raw(client: Client) -> TypeGuard[RawListingClient]:
    return _is_raw_listing(type(client))


@cache
def _is_raw_listing(client: type) -> bool:
    """Remembered: the structural check takes longer than answering for a list of a few objects."""
    return issubclass(client, RawListingClient)


def _masking(keep: Keep) -> Keep:
    """The same with the contents of Secrets masked."""
    return lambda own_labels, content: keep(own_labels, orjson.dumps(masked(orjson.loads(content))))


def is_older(kind: Kind, scope: Scope) -> bool:
    """Whether the server has a kind of children in an older version only: its objects are listed, and none can be created."""
    return any(
        (child.group, child.name) == (kind.group, kind.name) and child.version != kind.version and not is_newer(kind, child)
        for child in scope.children
    )


def typed(kind: Kind, body: dict[str, Any]) -> Live:
    """One object of a list or a watch; entries of lists lack apiVersion and kind."""
    complete: Body = {"apiVersion": kind.api_version, "kind": kind.name, **body}
    return live(masked(complete))


async def _is_known_unserved(client: Client, kind: Kind) -> bool:
    """Whether discovery answers that the kind is not served; false if discovery fails."""
    try:
        return not any([await serves(client, version) for version in versions_of(kind)])
    except ClusterError:
        return False


async def serves(client: Client, kind: Kind) -> bool:
    """Whether the server serves the kind, in that version if the client knows versions. Raises `ServerFault` if discovery is incomplete."""
    if isinstance(client, DiscoveryClient):
        discovery = await client.discover()
        if not discovery.serves(kind) and kind.api_version in discovery.incomplete:
            raise ServerFault(f"{kind.api_version}: {discovery.incomplete[kind.api_version]}")
        return discovery.serves(kind)
    return any((served.group, served.name) == (kind.group, kind.name) for served in await client.kinds())
