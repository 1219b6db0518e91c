"""Node capacity: notes in a preview about sets whose pods in fabric domains need more nodes than there are, or more of one island."""

from collections.abc import Sequence

from engine.errors import ClusterError
from engine.ids import ResourceId
from engine.observed import Live
from engine.resource import Body
from engine.runtime.passes import Pass
from engine.runtime.provider import Provider, Scope
from enginectl.actions.notes import with_notes
from resources.base import kinds
from resources.domains.capacity import NodeCapacity, capacity_notes
from resources.domains.island_capacity import island_notes, islands_of
from resources.domains.requests import requested_by_sets, scaled_groups
from resources.model.membership import effective_body
from resources.ports.configuration import Configuration
from resources.ports.fabric import Fabric, IslandFabric, NodeExclusiveFabric


async def with_capacity_notes(result: Pass, configuration: Configuration, provider: Provider, *, complete: bool) -> Pass:
    """The pass, with notes in the plan of each set that needs more nodes, or more nodes of one island, than it can get.

    Nothing is read unless a set requests a domain. `complete` is false for a snapshot: a kind that it lacks may exist all the same.
    """
    sets = requesting_sets(result, configuration)
    notes: dict[ResourceId, list[str]] = {}
    groups = scaled_groups(result.world.roots)
    fabrics = [fabric for fabric in configuration.fabrics if requested_by_sets(sets, fabric, groups)]
    nodes = await nodes_of(provider) if any(isinstance(fabric, IslandFabric) for fabric in fabrics) else ()
    for fabric in fabrics:
        uids = {live.id: live.uid for live in result.world.references.of(fabric.kind.name)}
        capacity = await capacity_of(fabric, provider, nodes, complete=complete)
        for root, note in capacity_notes(fabric, sets, capacity, uids, groups).items():
            notes.setdefault(root, []).append(note)
        for root, of_islands in island_notes(fabric, sets, capacity, uids, groups).items():
            notes.setdefault(root, []).extend(of_islands)
    return with_notes(result, notes)


def requesting_sets(result: Pass, configuration: Configuration) -> list[tuple[ResourceId, Body]]:
    """The sets of a pass that are not being deleted, each as it is proposed or stored."""
    return [
        (observed.root.id, effective_body(observed, configuration))
        for observed in result.world.roots
        if observed.root.id.kind == kinds.PODCLIQUESET.name and observed.root.deleting_since is None
    ]


async def nodes_of(provider: Provider) -> tuple[Live, ...]:
    """The nodes; none if they could not be listed, which needs a permission that is not required otherwise."""
    try:
        observation = await provider.observe(Scope((), (), "", (), (kinds.NODE,)))
    except ClusterError:
        return ()
    is_complete = kinds.NODE.name not in observation.incomplete
    return tuple(live for live in observation.references if is_complete and live.id.kind == kinds.NODE.name)


async def capacity_of(fabric: Fabric, provider: Provider, nodes: Sequence[Live] = (), *, complete: bool) -> NodeCapacity | None:
    """The nodes that can be in a domain, and the domains that they are in. None if that is not known, or if a node can be in many.

    If claims cannot be listed, every node counts as free. `nodes` are those of the cluster, if they are known: their labels name islands.
    """
    if not isinstance(fabric, NodeExclusiveFabric):
        return None
    try:
        observation = await provider.observe(Scope((), (), "", (), (fabric.inventory_kind, kinds.RESOURCE_CLAIM)))
    except ClusterError:
        return None
    kind = fabric.inventory_kind.name
    if kind in observation.incomplete or kind in observation.unserved:
        return None
    inventory = [live for live in observation.references if live.id.kind == kind]
    if not inventory and not complete:
        return None
    claims = (live for live in observation.references if live.id.kind == kinds.RESOURCE_CLAIM.name)
    taken = {node: fabric.domain_uid(claim) for claim in claims if (node := fabric.allocated_node(claim))}
    islands = islands_of(fabric, nodes) if isinstance(fabric, IslandFabric) and nodes else None
    return NodeCapacity(fabric.eligible_nodes(inventory), taken, islands)
