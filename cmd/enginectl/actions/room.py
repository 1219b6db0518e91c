"""Room: reads the nodes of a cluster and what runs on them, a page at a time, for previews that create pods."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, Final

from engine.errors import ClusterError, Forbidden
from engine.forecast.forecast import Forecast
from engine.forecast.simulation import existing
from engine.runtime.provider import Provider, ScanningProvider
from engine.verb import Verb
from resources.base import kinds
from resources.base.fields import mapping
from resources.domains.capacity import NodeCapacity
from resources.forecast.room_facts import NO_ROOM, RoomFacts
from resources.placement.cluster_room import MAX_PODS, FabricSlots, RoomNode, UsageTotals, label_keys_of, room_node
from resources.ports.fabric import Fabric
from resources.preview.facts import FirstPass
from resources.preview.forecasting import concerned

ON_NODES: Final = "spec.nodeName!=,status.phase!=Succeeded,status.phase!=Failed"
"""The field selector of pods that use a node."""
FORBIDDEN: Final = "you may not list nodes and the pods of all namespaces"
TOO_MANY: Final = f"more than {MAX_PODS:,} pods run in the cluster"


async def room_of(provider: Provider, first: FirstPass, forecast: Forecast, capacities: Mapping[str, NodeCapacity]) -> RoomFacts:
    """The nodes, and what pods use of them that the forecast does not have; or why that is not known. `capacities`: see `Facts`."""
    if not isinstance(provider, ScanningProvider):
        return NO_ROOM
    nodes: list[RoomNode] = []
    totals = UsageTotals(frozenset(label_keys_of(specs_of(forecast))), uids_of(first))

    def add_node(body: Mapping[str, Any]) -> bool:
        nodes.append(room_node(body))
        return True

    def add_pod(body: Mapping[str, Any]) -> bool:
        totals.add(body)
        return totals.count <= MAX_PODS

    try:
        await provider.scan(kinds.NODE, add_node)
        await provider.scan(kinds.POD, add_pod, fields=ON_NODES)
    except Forbidden:
        return RoomFacts(unchecked=FORBIDDEN)
    except ClusterError as error:
        return RoomFacts(unchecked=f"nodes and pods could not be listed: {error}")
    if totals.count > MAX_PODS:
        return RoomFacts(unchecked=TOO_MANY)
    return RoomFacts(totals.room(nodes, dict(slots_in(first.configuration.fabrics, capacities))))


def slots_in(fabrics: Iterable[Fabric], capacities: Mapping[str, NodeCapacity]) -> Iterator[tuple[str, FabricSlots]]:
    """The kind of domains of each fabric whose nodes are known, and these nodes."""
    for fabric in fabrics:
        if (capacity := capacities.get(fabric.kind.key)) is not None:
            yield fabric.kind.name, FabricSlots(capacity.nodes, capacity.taken)


def specs_of(forecast: Forecast) -> Iterator[Mapping[str, Any]]:
    """The specs of the pods that a forecast creates."""
    for operation in forecast.operations():
        if operation.verb is Verb.CREATE and operation.id.kind == kinds.POD.name:
            yield mapping(operation.body.get("spec"))


def uids_of(first: FirstPass) -> Collection[str]:
    """The uids of the pods that a forecast of this pass begins with."""
    return frozenset(live.uid for live in existing(concerned(first)) if live.id.kind == kinds.POD.name)
