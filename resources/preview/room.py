"""Room: a forecast in a cluster whose nodes are known, or why they are not."""

from msgspec.structs import replace

from engine.forecast.cluster_model import Assumption
from engine.forecast.forecast import Forecast
from resources.forecast.cluster import ModelledCluster
from resources.forecast.pod_room import PodRoom
from resources.forecast.room_facts import RoomFacts
from resources.forecast.room_replay import replayed
from resources.preview.facts import FirstPass
from resources.preview.forecasting import Conditions, concerned, simulated


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
    rough = replace(forecast, assumptions=assumptions, shortages=end.shortages(), doubts=end.doubts())
    if not rough.shortages and Assumption.FAILURES_STAY not in forecast.assumptions:
        return rough
    nodes = PodRoom(room.cluster)
    conditions = Conditions(first.now, first.configuration, first.limits, passes)
    exact = simulated(world, first.intent, conditions, ModelledCluster(fabrics, nodes))
    if not exact.is_finished and rough.shortages:
        return rough
    return replace(exact, assumptions=exact.assumptions | {Assumption.ROOM}, shortages=nodes.shortages(), doubts=nodes.doubts())
