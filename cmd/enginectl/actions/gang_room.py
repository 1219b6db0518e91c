"""Gang room: says of each gang that waits for room how much of it has room and what is missing, for `engine status` and `engine why`."""

from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import islice
from typing import Any, Final

from engine.errors import ClusterError
from engine.ids import ResourceId
from engine.observed import Observed
from engine.runtime.passes import Pass
from engine.runtime.provider import Provider, ScanningProvider
from enginectl.actions.room import CONFINED, ON_NODES, TOO_MANY, unknown
from resources.base import kinds
from resources.placement.cluster_room import ClusterRoom, RoomNode
from resources.placement.gang_room import GangHolders, GangRoom, gang_room
from resources.placement.usage_totals import MAX_PODS, UsageTotals, label_keys_of, room_node
from resources.ports.checks import Diagnosis
from resources.ports.configuration import Configuration
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
    try:
        cluster, holders = await _cluster(gangs, provider)
    except ClusterError as error:
        return _unchecked(gangs, unknown(error).unchecked)
    if cluster is None:
        return _unchecked(gangs, TOO_MANY)
    return {gang.id: diagnosis(gang, _room(gang, cluster, holders), "") for gang in gangs}


def _is_set(observed: Observed, roots: Collection[ResourceId]) -> bool:
    return observed.root.id.kind == kinds.PODCLIQUESET.name and observed.root.id in roots


def _unchecked(gangs: Sequence[WaitingGang], why: str) -> Mapping[ResourceId, Diagnosis]:
    return {gang.id: diagnosis(gang, None, why) for gang in gangs}


def _room(gang: WaitingGang, cluster: ClusterRoom, holders: GangHolders) -> GangRoom:
    bodies = [pod.body for pod in gang.pods]
    return gang_room(bodies, gang.level, gang.placed, (gang.id.namespace, gang.id.name), cluster, holders)


async def _cluster(gangs: Sequence[WaitingGang], provider: ScanningProvider) -> tuple[ClusterRoom | None, GangHolders]:
    """The nodes with what pods use of them, and the gangs of these pods. No nodes: there are too many pods. Raises `ClusterError`."""
    nodes: list[RoomNode] = []
    holders = GangHolders()
    totals = UsageTotals(frozenset(label_keys_of(pod.body["spec"] for gang in gangs for pod in gang.pods)))

    def add_pod(body: Mapping[str, Any]) -> bool:
        totals.add(body)
        holders.add(body)
        return totals.count <= MAX_PODS

    await provider.scan(kinds.NODE, _adding(nodes))
    await provider.scan(kinds.POD, add_pod, fields=ON_NODES)
    return (totals.room(nodes) if totals.count <= MAX_PODS else None), holders


def _adding(nodes: list[RoomNode]) -> Callable[[Mapping[str, Any]], bool]:
    """Adds each node that is read to the list."""

    def add(body: Mapping[str, Any]) -> bool:
        nodes.append(room_node(body))
        return True

    return add
