"""Facts: reads what a preview tells besides the plan, once and concurrently, and only what the plan needs."""

from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType
from typing import Final

import anyio

from engine.answer import TrialOutcome
from engine.errors import ClusterError
from engine.ids import ResourceId
from engine.observed import Live, World
from engine.plan import changed
from engine.runtime.passes import Engine
from engine.runtime.provider import Provider, RecordedProvider, Scope
from enginectl.actions import requirements
from resources.base import kinds
from resources.domains.capacity import NodeCapacity, islands_of
from resources.domains.requests import requested_by_sets, scaled_groups
from resources.ports.fabric import Fabric, IslandFabric, NodeExclusiveFabric
from resources.preview.facts import NO_TRIAL, Facts, FirstPass, TrialResult

NOT_TRIED: Final = (
    "you may not create pods: the API server was not asked whether it accepts pods of new templates; shown is what it refused before, by "
    "the conditions of the sets"
)
NO_REMARKS: Final[Mapping[ResourceId, tuple[str, ...]]] = MappingProxyType({})


async def read_facts(
    engine: Engine,
    first: FirstPass,
    *,
    is_forecast: bool = True,
    rejected: Mapping[ResourceId, tuple[str, ...]] = NO_REMARKS,
    trial: TrialResult = NO_TRIAL,
    base: Mapping[ResourceId, tuple[str, ...]] = NO_REMARKS,
) -> Facts:
    """The facts that this pass and its forecast need, from what the engine reads. What cannot be read is not known, and not told.

    They are read before the forecast is made, which takes them into account. `is_forecast`: whether one is made, without which quotas mean
    nothing. `rejected`: what admission says of manifests. `trial`: what the API server says of the operations. `base`: remarks about the
    manifests with which the change is compared.
    """
    provider = engine.provider
    quotas: list[Live] = []
    capacities: dict[str, NodeCapacity] = {}
    notices: list[str] = []

    async def read_quotas() -> None:
        quotas.extend(await quotas_in(provider, changing_namespaces(first) if is_forecast else ()))

    async def read_capacities() -> None:
        capacities.update(await capacities_of(provider, first))

    async def read_notices() -> None:
        notices.extend(await notices_of(engine, first))

    async with anyio.create_task_group() as tasks:
        for read in (read_quotas, read_capacities, read_notices):
            tasks.start_soon(read)
    return Facts(tuple(quotas), capacities, rejected, trial, base, tuple(notices))


def changing_namespaces(first: FirstPass) -> list[str]:
    """The namespaces in which objects may be created from this pass on, sorted: those of roots that are changed and not removed."""
    leaving = {
        observed.root.id for observed in first.world.roots if observed.root.deleting_since is not None
    } | first.intent.removals.keys()
    plans = (plan for plan in first.planned.plans if plan.root not in leaving and (plan.deferred or changed(plan)))
    return sorted({plan.root.namespace for plan in plans} - {""})


async def quotas_in(provider: Provider, namespaces: Collection[str]) -> list[Live]:
    """The ResourceQuotas of the namespaces; none if they could not be listed, or if the provider is a record, which does not have them."""
    if not namespaces or isinstance(provider, RecordedProvider):
        return []
    return await listed(provider, Scope((), (), "", tuple(namespaces), (kinds.RESOURCE_QUOTA,)))


async def capacities_of(provider: Provider, first: FirstPass) -> dict[str, NodeCapacity]:
    """Key of the kind of a fabric's domains -> its nodes. Nothing is read unless a set requests a domain."""
    sets, groups = first.sets(), scaled_groups(first.world.roots)
    fabrics = [fabric for fabric in first.configuration.fabrics if requested_by_sets(sets, fabric, groups)]
    nodes = await nodes_of(provider) if any(isinstance(fabric, IslandFabric) for fabric in fabrics) else ()
    complete = not isinstance(provider, RecordedProvider)
    read = {fabric.kind.key: await capacity_of(fabric, provider, nodes, complete=complete) for fabric in fabrics}
    return {key: capacity for key, capacity in read.items() if capacity is not None}


async def nodes_of(provider: Provider) -> list[Live]:
    """The nodes; none if they could not be listed, which needs a right that is not required otherwise."""
    return await listed(provider, Scope((), (), "", (), (kinds.NODE,)))


async def listed(provider: Provider, scope: Scope) -> list[Live]:
    """The references of a scope of one kind; none if they could not be listed completely."""
    try:
        observation = await provider.observe(scope)
    except ClusterError:
        return []
    (kind,) = scope.references
    return [live for live in observation.references if live.id.kind == kind.name and kind.key not in observation.incomplete]


async def capacity_of(fabric: Fabric, provider: Provider, nodes: Sequence[Live] = (), *, complete: bool) -> NodeCapacity | None:
    """The nodes that can be in a domain, and the domains that they are in. None if that is not known, or if a node can be in many.

    If claims cannot be listed, every node counts as free. `nodes` are those of the cluster, if they are known: their labels name islands.
    `complete` is false for a record of a cluster: it may lack the inventory, although there is one.
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


async def notices_of(engine: Engine, first: FirstPass) -> list[str]:
    """What the cluster lacks that the configuration or the manifests need, and what the user may not read."""
    asked = {str(manifest["kind"]) for manifest in first.intent.manifests}
    missing = await missing_kinds(engine, first.world.unserved, asked)
    untried = NOT_TRIED if may_not_try(first.world) else ""
    return [note for note in (missing, untried, await requirements.missing_if_known(engine.configuration, engine.provider)) if note]


def may_not_try(world: World) -> bool:
    """Whether the API server was not asked about a pod of a new template because the user may not create pods."""
    verdicts = (verdict for observed in world.roots for verdict in observed.trials.verdicts.values())
    return any(verdict.outcome is TrialOutcome.NOT_PERMITTED for verdict in verdicts)


async def missing_kinds(engine: Engine, unserved: frozenset[str], asked: Collection[str]) -> str:
    """What to do about root kinds that the cluster does not serve and that the user may miss; empty if there are none."""
    if unserved.isdisjoint(kind.key for kind in engine.scope.roots):
        return ""
    wanted = [kind for kind in engine.scope.roots if kind.name in asked]
    provider, optional = engine.provider, requirements.optional_roots(engine.scope.roots)
    for note in (await requirements.unserved_roots(provider, wanted), await requirements.nothing_served(provider)):
        if note:
            return note
    return await requirements.unserved_roots(provider, optional)
