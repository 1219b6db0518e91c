"""Node reading: the nodes of a cluster and what runs on them, a page at a time, for previews that create pods or need to know islands."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from engine.errors import ClusterError, Forbidden
from engine.runtime.provider import Provider, ScanningProvider, Scope
from resources.base import kinds
from resources.placement.cluster_room import RoomNode
from resources.placement.usage_totals import MAX_PODS, UsageTotals, label_keys_of, room_node
from resources.preview.facts import NO_ROOM, RoomFacts
from resources.preview.forecasting import RoomNeeds

ON_NODES: Final = "spec.nodeName!=,status.phase!=Succeeded,status.phase!=Failed"
"""The field selector of pods that use a node."""
FORBIDDEN: Final = "you may not list nodes and the pods of all namespaces"
CONFINED: Final = "only the pods of the `namespaces` of the configuration are read"
TOO_MANY: Final = f"more than {MAX_PODS:,} pods run in the cluster"

Visit = Callable[[Mapping[str, Any]], None]
"""Is called with the body of each pod that is on a node."""


async def nodes_and_room(
    provider: Provider, needed: RoomNeeds | None, forbidden: set[str], *, whole: bool = True, visit: Visit | None = None
) -> tuple[Sequence[RoomNode], RoomFacts]:
    """The nodes, none if they could not be listed, and what pods use of them that the forecast does not have, or why that is not known.

    Each is listed once. `needed`: None if only the nodes matter; then they are added to `forbidden` if the user may not list them. Of a
    record nothing is known about room: it may lack pods. `whole`: whether the pods of all namespaces are read; if not, the same holds.
    `visit` is called with each pod that is read.
    """
    if not isinstance(provider, ScanningProvider):
        return await recorded_nodes(provider), NO_ROOM
    try:
        nodes = await nodes_of(provider)
    except ClusterError as error:
        if needed is not None:
            return (), unknown(error)
        forbidden.update([kinds.NODE.plural] if isinstance(error, Forbidden) else ())
        return (), NO_ROOM
    if needed is None:
        return nodes, NO_ROOM
    return nodes, await room_on(nodes, provider, needed, visit) if whole else RoomFacts(unchecked=CONFINED)


async def nodes_of(provider: ScanningProvider) -> list[RoomNode]:
    """All nodes. Raises `ClusterError`."""
    nodes: list[RoomNode] = []

    def add(body: Mapping[str, Any]) -> bool:
        nodes.append(room_node(body))
        return True

    await provider.scan(kinds.NODE, add)
    return nodes


async def recorded_nodes(provider: Provider) -> list[RoomNode]:
    """The nodes that a record has; none if it could not have all of them."""
    try:
        observation = await provider.observe(Scope((), (), "", (), (kinds.NODE,)))
    except ClusterError:
        return []
    lives = (live for live in observation.references if live.id.kind == kinds.NODE.name)
    return [room_node(live.body) for live in lives if kinds.NODE.key not in observation.incomplete]


async def room_on(nodes: Sequence[RoomNode], provider: ScanningProvider, needed: RoomNeeds, visit: Visit | None = None) -> RoomFacts:
    """These nodes with what pods use of them; or why that is not known. `visit` is called with each pod that is read."""
    totals = UsageTotals(frozenset(label_keys_of(needed.specs)), needed.known, needed.leaves, needed.replaced)

    def add_pod(body: Mapping[str, Any]) -> bool:
        totals.add(body)
        if visit is not None:
            visit(body)
        return totals.count <= MAX_PODS

    try:
        await provider.scan(kinds.POD, add_pod, fields=ON_NODES)
    except ClusterError as error:
        return unknown(error)
    return RoomFacts(totals.room(nodes)) if totals.count <= MAX_PODS else RoomFacts(unchecked=TOO_MANY)


def unknown(error: ClusterError) -> RoomFacts:
    """That nodes or pods could not be listed, and why."""
    return RoomFacts(unchecked=FORBIDDEN if isinstance(error, Forbidden) else f"nodes and pods could not be listed: {error}")
