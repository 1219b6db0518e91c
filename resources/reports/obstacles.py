"""Obstacles: why an object does not run although it may be as specified: what it waits for, since when, and what to do."""

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from engine.ids import ResourceId
from engine.observed import Observed, World
from engine.plan import Plan
from engine.reason import Reason
from resources.base import kinds, labels
from resources.base.fields import mapping
from resources.model.gang_scheduling import whole_gang_schedulers
from resources.model.pod_facts import PodFacts
from resources.ports.configuration import Configuration
from resources.reports.obstacle import RunObstacle, completing, explaining
from resources.reports.pod_obstacles import pod_obstacle
from resources.reports.set_pods import SetPods, minimums
from resources.reports.summary import WaitSince, unchanged_since, waits_of
from resources.status.podcliqueset import last_updated_replica
from resources.status.update import is_in_progress

MEMBERS: Mapping[str, str] = {
    kinds.PODCLIQUE.name: labels.PODCLIQUE,
    kinds.SCALING_GROUP.name: labels.SCALING_GROUP,
    kinds.PODGANG.name: labels.PODGANG,
}
"""Kind of object that consists of pods -> the label of these pods, and of its PodCliques, that has its name."""
SPARED: Final = "rolling update blocked: ready pods equal minAvailable"
SPARE_ADVICE: Final = "have more replicas than minAvailable, so that the update can delete one; or delete a pod yourself"


class Standstill(Struct, frozen=True):
    """What keeps one object from running."""

    obstacles: tuple[RunObstacle, ...] = ()
    waits: tuple[WaitSince, ...] = ()
    """What is deferred or pending for the objects that it consists of, as the summary of its set has it."""

    @property
    def runs(self) -> bool:
        """Whether it has no obstacle."""
        return not (self.obstacles or self.waits)


def standstill(pods: SetPods, plan: Plan, id: ResourceId, now: datetime) -> Standstill:
    """What keeps an object of a set, or the set itself, from running. `plan` is the plan of the next pass for the set."""
    observed = pods.observed
    if id.kind == kinds.POD.name:
        pod = pods.by_name.get(id.name)
        return Standstill(tuple(_present(pods, [pod] if pod else [], now)))
    members, waits = _members(pods, observed, id), _waits(pods, observed, plan, id, now)
    own, updates = _gang_obstacles(pods, observed, id), _update_obstacles(pods, observed, waits, members, now)
    obstacles = tuple(dict.fromkeys((*own, *_present(pods, members, now), *updates)))
    return Standstill(obstacles, tuple(wait for wait in waits if wait.id != id))


def pods_of(observed: Observed, world: World, configuration: Configuration) -> SetPods:
    """The pods of a set. Of kinds of which not all objects are observed, none is called missing: without fabrics, so are claims."""
    unlisted = {*world.incomplete, *(() if configuration.fabrics else (kinds.RESOURCE_CLAIM.name,))}
    return SetPods.of(observed, unlisted, whole_gang_schedulers(configuration))


def advised(waits: Iterable[WaitSince], pods: SetPods, now: datetime) -> tuple[WaitSince, ...]:
    """The waits with what to do about each PodClique that waits: about the pod that its text names."""
    return tuple(
        replace(wait, advice=_advice(pods, wait.id.name, now)) if wait.id.kind == kinds.PODCLIQUE.name and not wait.advice else wait
        for wait in waits
    )


def _advice(pods: SetPods, podclique: str, now: datetime) -> str:
    """What to do about the first pod of a PodClique, by name, whose status says why it is not ready; empty if there is nothing to do."""
    pod = next((pod for pod in pods.by_clique.get(podclique, ()) if not pod.ready and pod.reason), None)
    obstacle = pod_obstacle(pods, pod, now) if pod else None
    return obstacle.advice if obstacle else ""


def _present(pods: SetPods, members: Iterable[PodFacts], now: datetime) -> Iterator[RunObstacle]:
    return (obstacle for pod in members if (obstacle := pod_obstacle(pods, pod, now)))


def _members(pods: SetPods, observed: Observed, id: ResourceId) -> list[PodFacts]:
    """The pods that an object consists of, sorted by name."""
    label = MEMBERS.get(id.kind)
    if id == observed.root.id:
        return list(pods.facts)
    return [pod for pod in pods.facts if pod.live.labels.get(label) == id.name] if label else []


def _waits(pods: SetPods, observed: Observed, plan: Plan, id: ResourceId, now: datetime) -> tuple[WaitSince, ...]:
    """What is deferred or pending for the objects that an object consists of; of a set, everything."""
    waits = (wait for wait in waits_of(observed, plan) if id == observed.root.id or _belongs(observed, wait, id))
    return advised(waits, pods, now)


def _belongs(observed: Observed, wait: WaitSince, id: ResourceId) -> bool:
    """Whether a wait is about the object, or about a PodClique or a pod of it.

    A pod that does not exist is known by its name, which begins with that of its PodClique.
    """
    label = MEMBERS.get(id.kind)
    if label is None or wait.id == id:
        return wait.id == id
    live = observed.find(wait.id)
    if live is not None:
        return live.labels.get(label) == id.name
    podclique = observed.find(kinds.PODCLIQUE.id(id.namespace, wait.id.name.rpartition("-")[0])) if wait.id.kind == kinds.POD.name else None
    return podclique is not None and (podclique.id == id or podclique.labels.get(label) == id.name)


def _gang_obstacles(pods: SetPods, observed: Observed, id: ResourceId) -> Iterator[RunObstacle]:
    """If the object is a PodGang: its pod groups with fewer scheduled pods than their minimum."""
    live = observed.find(id) if id.kind == kinds.PODGANG.name else None
    if live is None:
        return
    needed, least = pods.needed(live), minimums(live)
    for name, (scheduled, minimum) in pods.lacking(live).items():
        text = f"pod group {name}: {scheduled} of at least {minimum} pods scheduled, {len(pods.by_clique.get(name, ()))} exist"
        # If all that its scheduler needs have nodes, more pods are what is missing.
        advice = completing(live, least if scheduled >= needed[name] else needed) or explaining("pclq", name, id.namespace)
        yield RunObstacle(id, "BelowMinimum", text, unchanged_since(live), advice)


def _update_obstacles(
    pods: SetPods, observed: Observed, waits: Iterable[WaitSince], members: Iterable[PodFacts], now: datetime
) -> Iterator[RunObstacle]:
    """What an update waits for: units that minAvailable does not allow to delete, or pods of the replica that is being updated first."""
    spared = (wait for wait in waits if wait.reason is Reason.MIN_AVAILABLE)
    yield from (RunObstacle(wait.id, "MinAvailable", SPARED, wait.since, SPARE_ADVICE) for wait in spared)
    progress = mapping(mapping(observed.root.body.get("status")).get("updateProgress"))
    current = last_updated_replica(observed.root)
    if not is_in_progress(progress) or current is None or not any(wait.id.kind == kinds.PODCLIQUE.name for wait in waits):
        return
    shown = {pod.name for pod in members}
    for pod in pods.facts:
        if pod.live.labels.get(labels.REPLICA_INDEX) == str(current) and pod.name not in shown and (why := pod_obstacle(pods, pod, now)):
            text = f"the update is in replica {current} first, where this pod is not ready: {why.text}"
            yield RunObstacle(pod.live.id, "UpdateHeld", text, why.since, why.advice)
