"""Gang room: says of each gang that waits for room how much of it has room and what is missing, for `engine status` and `engine why`."""

from collections.abc import Collection, Mapping, Sequence
from itertools import islice
from typing import Final

from engine.errors import ClusterError
from engine.ids import ResourceId
from engine.observed import Observed
from engine.runtime.passes import Pass
from engine.runtime.provider import Provider, ScanningProvider
from enginectl.actions.node_reading import CONFINED, nodes_of, room_on, unknown
from resources.base import kinds
from resources.placement.cluster_room import ClusterRoom
from resources.placement.gang_room import GangHolders, GangRoom, gang_room
from resources.ports.checks import Diagnosis
from resources.ports.configuration import Configuration
from resources.preview.forecasting import RoomNeeds
from resources.reports.obstacles import unknown_kinds
from resources.reports.set_pods import SetPods
from resources.reports.waiting_gangs import WaitingGang, diagnosis, waiting_gangs

RECORDED: Final = "a record of a cluster may lack nodes and pods"
MOST: Final = 50
"""How many gangs are judged: each is compared with all nodes."""


async def waiting_for_room(
    result: Pass[Configuration], roots: Collection[ResourceId], configuration: Configuration, provider: Provider
) -> Mapping[ResourceId, Diagnosis]:
    """PodGang -> what it waits for, of the first `MOST` gangs of these sets that the scheduler found no room for.

    Nodes and pods are read only if there is one.
    """
    unlisted = unknown_kinds(result.world, configuration)
    sets = (SetPods.of(observed, unlisted) for observed in result.world.roots if _is_set(observed, roots))
    gangs = list(islice((gang for pods in sets for gang in waiting_gangs(pods)), MOST))
    if not gangs:
        return {}
    if configuration.namespaces:
        return _unchecked(gangs, CONFINED)
    if not isinstance(provider, ScanningProvider):
        return _unchecked(gangs, RECORDED)
    holders = GangHolders()
    needed = RoomNeeds(tuple(pod.body["spec"] for gang in gangs for pod in gang.pods), frozenset())
    try:
        room = await room_on(await nodes_of(provider), provider, needed, holders.add)
    except ClusterError as error:
        room = unknown(error)
    if room.cluster is None:
        return _unchecked(gangs, room.unchecked)
    return {gang.id: diagnosis(gang, _room(gang, room.cluster, holders), "") for gang in gangs}


def _is_set(observed: Observed, roots: Collection[ResourceId]) -> bool:
    return observed.root.id.kind == kinds.PODCLIQUESET.name and observed.root.id in roots


def _unchecked(gangs: Sequence[WaitingGang], why: str) -> Mapping[ResourceId, Diagnosis]:
    return {gang.id: diagnosis(gang, None, why) for gang in gangs}


def _room(gang: WaitingGang, cluster: ClusterRoom, holders: GangHolders) -> GangRoom:
    bodies = [pod.body for pod in gang.pods]
    return gang_room(bodies, gang.level, gang.placed, (gang.id.namespace, gang.id.name), cluster, holders)
