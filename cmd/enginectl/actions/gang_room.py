"""Gang room: says of each gang that waits for room how much of it has room and what is missing, for `engine status` and `engine why`."""

from collections.abc import Collection, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import Final

from anyio import to_thread
from msgspec.structs import replace

from engine.errors import ClusterError
from engine.forecast.simulation import existing
from engine.ids import ResourceId
from engine.runtime.passes import Pass
from engine.runtime.provider import Provider, ScanningProvider, Scope
from enginectl.actions.facts import FactReader, capacities_and_room
from enginectl.actions.node_reading import CONFINED
from resources.base import kinds
from resources.base.labels import SET_OF_POD
from resources.placement.cluster_room import ClusterRoom
from resources.placement.gang_room import GangHolders, gang_room
from resources.ports.checks import Diagnosis
from resources.ports.configuration import Configuration
from resources.preview.domain_places import domain_templates, places_of, slots_in
from resources.preview.forecasting import Needs, RoomNeeds
from resources.reports.obstacles import pods_of
from resources.reports.waiting_gangs import WaitingGang, diagnosis, unready_groups, waiting_gangs, waiting_groups

RECORDED: Final = "a record of a cluster may lack nodes and pods"
MOST: Final = 50
"""How many gangs are judged: each is compared with all nodes."""


async def waiting_for_room(
    result: Pass[Configuration], roots: Collection[ResourceId], configuration: Configuration, provider: Provider
) -> Mapping[ResourceId, Diagnosis]:
    """PodGang, or LeaderWorkerSet, -> what it waits for, of the first `MOST` of these sets and graphs that the scheduler found no room for.

    Nodes and pods are read only if there is one, and which nodes have a place in a domain only if one of its pods claims such a place.
    What takes long is computed in a worker thread: `engine run` answers others meanwhile.
    """
    gangs = await to_thread.run_sync(partial(_gangs, result, roots, configuration))
    gangs = [*gangs, *await _groups(result, roots, provider)][:MOST]
    if not gangs:
        return {}
    if configuration.namespaces:
        return _unchecked(gangs, CONFINED)
    if not isinstance(provider, ScanningProvider):
        return _unchecked(gangs, RECORDED)
    templates = domain_templates({live.id: live for live in existing(result.world)}, configuration.fabrics)
    places = {pod.id: places_of(pod, templates) for gang in gangs for pod in gang.pods}
    claimed = {kind for taken in places.values() for kind in taken}
    fabrics = tuple(fabric for fabric in configuration.fabrics if fabric.kind.name in claimed)
    needed = RoomNeeds(tuple(pod.body["spec"] for gang in gangs for pod in gang.pods), frozenset())
    reader, holders = FactReader(provider), GangHolders()
    capacities, room = await capacities_and_room(reader, Needs(fabrics=fabrics, room=needed), visit=holders.add)
    if room.cluster is None:
        return _unchecked(gangs, room.unchecked)
    cluster = replace(room.cluster, slots=dict(slots_in(fabrics, capacities)))
    unread = "; ".join(reader.notices) or _unknown_places(claimed - cluster.slots.keys())
    return await to_thread.run_sync(partial(_diagnoses, gangs, places, cluster, holders, unread))


def _gangs(result: Pass[Configuration], roots: Collection[ResourceId], configuration: Configuration) -> list[WaitingGang]:
    of_sets = (each for each in result.world.roots if each.root.id.kind == kinds.PODCLIQUESET.name and each.root.id in roots)
    sets = (pods_of(observed, result.world, configuration) for observed in of_sets)
    return list(islice((gang for pods in sets for gang in waiting_gangs(pods)), MOST))


async def _groups(result: Pass[Configuration], roots: Collection[ResourceId], provider: Provider) -> list[WaitingGang]:
    """The groups of LeaderWorkerSets of these graphs that wait; none if their pods cannot be read. If all are ready, no pod is."""
    graphs = (each for each in result.world.roots if each.root.id.kind == kinds.DYNAMO_GRAPH.name and each.root.id in roots)
    unready = [live for graph in graphs for live in unready_groups(graph)]
    if not unready:
        return []
    namespaces = tuple(sorted({live.id.namespace for live in unready}))
    try:
        observation = await provider.observe(Scope((), (kinds.POD,), SET_OF_POD, namespaces))
    except ClusterError:
        return []
    return list(waiting_groups(unready, observation.children))


def _diagnoses(
    gangs: Sequence[WaitingGang],
    places: Mapping[ResourceId, Mapping[str, int]],
    cluster: ClusterRoom,
    holders: GangHolders,
    unread: str,
) -> Mapping[ResourceId, Diagnosis]:
    diagnoses = {}
    for gang in gangs:
        needs = {pod.id: (pod.body, {kind: count for kind, count in places[pod.id].items() if kind in cluster.slots}) for pod in gang.pods}
        judge = partial(gang_room, own=(gang.id.namespace, gang.id.name), cluster=cluster, holders=holders)
        whole = judge(list(needs.values()), "", gang.placed)
        parts = (judge([needs[pod.id] for pod in area.pods], area.level, area.placed) for area in gang.areas)
        short = next((part for part in parts if part.why), whole)
        fit = min(whole.fit, whole.lacking - short.lacking + short.fit)
        diagnoses[gang.id] = diagnosis(
            gang, replace(short, lacking=whole.lacking, fit=fit), unread if any(places[pod.id] for pod in gang.pods) else ""
        )
    return diagnoses


def _unchecked(gangs: Sequence[WaitingGang], why: str) -> Mapping[ResourceId, Diagnosis]:
    return {gang.id: diagnosis(gang, None, why) for gang in gangs}


def _unknown_places(missing: Collection[str]) -> str:
    """That it is not known which nodes have a place in a domain of these kinds; empty if there are none."""
    return f"it is not known which nodes have a place in a {' or '.join(sorted(missing))}" if missing else ""
