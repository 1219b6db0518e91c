"""Crowds: a note in a preview on every set whose pods in fabric domains ask for more nodes than there are."""

from dataclasses import replace

from engine.errors import ClusterError
from engine.ids import ResourceId
from engine.runtime.passes import Pass
from engine.runtime.provider import Provider, Scope
from resources.base import kinds
from resources.domains.capacity import NodeCapacity, capacity_notes
from resources.domains.requests import planned_by
from resources.ports.configuration import Configuration
from resources.ports.fabric import Fabric, NodeExclusiveFabric


async def noted(look: Pass, setup: Configuration, provider: Provider, *, complete: bool) -> Pass:
    """The look, with a note on each capacity_notes set. Nothing is read where no set asks for a domain.

    `complete` says whether what the provider does not have is not there; a snapshot may only not have looked.
    """
    sets = [
        (seen.root.id, seen.proposal or seen.root.body)
        for seen in look.world.roots
        if seen.root.id.kind == kinds.PODCLIQUESET.name and seen.root.deleting_since is None
    ]
    notes: dict[ResourceId, list[str]] = {}
    for fabric in setup.fabrics:
        if planned_by(sets, fabric):
            uids = {live.id: live.uid for live in look.world.references.of(fabric.kind.name)}
            for root, told in capacity_notes(fabric, sets, await room_of(fabric, provider, complete=complete), uids).items():
                notes.setdefault(root, []).append(told)
    plans = tuple(replace(plan, notes=(*plan.notes, *notes.get(plan.root, ()))) for plan in look.planned.plans)
    return replace(look, planned=replace(look.planned, plans=plans)) if notes else look


async def room_of(fabric: Fabric, provider: Provider, *, complete: bool) -> NodeCapacity | None:
    """The places for pods in domains; None where nobody knows them. Whose claims cannot be seen takes none."""
    if not isinstance(fabric, NodeExclusiveFabric):
        return None
    scope = Scope((), (), "", (), (fabric.inventory, kinds.RESOURCE_CLAIM))
    try:
        seen = await provider.observe(scope)
    except ClusterError:
        return None
    if fabric.inventory.name in seen.incomplete or fabric.inventory.name in seen.unserved:
        return None
    inventory = [live for live in seen.references if live.id.kind == fabric.inventory.name]
    if not inventory and not complete:
        return None
    claims = (live for live in seen.references if live.id.kind == kinds.RESOURCE_CLAIM.name)
    taken = {node: fabric.domain_of(claim) for claim in claims if (node := fabric.taken(claim))}
    return NodeCapacity(fabric.places(inventory), taken)
