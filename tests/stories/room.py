"""What a preview knows of the nodes of a stage, and of what runs on them."""

from engine.observed import live
from resources.base import kinds, labels
from resources.domains.capacity import NodeCapacity
from resources.placement.usage_totals import UsageTotals, room_node
from resources.preview.facts import Facts, RoomFacts
from tests.stories.stage import Stage


def node_facts(cluster: Stage) -> Facts:
    """The nodes, what pods use of them that are of no set, and which of them are in domains."""
    totals = UsageTotals()
    for body in cluster.there(kinds.POD).values():
        if labels.PODCLIQUE not in (body["metadata"].get("labels") or {}):
            totals.add(body)
    capacities = {}
    for fabric in cluster.setup.fabrics:
        if (slots := fabric.slots) is not None:
            inventory = [live(dict(body)) for body in cluster.there(slots.inventory_kind).values()]
            claims = [live(dict(body)) for body in cluster.there(kinds.RESOURCE_CLAIM).values()]
            taken = {node: fabric.domain_uid(claim) for claim in claims if (node := slots.allocated_node(claim))}
            capacities[fabric.kind.key] = NodeCapacity(slots.eligible_nodes(inventory), taken)
    return Facts(capacities=capacities, room=RoomFacts(totals.room(map(room_node, cluster.there(kinds.NODE).values()))))
