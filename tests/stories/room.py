"""The room of a stage: its nodes and what runs on them, as a preview knows them."""

from engine.observed import live
from resources.base import kinds, labels
from resources.placement.cluster_room import ClusterRoom, FabricSlots, UsageTotals, room_node
from resources.ports.fabric import NodeExclusiveFabric
from tests.stories.stage import Stage


def room_of(cluster: Stage) -> ClusterRoom:
    """The nodes, and what pods use of them that are of no set."""
    totals = UsageTotals()
    for body in cluster.there(kinds.POD).values():
        if labels.PODCLIQUE not in (body["metadata"].get("labels") or {}):
            totals.add(body)
    slots = {}
    for fabric in cluster.setup.fabrics:
        if isinstance(fabric, NodeExclusiveFabric):
            inventory = [live(dict(body)) for body in cluster.there(fabric.inventory_kind).values()]
            claims = [live(dict(body)) for body in cluster.there(kinds.RESOURCE_CLAIM).values()]
            taken = {node: fabric.domain_uid(claim) for claim in claims if (node := fabric.allocated_node(claim))}
            slots[fabric.kind.name] = FabricSlots(fabric.eligible_nodes(inventory), taken)
    return totals.room(map(room_node, cluster.there(kinds.NODE).values()), slots)
