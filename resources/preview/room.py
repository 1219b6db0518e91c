"""Room: a forecast in a cluster whose nodes are known, or why they are not."""

from collections.abc import Iterable, Mapping

from msgspec.structs import replace

from engine.forecast.cluster_model import Assumption
from engine.forecast.forecast import Forecast
from engine.forecast.simulation import existing
from engine.ids import ResourceId
from engine.observed import Live, World, live
from engine.operation import Create, Delete
from engine.plan import Wait
from resources.base import kinds
from resources.cluster_model.pod_room import PodRoom
from resources.placement.cluster_room import ClusterRoom
from resources.ports.fabric import Fabric
from resources.preview.domain_places import domain_templates, places_of, slots_in
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


def together(*shortages: Mapping[ResourceId, tuple[Wait, ...]]) -> dict[ResourceId, tuple[Wait, ...]]:
    """Root -> what it lacks by any of these."""
    roots = dict.fromkeys(root for each in shortages for root in each)
    return {root: tuple(wait for each in shortages for wait in each.get(root, ())) for root in roots}


def replayed(forecast: Forecast, world: World, room: ClusterRoom, fabrics: Iterable[Fabric]) -> PodRoom:
    """The nodes at the end of a forecast for this world: with the pods that exist then, of which those without room wait."""
    lives = list(existing(world))
    planned: dict[ResourceId, Live | None] = {each.id: None for each in forecast.operations() if isinstance(each, Create)}
    known = (fabric for fabric in fabrics if fabric.kind.name in room.slots)
    templates = domain_templates(planned | {each.id: each for each in lives}, known)
    pods = {each.id: each for each in lives if each.id.kind == kinds.POD.name}
    result = PodRoom(room)
    objects = {each.id: each.body for each in lives}
    objects |= {each.id: each.manifest for each in forecast.operations() if isinstance(each, Create)}
    result.begin(objects.get, ((each, places_of(each, templates)) for each in pods.values()))
    created: dict[ResourceId, tuple[ResourceId, Create]] = {}
    gone: list[str] = []
    for root, operation in ((root, each) for step in forecast.passes for root, listed in step.operations.items() for each in listed):
        if operation.id.kind != kinds.POD.name:
            continue
        if isinstance(operation, Create):
            created[operation.id] = root, operation
        elif isinstance(operation, Delete) and created.pop(operation.id, None) is None and operation.id in pods:
            gone.append(pods[operation.id].uid)
    result.remove(gone)
    for id, (root, operation) in created.items():
        pod = live({**operation.manifest, "metadata": {**operation.manifest["metadata"], "uid": f"new {id.namespace}/{id.name}"}})
        result.ask(pod, root, places_of(pod, templates))
    result.admitted()
    return result
