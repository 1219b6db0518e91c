"""Facts: reads what a preview shows besides the plan, once and concurrently, and only what the plan and its forecast need."""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import anyio
from msgspec import Struct, field
from msgspec.structs import replace

from engine.errors import ClusterError
from engine.forecast.forecast import Forecast
from engine.ids import Kind
from engine.observed import Live, Observed
from engine.resource import Body
from engine.runtime.passes import Engine
from engine.runtime.provider import Observation, Provider, RecordedProvider, Scope
from enginectl.actions import requirements
from resources.base import kinds
from resources.base.fields import annotations_of, mapping, mappings
from resources.cluster_model.references import LEAVING, MISSING
from resources.domains.capacity import NodeCapacity, islands_of
from resources.placement.cluster_room import NO_DEFAULTS, Defaults, RoomNode
from resources.ports.configuration import Configuration
from resources.ports.fabric import Fabric
from resources.preview.facts import NEW_NODES, NO_FACTS, NO_ROOM, Facts, FirstPass, RoomFacts
from resources.preview.forecasting import Needs, can_be_forecast, creates_components, may_have_claims, named_volume_claims, needs


class FactReader(Struct, eq=False):
    """Makes the lists that a preview needs besides its pass, and notes which rights it lacks."""

    provider: Provider
    managed: tuple[str, ...] = ()
    """The only namespaces that are managed, and read; none: all."""
    forbidden: set[str] = field(default_factory=set)
    """The resources that the user may not list."""

    async def observe(self, *kinds: Kind, namespaces: tuple[str, ...] = ()) -> Observation | None:
        """The objects of these kinds, in all namespaces that are managed or in these; None if nothing could be read."""
        try:
            observation = await self.provider.observe(Scope((), (), "", namespaces or self.managed, kinds))
        except ClusterError:
            return None
        unlisted = ((kind, observation.incomplete.get(kind.key)) for kind in kinds)
        self.forbidden.update(kind.plural for kind, why in unlisted if why is not None and why.is_forbidden)
        return observation

    @property
    def notices(self) -> list[str]:
        """What is left out because a right is missing, as one text."""
        listed = ", ".join(sorted(self.forbidden))
        return [f"not taken into account, for want of the right to list them: {listed}"] if listed else []


async def read_facts(
    engine: Engine[Configuration],
    first: FirstPass,
    forecast: Forecast | None = None,
    known: Facts = NO_FACTS,
    *,
    assume_nodes: bool = False,
) -> Facts:
    """The facts that this pass and its forecast need, from what the engine reads, with those that are known already.

    What cannot be read is not known; a notice names missing rights. `assume_nodes`: nodes are added for pods that have no room, so room
    is not read.
    """
    reader = FactReader(engine.provider, engine.configuration.namespaces, set(first.forbidden))
    needed = needs(first, forecast)
    quotas: list[Live] = []
    defaults: Defaults | None = NO_DEFAULTS
    capacities: Mapping[str, NodeCapacity] = {}
    room = NO_ROOM
    notices: list[str] = []

    async def read_quotas() -> None:
        quotas.extend(await quotas_in(reader, needed.quotas))

    async def read_defaults() -> None:
        nonlocal defaults
        if needed.room is not None:
            defaults = await defaults_in(reader, needed.quotas)

    async def read_nodes() -> None:
        nonlocal capacities, room
        capacities, room = await capacities_and_room(reader, needed, assume_nodes=assume_nodes)

    async def read_notices() -> None:
        notices.extend(await notices_of(engine, first))

    async def try_new() -> None:
        nonlocal known
        if engine.tries_new and creates_components(first, forecast):
            from enginectl.actions.component_trials import try_components  # Few plans create any.

            components = await try_components(engine, first, forecast)
            known = replace(known, components=components)  # Of now: others have added what they have read meanwhile.

    async def read_late() -> None:
        nonlocal known
        if has_graphs(first):
            from enginectl.actions.component_reading import pods_of_components  # Most clusters have no graphs.
            from resources.preview.late_components import late_components

            pods = await pods_of_components(engine.provider, engine.clock, late_components(first))
            known = replace(known, component_pods=pods, assumes_nodes=assume_nodes)

    async def read_adapters() -> None:
        nonlocal known
        graphs = [each for each in first.world.roots if each.root.id.kind == kinds.DYNAMO_GRAPH.name and _adapts(each)]
        if adapters := await _listed_in(reader, kinds.SCALING_ADAPTER, {graph.root.id.namespace for graph in graphs}):
            known = replace(known, unused_adapters={graph.root.id: _unused(graph, adapters) for graph in graphs})

    async with anyio.create_task_group() as tasks:
        for read in (read_late, read_adapters, read_quotas, read_defaults, read_nodes, read_notices, try_new):
            tasks.start_soon(read)
    return replace(known, quotas=tuple(quotas), defaults=defaults, capacities=capacities, room=room, notices=(*notices, *reader.notices))


async def with_requirements(engine: Engine[Configuration], first: FirstPass) -> FirstPass:
    """The pass with what pods need to start that it does not observe.

    That is DeviceClasses, PersistentVolumeClaims, and the pods of components that are not ready.
    """
    known = await with_volume_claims(engine.provider, await with_device_classes(engine.provider, first))
    return await with_component_pods(engine, known)


async def with_component_requirements(engine: Engine[Configuration], first: FirstPass) -> FirstPass:
    """The same where there are graphs, for a pass that is not forecast: it says nothing of pods of other roots."""
    return await with_requirements(engine, first) if has_graphs(first) else first


def has_graphs(first: FirstPass) -> bool:
    """Whether a root is a graph."""
    return any(observed.root.id.kind == kinds.DYNAMO_GRAPH.name for observed in first.world.roots)


async def with_component_pods(engine: Engine[Configuration], first: FirstPass) -> FirstPass:
    """The pass with the pods of components that are not ready: what their controllers report does not tell why."""
    if not has_graphs(first):
        return first
    from enginectl.actions.component_reading import pods_of_components  # Most clusters have no graphs.
    from resources.cluster_model.component_pods import of_newest_template
    from resources.preview.stuck_roots import components_to_read

    pods = await pods_of_components(engine.provider, engine.clock, components_to_read(first))
    return replace(first, component_pods={id: tuple(of_newest_template(listed)) for id, listed in pods.items()})


async def capacities_and_room(
    reader: FactReader, needed: Needs, *, assume_nodes: bool = False, visit: Callable[[Mapping[str, Any]], None] | None = None
) -> tuple[Mapping[str, NodeCapacity], RoomFacts]:
    """Key of the kind of a fabric's domains -> its nodes, as far as they are known; and the room on all nodes. Nodes are listed once.

    `visit` is called with each pod that is read for the room.
    """
    if assume_nodes and needed.room is not None:
        capacities, _ = await capacities_and_room(reader, replace(needed, room=None))
        return capacities, NEW_NODES
    nodes: Sequence[RoomNode] = ()
    room, is_record = NO_ROOM, isinstance(reader.provider, RecordedProvider)
    if needed.has_islands or (needed.room is not None and not is_record):
        from enginectl.actions.node_reading import nodes_and_room  # Few previews need them.

        nodes, room = await nodes_and_room(reader.provider, needed.room, reader.forbidden, whole=not reader.managed, visit=visit)
    read = {fabric.kind.key: await capacity_of(fabric, reader, nodes, complete=not is_record) for fabric in needed.fabrics}
    return {key: capacity for key, capacity in read.items() if capacity is not None}, room


def _adapts(observed: Observed) -> bool:
    """Whether a service of a graph that stays, as it is proposed or stored, has a scaling adapter."""
    if observed.root.deleting_since is not None:
        return False
    spec = mapping(_specified(observed).get("spec"))
    services = (*mappings(spec.get("components")), *map(mapping, mapping(spec.get("services")).values()))
    return any("scalingAdapter" in service for service in services)


def _unused(graph: Observed, adapters: Sequence[Live]) -> tuple[str, ...]:
    """The adapters of a graph that have no effect, in the words of the version in which it is written."""
    from resources.dynamo.model.graph import is_beta_as_written  # Few graphs have any.
    from resources.dynamo.objects.scaling_adapter import unused_adapters
    from resources.dynamo.versions.api_versions import served_as
    from resources.dynamo.versions.paths import in_beta

    body, notes = _specified(graph), unused_adapters(graph.root.id, adapters)
    annotations = {**annotations_of(graph.root.body), **annotations_of(body)}  # A manifest withdraws none of our records.
    return tuple(map(in_beta, notes) if is_beta_as_written(served_as(body), annotations) else notes)


def _specified(observed: Observed) -> Body:
    """A root as it is proposed or stored."""
    return observed.root.body if observed.proposal is None else observed.proposal


async def quotas_in(reader: FactReader, namespaces: Collection[str]) -> list[Live]:
    """The ResourceQuotas of the namespaces; none if they could not be listed."""
    return await _listed_in(reader, kinds.RESOURCE_QUOTA, namespaces) or []


async def defaults_in(reader: FactReader, namespaces: Collection[str]) -> Defaults | None:
    """What the LimitRanges of the namespaces write into new pods; None if they could not be listed."""
    ranges = await _listed_in(reader, kinds.LIMIT_RANGE, namespaces)
    if not ranges:
        return NO_DEFAULTS if ranges is not None else None
    from resources.placement.limit_defaults import defaults_of  # Few namespaces have any.

    return defaults_of(ranges)


async def with_device_classes(provider: Provider, first: FirstPass) -> FirstPass:
    """The pass with the DeviceClasses that exist, if its claims may ask for some; unless they cannot be listed or are not served."""
    if first.is_record or not can_be_forecast(first) or not may_have_claims(first):
        return first
    reader = FactReader(provider)
    observation = await reader.observe(kinds.DEVICE_CLASS)
    if observation is None or kinds.DEVICE_CLASS.key in observation.incomplete:
        return replace(first, forbidden=frozenset(reader.forbidden))
    names = frozenset(live.id.name for live in observation.references)
    is_known = names or kinds.DEVICE_CLASS.key not in observation.unserved
    return replace(first, device_classes=names) if is_known else first


async def with_volume_claims(provider: Provider, first: FirstPass) -> FirstPass:
    """The pass with the PersistentVolumeClaims that sets name and that do not exist or are being deleted, unless they cannot be listed."""
    if first.is_record or not can_be_forecast(first) or not (named := frozenset(named_volume_claims(first))):
        return first
    reader = FactReader(provider, forbidden=set(first.forbidden))
    listed = await _listed_in(reader, kinds.PVC, {id.namespace for id in named})
    if listed is None:
        return replace(first, forbidden=frozenset(reader.forbidden))
    lives = {live.id: live for live in listed}
    leaving = {id: LEAVING for id in named if id in lives and lives[id].deleting_since is not None}
    return replace(first, absent=leaving | dict.fromkeys(named - lives.keys(), MISSING))


async def _listed_in(reader: FactReader, kind: Kind, namespaces: Collection[str]) -> list[Live] | None:
    """The objects of this kind in these namespaces; None if they could not be listed. A record has none."""
    if not namespaces or isinstance(reader.provider, RecordedProvider):
        return []
    observation = await reader.observe(kind, namespaces=tuple(namespaces))
    if observation is None or kind.key in observation.incomplete:
        return None
    return [live for live in observation.references if live.id.kind == kind.name]


async def capacity_of(fabric: Fabric, reader: FactReader, nodes: Sequence[RoomNode] = (), *, complete: bool) -> NodeCapacity | None:
    """The nodes that can be in a domain, and the domains that they are in. None if that is not known, or if a node can be in many.

    If claims cannot be listed, every node counts as free. `nodes` are those of the cluster, if they are known: their labels name islands.
    `complete` is false for a record of a cluster: it may lack the inventory, although there is one.
    """
    slots = fabric.slots
    if slots is None:
        return None
    observation = await reader.observe(slots.inventory_kind, kinds.RESOURCE_CLAIM)
    if observation is None:
        return None
    kind = slots.inventory_kind.name
    if kind in observation.incomplete or kind in observation.unserved:
        return None
    inventory = [live for live in observation.references if live.id.kind == kind]
    if not inventory and not complete:
        return None
    claims = (live for live in observation.references if live.id.kind == kinds.RESOURCE_CLAIM.name)
    taken = {node: fabric.domain_uid(claim) for claim in claims if (node := slots.allocated_node(claim))}
    labels = {node.name: node.labels for node in nodes}
    islands = islands_of(fabric.islands, labels) if fabric.islands is not None and nodes else None
    return NodeCapacity(slots.eligible_nodes(inventory), taken, islands)


async def notices_of(engine: Engine[Configuration], first: FirstPass) -> list[str]:
    """What the cluster lacks that the configuration or the manifests need."""
    asked = {str(manifest["kind"]) for manifest in first.intent.manifests}
    missing = await missing_kinds(engine, first.world.unserved, asked)
    return [note for note in (missing, await requirements.missing_if_known(engine.configuration, engine.provider)) if note]


async def missing_kinds(engine: Engine[Configuration], unserved: frozenset[str], asked: Collection[str]) -> str:
    """What to do about root kinds that the cluster does not serve and that the user may miss; empty if there are none."""
    if unserved.isdisjoint(kind.key for kind in engine.scope.roots):
        return ""
    wanted = [kind for kind in engine.scope.roots if kind.name in asked]
    provider, optional = engine.provider, requirements.optional_roots(engine.scope.roots)
    for note in (await requirements.unserved_roots(provider, wanted), await requirements.nothing_served(provider, engine.scope.roots)):
        if note:
            return note
    return await requirements.unserved_roots(provider, optional)
