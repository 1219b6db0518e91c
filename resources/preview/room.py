"""Room: a forecast in a cluster whose nodes are known, or why they are not."""

from collections.abc import Mapping

from msgspec.structs import replace

from engine.forecast.cluster_model import Assumption
from engine.forecast.forecast import Forecast
from engine.ids import ResourceId
from engine.plan import Wait
from resources.forecast.pod_room import PodRoom
from resources.forecast.room_facts import RoomFacts
from resources.forecast.room_replay import replayed
from resources.preview.facts import FirstPass
from resources.preview.forecasting import concerned, conditions_of, simulated


def in_room(first: FirstPass, forecast: Forecast, room: RoomFacts, *, passes: int | None = None) -> Forecast:
    """A forecast that was made for a cluster with room for every pod, in a cluster with these nodes. `passes`: see `Conditions`.

    It is made again only if pods have no room, or wait for some. If that cannot be finished, it stays as it is, and says which have none.
    """
    if room.cluster is None:
        assumptions = frozenset(room.capacity if each is Assumption.CAPACITY else each for each in forecast.assumptions)
        return replace(forecast, assumptions=assumptions, unchecked=room.unchecked)
    world, fabrics = concerned(first), first.configuration.fabrics
    end = replayed(forecast, world, room.cluster, fabrics)
    assumptions = forecast.assumptions - {Assumption.CAPACITY} | {Assumption.ROOM}
    rough = replace(forecast, assumptions=assumptions, shortages=together(end.shortages(), forecast.shortages), doubts=end.doubts())
    if not rough.shortages and Assumption.FAILURES_STAY not in forecast.assumptions:
        return rough
    nodes = PodRoom(room.cluster)
    conditions = conditions_of(first, passes)
    exact = simulated(world, first.intent, conditions, conditions.model(nodes))
    if not exact.is_finished and rough.shortages:
        return rough
    shortages, doubts = together(nodes.shortages(), exact.shortages), nodes.doubts()
    return replace(exact, assumptions=exact.assumptions | {Assumption.ROOM}, shortages=shortages, doubts=doubts)


def together(*shortages: Mapping[ResourceId, tuple[Wait, ...]]) -> dict[ResourceId, tuple[Wait, ...]]:
    """Root -> what it lacks by any of these."""
    roots = dict.fromkeys(root for each in shortages for root in each)
    return {root: tuple(wait for each in shortages for wait in each.get(root, ())) for root in roots}
