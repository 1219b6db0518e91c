"""Node capacity: notes in a preview about sets whose pods in fabric domains need more nodes than there are."""

from dataclasses import replace

from engine.errors import ClusterError
from engine.ids import ResourceId
from engine.runtime.passes import Pass
from engine.runtime.provider import Provider, Scope
from resources.base import kinds
from resources.domains.capacity import NodeCapacity, capacity_notes
from resources.domains.requests import requested_by_sets
from resources.model.membership import effective_body
from resources.ports.configuration import Configuration
from resources.ports.fabric import Fabric, NodeExclusiveFabric


async def with_capacity_notes(result: Pass, configuration: Configuration, provider: Provider, *, complete: bool) -> Pass:
    """The pass, with a note in the plan of each set that needs more nodes than it can get.

    Nothing is read unless a set requests a domain. `complete` is false for a snapshot: a kind that it lacks may exist all the same.
    """
    sets = [
        (observed.root.id, effective_body(observed, configuration))
        for observed in result.world.roots
        if observed.root.id.kind == kinds.PODCLIQUESET.name and observed.root.deleting_since is None
    ]
    notes: dict[ResourceId, list[str]] = {}
    for fabric in configuration.fabrics:
        if requested_by_sets(sets, fabric):
            uids = {live.id: live.uid for live in result.world.references.of(fabric.kind.name)}
            capacity = await capacity_of(fabric, provider, complete=complete)
            for root, note in capacity_notes(fabric, sets, capacity, uids).items():
                notes.setdefault(root, []).append(note)
    plans = tuple(replace(plan, notes=(*plan.notes, *notes.get(plan.root, ()))) for plan in result.planned.plans)
    return replace(result, planned=replace(result.planned, plans=plans)) if notes else result


async def capacity_of(fabric: Fabric, provider: Provider, *, complete: bool) -> NodeCapacity | None:
    """The nodes that can be in a domain, and the domains that they are in. None if that is not known, or if a node can be in many.

    If claims cannot be listed, every node counts as free.
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
    return NodeCapacity(fabric.eligible_nodes(inventory), taken)
