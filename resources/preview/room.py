"""Room: a forecast in a cluster whose nodes are known, or why they are not."""

from collections.abc import Iterable, Mapping
from typing import Final

from msgspec.structs import replace

from engine.forecast.cluster_model import Assumption
from engine.forecast.forecast import Forecast
from engine.forecast.simulation import existing
from engine.health import PATIENCE
from engine.ids import ResourceId
from engine.observed import Live, World, live
from engine.operation import Create, Delete
from engine.plan import Wait
from resources.base import kinds
from resources.cluster_model.component_pods import needs_more, parts_of, steps_between
from resources.cluster_model.pod_room import PodRoom
from resources.placement.cluster_room import ClusterRoom
from resources.ports.fabric import Fabric
from resources.preview.domain_places import domain_templates, places_of, slots_in
from resources.preview.facts import Facts, FirstPass
from resources.preview.forecasting import model_for, restricted, simulated

FOR_A_TIME: Final = "there is no room for all pods at a time: some are created before others go, and may keep these from going"


def in_room(first: FirstPass, forecast: Forecast, facts: Facts) -> Forecast:
    """A forecast that was made for a cluster with room for every pod, in the cluster with these nodes.

    It is made again only if pods have no room, or wait for some. If that cannot be finished, it stays as it is, and says which have none.
    """
    room, fabrics = facts.room, first.configuration.fabrics
    if room.cluster is None:
        assumptions = frozenset(room.capacity if each is Assumption.CAPACITY else each for each in forecast.assumptions)
        return replace(forecast, assumptions=assumptions, unchecked=room.unchecked)
    concerned, cluster = restricted(first), _completed(room.cluster, first, facts)
    end, is_short_for_a_time = replayed(forecast, concerned.world, cluster, fabrics)
    assumptions = forecast.assumptions - {Assumption.CAPACITY} | {Assumption.ROOM}
    at_end = end.shortages()
    rough = replace(forecast, assumptions=assumptions, shortages=together(at_end, forecast.shortages), doubts=end.doubts())
    if not rough.shortages and not is_short_for_a_time and Assumption.FAILURES_STAY not in forecast.assumptions:
        return rough
    nodes = PodRoom(cluster)
    exact = simulated(concerned, model_for(first, nodes))
    if not exact.is_finished and rough.shortages:
        return rough
    if not exact.is_finished and is_short_for_a_time:
        return replace(rough, doubts=(*rough.doubts, FOR_A_TIME))
    lacking = {wait.id for waits in at_end.values() for wait in waits}
    shortages, doubts = together(nodes.shortages(lacking), exact.shortages), nodes.doubts()
    late = {root: waits for root, waits in nodes.late().items() if exact.longest_pause(root) > PATIENCE}
    return replace(exact, assumptions=exact.assumptions | {Assumption.ROOM}, shortages=shortages, late=late, doubts=doubts)


def _completed(cluster: ClusterRoom, first: FirstPass, facts: Facts) -> ClusterRoom:
    """The nodes with what the other facts say of them and of new pods."""
    return replace(cluster, slots=dict(slots_in(first.configuration.fabrics, facts.capacities)), defaults=facts.defaults or {})


def together(*shortages: Mapping[ResourceId, tuple[Wait, ...]]) -> dict[ResourceId, tuple[Wait, ...]]:
    """Root -> what it lacks by any of these."""
    roots = dict.fromkeys(root for each in shortages for root in each)
    return {root: tuple(wait for each in shortages for wait in each.get(root, ())) for root in roots}


def replayed(forecast: Forecast, world: World, room: ClusterRoom, fabrics: Iterable[Fabric]) -> tuple[PodRoom, bool]:
    """The nodes at the end of a forecast for this world: with the pods that exist then, of which those without room wait.

    Then whether pods have no room when they are created, beside those that are still to go: an update may never come to delete these.
    """
    lives = list(existing(world))
    planned: dict[ResourceId, Live | None] = {each.id: None for each in forecast.operations() if isinstance(each, Create)}
    known = (fabric for fabric in fabrics if fabric.kind.name in room.slots)
    templates = domain_templates(planned | {each.id: each for each in lives}, known)
    pods = {each.id: each for each in lives if each.id.kind == kinds.POD.name}
    result = PodRoom(room)
    objects = {each.id: each.body for each in lives}
    objects |= {each.id: each.manifest for each in forecast.operations() if isinstance(each, Create)}
    result.begin(objects.get, ((each, places_of(each, templates)) for each in pods.values()))
    created: dict[ResourceId, str] = {}
    is_short = False
    for step in forecast.passes:
        operations = [(root, each) for root, listed in step.operations.items() for each in listed if each.id.kind == kinds.POD.name]
        gone = [each.id for _, each in operations if isinstance(each, Delete)]
        result.remove([created.pop(id) if id in created else pods[id].uid for id in gone if id in created or id in pods])
        for root, operation in operations:
            if isinstance(operation, Create):
                uid = created[operation.id] = f"new {operation.id.namespace}/{operation.id.name}"
                pod = live({**operation.manifest, "metadata": {**operation.manifest["metadata"], "uid": uid}})
                result.ask(pod, root, places_of(pod, templates))
        is_short = is_short or result.is_short()
    roots = {operation.id: root for step in forecast.passes for root, listed in step.operations.items() for operation in listed}
    before = {each.id: each for each in lives}
    more = [(each, parts_of(pods, steps_between(before.get(each.id), each))) for each, pods in needs_more(lives, forecast.objects or {})]
    for number in range(max((len(parts) for _, parts in more), default=0)):
        for component, parts in more:
            part, earlier = parts[number] if number < len(parts) else ((), 0)
            result.let_go(component.id, earlier)
            for pod in part:
                result.ask(pod, roots.get(component.id, component.id), places_of(pod, templates), component.id)
        is_short = is_short or (bool(room.leaving) and result.is_short())
    result.admitted()
    return result, is_short
