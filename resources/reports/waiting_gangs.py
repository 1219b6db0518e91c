"""Waiting gangs: PodGangs, and LeaderWorkerSets of graphs, whose minimum is not on nodes because the scheduler found no room for it."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from engine.conditions import find
from engine.ids import ResourceId
from engine.observed import Live, Observed
from engine.paths import get
from engine.report.printable import counted
from resources.base import kinds, labels
from resources.base.fields import count, mapping, mappings
from resources.base.labels import SET_OF_POD
from resources.model.pod_facts import PodFacts, facts_of
from resources.model.pod_groups import GROUP, groups_around, level_of
from resources.placement.gang_room import GangRoom
from resources.placement.node_fit import texts
from resources.ports.checks import Diagnosis
from resources.reports.graph_summary import GraphSummary
from resources.reports.set_pods import SetPods
from resources.reports.summary import GangSummary, WorkloadSummary, lives_of

REQUIRED_LEVEL: Final = ("topologyConstraint", "packConstraint", "required")
"""The node label of which all pods of a PodGang, or of a part of it, must have one value."""

REFUSED: Final = ("Unschedulable", "SchedulerError")
"""The reasons of pods for which the scheduler has found no node. For a group it has an error in a cluster without nodes (1.37)."""


SIZE: Final = ("spec", "leaderWorkerTemplate", "size")
"""How many pods a group of a LeaderWorkerSet has. Those of a graph have one group, which is a gang."""


class GangArea(Struct, frozen=True, eq=False):
    """The pods of a waiting gang that must have one value of a node label: all, or those of some cliques."""

    level: str
    pods: tuple[Live, ...]
    """Those that lack a node, at least one."""
    placed: tuple[str, ...]
    """The nodes of the others, one entry for each pod."""


class WaitingGang(Struct, frozen=True, eq=False):
    """A PodGang, or the group of a LeaderWorkerSet, whose minimum is not on nodes."""

    id: ResourceId
    minimum: int
    """The pods without which it cannot run."""
    placed: tuple[str, ...]
    """The nodes of those of the minimum that have one, one entry for each pod."""
    pods: tuple[Live, ...]
    """Those that lack one and that the scheduler may place. It has looked for a node for at least one of them, and found none."""
    areas: tuple[GangArea, ...]
    """What must be together, the widest first."""
    words: str
    """What the scheduler says."""


def waiting_gangs(pods: SetPods) -> Iterator[WaitingGang]:
    """The gangs of a set that wait for room, by name. One of which pods are missing does not: no room would help it."""
    for gang in lives_of(pods.observed, kinds.PODGANG.name):
        placed: dict[str, list[str]] = {}
        lacking: dict[str, list[PodFacts]] = {}
        least = pods.needed(gang)
        serving = {clique: [pod for pod in pods.by_clique.get(clique, ()) if pod.serving] for clique in least}
        if any(len(serving[clique]) < minimum for clique, minimum in least.items()):
            continue
        for clique, minimum in least.items():
            placed[clique] = nodes = [pod.node for pod in serving[clique] if pod.node][:minimum]
            lacking[clique] = [
                pod for pod in serving[clique] if not pod.node and not mapping(pod.live.body.get("spec")).get("schedulingGates")
            ][: minimum - len(nodes)]
        if words := _refusal(list(chain(*lacking.values()))):
            parts = {clique: (tuple(pod.live for pod in lacking[clique]), tuple(placed[clique])) for clique in least}
            areas = (_area(level, [parts[clique] for clique in cliques]) for level, cliques in _required(pods, gang, serving))
            all_pods, all_placed = _joined(parts.values())
            yield WaitingGang(gang.id, sum(least.values()), all_placed, all_pods, tuple(area for area in areas if area.pods), words)


def _area(level: str, parts: Iterable[tuple[tuple[Live, ...], tuple[str, ...]]]) -> GangArea:
    return GangArea(level, *_joined(parts))


def _joined(parts: Iterable[tuple[tuple[Live, ...], tuple[str, ...]]]) -> tuple[tuple[Live, ...], tuple[str, ...]]:
    """The pods without nodes and the nodes of the others, of several cliques."""
    listed = list(parts)
    return tuple(chain(*(pods for pods, _ in listed))), tuple(chain(*(nodes for _, nodes in listed)))


def _required(pods: SetPods, gang: Live, serving: Mapping[str, Sequence[PodFacts]]) -> list[tuple[str, Collection[str]]]:
    """Node labels and the cliques of a gang all of whose pods must have one value of it, the most cliques first.

    Kube-scheduler goes by the groups that the pods carry, as they were created; others by the PodGang.
    """
    if gang.labels.get(labels.SCHEDULER_NAME) in pods.of_whole_gangs:
        spec = mapping(gang.body.get("spec"))
        holders: list[tuple[Mapping[str, Any], Collection[str]]] = [(spec, serving.keys())]
        holders += [(group, texts(group.get("podGroupNames"))) for group in mappings(spec.get("topologyConstraintGroupConfigs"))]
        holders += [(group, (str(group.get("name")),)) for group in mappings(spec.get("podgroups"))]
        asked = [
            (level, serving.keys() & set(cliques)) for holder, cliques in holders if isinstance(level := get(holder, REQUIRED_LEVEL), str)
        ]
    else:
        cliques_by_group: dict[ResourceId, tuple[str, set[str]]] = {}
        for clique, members in serving.items():
            name = next(filter(None, (get(pod.live.body, GROUP) for pod in members)), None)
            for id, group in groups_around(gang.id.namespace, name, pods.body):
                cliques_by_group.setdefault(id, (level_of(group), set()))[1].add(clique)
        asked = [(level, cliques) for level, cliques in cliques_by_group.values() if level]
    return sorted(asked, key=lambda each: -len(each[1]))


def unready_groups(graph: Observed) -> list[Live]:
    """The LeaderWorkerSets of a graph whose group is not ready, by name: their pods, which the graph does not own, may wait for room."""
    return [
        live for live in lives_of(graph, kinds.LEADER_WORKER_SET.name) if not count(mapping(live.body.get("status")).get("readyReplicas"))
    ]


def waiting_groups(groups: Iterable[Live], pods: Iterable[Live]) -> Iterator[WaitingGang]:
    """Those of the LeaderWorkerSets whose pods wait for room. `pods`: among others all of theirs. Where pods are missing, none waits."""
    by_set: dict[ResourceId, list[PodFacts]] = {}
    for pod in map(facts_of, pods):
        by_set.setdefault(kinds.LEADER_WORKER_SET.id(pod.live.id.namespace, pod.live.labels.get(SET_OF_POD, "")), []).append(pod)
    for group in groups:
        size = count(get(group.body, SIZE))
        serving = [pod for pod in by_set.get(group.id, ()) if pod.serving]
        placed = tuple(pod.node for pod in serving if pod.node)
        lacking = [pod for pod in serving if not pod.node and not mapping(pod.live.body.get("spec")).get("schedulingGates")]
        if len(serving) >= size and (words := _refusal(lacking)):
            yield WaitingGang(group.id, size, placed, tuple(pod.live for pod in lacking), (), words)


def _refusal(pods: Sequence[PodFacts]) -> str:
    """Why the scheduler found no node for the first of these pods of which it says so; empty if it says so of none."""
    statuses = (mapping(pod.live.body.get("status")) for pod in pods)
    conditions = (find(status.get("conditions") or (), "PodScheduled") or {} for status in statuses)
    refused = (each for each in conditions if each.get("status") == "False" and each.get("reason") in REFUSED)
    return next((str(each.get("message") or "no node suits it") for each in refused), "")


def diagnosis(gang: WaitingGang, room: GangRoom | None, unchecked: str) -> Diagnosis:
    """What a gang waits for: how much of its minimum has room, what is missing, what the scheduler says, and which gangs have the room.

    `room`: None if it is not known. `unchecked` says why, or what of it is not known.
    """
    counts = f"{len(gang.placed)} of its minimum of {counted(gang.minimum, 'pod')} {_are_on_nodes(gang)}"
    says = f"the scheduler says: {gang.words}"
    pods = tuple(pod.id for pod in gang.pods)
    if room is None:
        text = f"{gang.id.kind} {gang.id.name}: {counts}"
        return Diagnosis(gang.id, text, f"{says} (room was not checked: {unchecked})", pods=pods)
    says += f" ({unchecked})" if unchecked else ""
    text = f"{gang.id.kind} {gang.id.name}: {counts}, {_fitting(gang, room)}"
    if not room.why:
        return Diagnosis(gang.id, text, f"the scheduler has not placed {'it' if room.lacking == 1 else 'them'} yet; {says}", pods=pods)
    missing, _, advice = room.why.rpartition("; ")
    held = f"; {room.holders}" if room.holders else ""
    return Diagnosis(gang.id, text, f"{missing}{held}; {says}", advice, pods=pods)


def _are_on_nodes(gang: WaitingGang) -> str:
    return "is on a node" if 1 in (len(gang.placed), gang.minimum) else "are on nodes"


def _fitting(gang: WaitingGang, room: GangRoom) -> str:
    """How many of the pods that lack a node have room."""
    if room.lacking == 1:
        return f"{'it' if gang.minimum == 1 else 'the other one'} has {'room' if room.fit else 'no room'}"
    return f"{room.fit} of the other {room.lacking} {'has' if room.fit == 1 else 'have'} room"


def with_room(workload: WorkloadSummary, waiting: Mapping[ResourceId, Diagnosis]) -> WorkloadSummary:
    """The summary of a set, with what its gangs wait for. `waiting`: PodGang -> its `diagnosis`."""
    namespace = workload.id.namespace
    gangs = (_with_diagnosis(gang, waiting.get(kinds.PODGANG.id(namespace, gang.name))) for gang in workload.gangs)
    return replace(workload, gangs=tuple(gangs)) if waiting else workload


def _with_diagnosis(gang: GangSummary, diagnosis: Diagnosis | None) -> GangSummary:
    return replace(gang, waiting=waiting_text(diagnosis), advice=diagnosis.advice) if diagnosis is not None else gang


def waiting_text(diagnosis: Diagnosis) -> str:
    """What a gang waits for, without its name."""
    counts = diagnosis.observation.removeprefix(f"{diagnosis.about.kind} {diagnosis.about.name}: ")
    return f"{counts}; {diagnosis.cause}"


def graph_with_room(summary: GraphSummary, graph: Observed, waiting: Mapping[ResourceId, Diagnosis]) -> GraphSummary:
    """The summary of a graph, with what the groups of its LeaderWorkerSets wait for. `waiting`: LeaderWorkerSet -> its `diagnosis`."""
    return replace(summary, waiting=tuple(each for id, each in waiting.items() if graph.find(id) is not None))
