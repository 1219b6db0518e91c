"""Room: a forecast in a cluster whose nodes are known, or why they are not."""

from collections.abc import Iterable, Iterator, Mapping

from msgspec.structs import replace

from engine.forecast.cluster_model import Assumption
from engine.forecast.forecast import Forecast
from engine.ids import ResourceId
from engine.plan import Wait
from resources.domains.capacity import NodeCapacity
from resources.forecast.pod_room import PodRoom
from resources.forecast.room_replay import replayed
from resources.placement.cluster_room import FabricSlots
from resources.ports.fabric import Fabric
from resources.preview.facts import Facts, FirstPass
from resources.preview.forecasting import model_for, restricted, simulated


def in_room(first: FirstPass, forecast: Forecast, facts: Facts) -> Forecast:
    """A forecast that was made for a cluster with room for every pod, in the cluster with these nodes.

    It is made again only if pods have no room, or wait for some. If that cannot be finished, it stays as it is, and says which have none.
    """
    room, fabrics = facts.room, first.configuration.fabrics
    if room.cluster is None:
        assumptions = frozenset(room.capacity if each is Assumption.CAPACITY else each for each in forecast.assumptions)
        return replace(forecast, assumptions=assumptions, unchecked=room.unchecked)
    concerned, cluster = restricted(first), replace(room.cluster, slots=dict(slots_in(fabrics, facts.capacities)))
    end = replayed(forecast, concerned.world, cluster, fabrics)
    assumptions = forecast.assumptions - {Assumption.CAPACITY} | {Assumption.ROOM}
    rough = replace(forecast, assumptions=assumptions, shortages=together(end.shortages(), forecast.shortages), doubts=end.doubts())
    if not rough.shortages and Assumption.FAILURES_STAY not in forecast.assumptions:
        return rough
    nodes = PodRoom(cluster)
    exact = simulated(concerned, model_for(first, nodes))
    if not exact.is_finished and rough.shortages:
        return rough
    shortages, doubts = together(nodes.shortages(), exact.shortages), nodes.doubts()
    return replace(exact, assumptions=exact.assumptions | {Assumption.ROOM}, shortages=shortages, doubts=doubts)


def slots_in(fabrics: Iterable[Fabric], capacities: Mapping[str, NodeCapacity]) -> Iterator[tuple[str, FabricSlots]]:
    """The kind of domains of each fabric whose nodes are known, and these nodes."""
    for fabric in fabrics:
        if (capacity := capacities.get(fabric.kind.key)) is not None:
            yield fabric.kind.name, FabricSlots(capacity.nodes, capacity.taken)


def together(*shortages: Mapping[ResourceId, tuple[Wait, ...]]) -> dict[ResourceId, tuple[Wait, ...]]:
    """Root -> what it lacks by any of these."""
    roots = dict.fromkeys(root for each in shortages for root in each)
    return {root: tuple(wait for each in shortages for wait in each.get(root, ())) for root in roots}
