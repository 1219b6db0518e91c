"""Pods: how a forecast expects a pod to go on, and what happens to the pods of each workload."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from msgspec import Struct, field

from engine.conditions import find
from engine.duration import parse
from engine.forecast.cluster_model import Effects, Level, worst_first
from engine.forecast.store import SYNTHETIC, ForecastStore
from engine.ids import ResourceId
from engine.observed import Live, moment
from engine.operation import Creation, Delete, Operation, Patch, Replace
from engine.paths import merge_patch
from engine.quantity import amount
from resources.base import kinds, labels, names
from resources.base.fields import count, mapping, mappings
from resources.model.pod_facts import PodFacts, facts_of

NODE: Final = "a-node"
"""The node of pods that a forecast schedules. It is never shown."""
ENDED: Final = ("Succeeded", "Failed")
CONDITIONS: Final = ("PodScheduled", "Initialized", "ContainersReady", "Ready")
UNSCHEDULABLE: Final = "Unschedulable"
RETRIED_WITHIN: Final = timedelta(seconds=15)
"""The time within which the scheduler looks again at a pod that it has refused: its longest pause is 10 seconds."""
FIRST_STATUS: Final = timedelta(seconds=1)
"""The time within which a kubelet that has accepted a pod says for the first time that it is not ready."""
LOADED_WITHIN: Final = timedelta(hours=1)
"""The time within which a pod that was never ready is expected to become so."""
CONTROLLED: Final = frozenset({kinds.DEPLOYMENT.key, kinds.LEADER_WORKER_SET.key})
"""The kinds whose controllers create pods of their own and report how many are ready."""
TEMPLATES: Final = ("template", "leaderWorkerTemplate")
"""The fields of their specs by which their controllers replace all pods."""
NOT_CREATED: Final = "ReplicaSetCreateError"
"""The reason with which a Deployment says that the API server refuses what creates its pods."""
LATE: Final = "ProgressDeadlineExceeded"
"""The reason with which a Deployment says that no pod has become ready for long. It goes on nevertheless."""


class PodSelector(Struct, frozen=True):
    """Selects the pods of a component that exist."""

    namespace: str
    labels: tuple[tuple[str, str], ...]
    most: int | None = None
    """How many of these leave their nodes at once; None: all. Which ones do is the controller's choice."""
    component: ResourceId | None = None
    """What lets the others go later, as new pods become ready; None: they stay."""

    def selects(self, namespace: str, labels: Mapping[str, Any]) -> bool:
        """Whether it selects a pod with these labels."""
        return namespace == self.namespace and all(labels.get(key) == value for key, value in self.labels)


def has_time_to_end(live: Live) -> bool:
    """Whether an object is a pod that stays for a while when it is deleted: it is on a node, has not ended, and has a grace period."""
    if live.id.kind != kinds.POD.name:
        return False
    facts = facts_of(live)
    return bool(facts.node) and facts.phase not in ENDED and mapping(live.body.get("spec")).get("terminationGracePeriodSeconds") != 0


def is_synthetic(live: Live) -> bool:
    """Whether the object was created in the forecast."""
    return live.uid.startswith(SYNTHETIC)


def stays_as_it_is(facts: PodFacts, now: datetime, root: Live | None = None) -> bool:
    """Whether a pod that is not ready stays so: it existed before the forecast and something is wrong with it. `root`: its set."""
    if is_synthetic(facts.live):
        return False
    return facts.hindered or is_refused(facts) or (facts.unready and not _is_loading(facts, now, root))


def _is_loading(facts: PodFacts, now: datetime, root: Live | None) -> bool:
    """Whether a pod was never ready and has not had long to become so: a model takes its time to load.

    Not where gangs that are not ready are recycled sooner: what that does is told.
    """
    if root is not None and _termination_delay(root) < LOADED_WITHIN:
        return False
    status = mapping(facts.live.body.get("status"))
    ready = find(mappings(status.get("conditions")), "Ready") or {}
    try:
        began, unready_since = moment(status["startTime"]), moment(ready["lastTransitionTime"])
        return unready_since - began <= FIRST_STATUS and now - began < LOADED_WITHIN
    except (KeyError, TypeError, ValueError):  # A kubelet writes both; a record may have been written by hand.
        return False


def _termination_delay(root: Live) -> timedelta:
    """The time after which a set recycles gangs that are not ready; as long as can be if it names none, for the default is hours."""
    try:
        return parse(str(mapping(mapping(root.body.get("spec")).get("template")).get("terminationDelay")))
    except ValueError:
        return timedelta.max


def is_refused(facts: PodFacts) -> bool:
    """Whether the scheduler says that it cannot place a pod."""
    scheduled = _scheduled(facts.live)
    return not facts.node and scheduled.get("status") == "False" and scheduled.get("reason") == UNSCHEDULABLE


def is_refused_just_now(facts: PodFacts, now: datetime) -> bool:
    """Whether the scheduler has said so so recently that it may not know yet what has been freed since."""
    try:
        return is_refused(facts) and now - moment(_scheduled(facts.live)["lastTransitionTime"]) < RETRIED_WITHIN
    except (KeyError, TypeError, ValueError):  # A scheduler writes it; a record may have been written by hand.
        return False


def _scheduled(pod: Live) -> Mapping[str, Any]:
    return find(mappings(mapping(pod.body.get("status")).get("conditions")), "PodScheduled") or {}


def started(node: str, moment: str) -> dict[str, Any]:
    """The patch of a pod that is scheduled and becomes ready."""
    conditions = [{"type": type, "status": "True", "lastTransitionTime": moment} for type in CONDITIONS]
    return {"spec": {"nodeName": node or NODE}, "status": {"phase": "Running", "conditions": conditions, "startTime": moment}}


def is_component(id: ResourceId) -> bool:
    """Whether a controller of the cluster creates the pods of this object."""
    return not CONTROLLED.isdisjoint(id.keys())


def is_halted(live: Live) -> bool:
    """Whether the controller of a component has reported, of this generation, that what it makes is refused: it does not go on."""
    progressing, failure = _reported(live, "Progressing"), _reported(live, "ReplicaFailure")
    return failure.get("status") == "True" or (progressing.get("status") == "False" and progressing.get("reason") == NOT_CREATED)


def is_late(live: Live) -> bool:
    """Whether the controller of a component has reported, of this generation, that no pod has become ready for long.

    A LeaderWorkerSet that is available says as well that it does not progress.
    """
    progressing = _reported(live, "Progressing")
    return progressing.get("status") == "False" and progressing.get("reason") == LATE


def _reported(live: Live, type: str) -> Mapping[str, Any]:
    status = mapping(live.body.get("status"))
    is_observed = status.get("observedGeneration", live.generation) == live.generation
    return (is_observed and find(list(mappings(status.get("conditions"))), type)) or {}


def is_rolled_out(live: Live) -> bool:
    """Whether all pods of an object are updated and ready, or it is paused."""
    return rolled_out(live, "") is None


def rolled_out(live: Live, moment: str, *, keeps_pods: bool = False) -> dict[str, Any] | None:
    """The patch of an object whose pods are all updated and ready; None if it says so already, or if it is paused.

    `keeps_pods`: none of its pods are replaced. Such an object is scaled while it is paused.
    """
    spec, old = mapping(live.body.get("spec")), mapping(live.body.get("status"))
    replicas = spec.get("replicas", 1)
    if not isinstance(replicas, int) or (spec.get("paused") is True and not keeps_pods):
        return None
    names = ("replicas", "updatedReplicas", "readyReplicas")
    counts = dict.fromkeys((*names, "availableReplicas") if live.id.kind == kinds.DEPLOYMENT.name else names, replicas)
    available = find(list(mappings(old.get("conditions"))), "Available") or {}
    is_reported = all((old.get(name) or 0) == count for name, count in counts.items())
    if is_reported and available.get("status") == "True" and old.get("observedGeneration") == live.generation:
        return None
    condition = {"type": "Available", "status": "True", "lastTransitionTime": moment}
    return {"status": {**counts, "observedGeneration": live.generation, "conditions": [condition]}}


Slot = tuple[str, str, str]
"""Namespace and name of a PodClique, and the index of a pod in it: what a pod is replaced by has the same.

Of the pods of a component: its namespace, its kind and name, and the field of their template.
"""


class _Members(Struct):
    """The ready pods of a clique, or the available replicas of a scaling group."""

    ready: set[ResourceId | str] = field(default_factory=set)
    before: int = 0
    lowest: int = 0

    def set(self, member: ResourceId | str, *, is_ready: bool) -> None:
        """Note whether a member is ready."""
        (self.ready.add if is_ready else self.ready.discard)(member)
        self.lowest = min(self.lowest, len(self.ready))

    def begin(self) -> None:
        """Count from here on."""
        self.before = self.lowest = len(self.ready)


class _Place(Struct, frozen=True):
    """The replica of a scaling group that a clique is in."""

    group: ResourceId
    replica: str


class _Touched(Struct):
    """What operations do to the pods and domains of one root."""

    deleted: Counter[Slot] = field(default_factory=Counter)
    created: Counter[Slot] = field(default_factory=Counter)
    gpus: dict[Slot, int] = field(default_factory=dict)
    domains_made: Counter[str] = field(default_factory=Counter)
    domains_removed: Counter[str] = field(default_factory=Counter)
    cliques: dict[ResourceId, None] = field(default_factory=dict)

    def of_replica(self, root: ResourceId, index: int) -> "_Touched":
        """The same of the pods and domains of one replica of a set."""

        def is_in(id: ResourceId) -> bool:
            return names.replica_of(root, id) == index

        def pods(slots: Counter[Slot]) -> Counter[Slot]:
            return Counter({slot: count for slot, count in slots.items() if is_in(kinds.PODCLIQUE.id(slot[0], slot[1]))})

        def domains(made: Counter[str]) -> Counter[str]:
            return Counter({name: count for name, count in made.items() if is_in(root._replace(name=name))})

        return _Touched(
            pods(self.deleted),
            pods(self.created),
            self.gpus,
            domains(self.domains_made),
            domains(self.domains_removed),
            {clique: None for clique in self.cliques if is_in(clique)},
        )


class WorkloadLog:
    """What happens to pods and domains in one forecast."""

    def __init__(self, domains: frozenset[str]) -> None:
        """`domains`: the keys of the kinds of fabric domains."""
        self._domains = domains
        self._members: dict[ResourceId, _Members] = {}
        """PodCliques and scaling groups."""
        self._place: dict[ResourceId, _Place] = {}
        """The place of each clique that is in a scaling group."""
        self._cliques_of: dict[_Place, set[ResourceId]] = {}
        self._clique_of: dict[ResourceId, ResourceId] = {}
        self._minimum: dict[ResourceId, int] = {}
        self._touched: dict[ResourceId, _Touched] = {}
        self._gone: set[ResourceId] = set()
        """Cliques and scaling groups that do not exist any more."""
        self.deleted: set[str] = set()
        """The uids of the objects that were deleted in the forecast."""

    def begin(self, lives: Iterable[Live]) -> None:
        """Take note of the objects as they are before the first operation."""
        for live in lives:
            self._note(live)
        for members in self._members.values():
            members.begin()

    def sent(self, root: ResourceId, operation: Operation, existing: Live | None) -> None:
        """Take note of an operation on a pod or a domain."""
        id = operation.id
        if isinstance(operation, Delete | Replace) and existing is not None:
            self.deleted.add(existing.uid)
            self._remove(root, existing)
        if isinstance(operation, Creation):
            touched = self._touched.setdefault(root, _Touched())
            if id.kind == kinds.POD.name:
                slot = _slot_of(id, mapping(operation.manifest["metadata"].get("labels")))
                touched.created[slot] += 1
                touched.gpus[slot] = _gpus(operation.manifest)
            elif not self._domains.isdisjoint(id.keys()):
                touched.domains_made[id.name] += 1
            elif is_component(id):
                self._change_component(root, id, {}, mapping(operation.manifest.get("spec")))
        if isinstance(operation, Patch) and existing is not None and is_component(id):
            old = mapping(existing.body.get("spec"))
            self._change_component(root, id, old, merge_patch(old, mapping(operation.patch.get("spec"))))

    def _change_component(self, root: ResourceId, id: ResourceId, old: Mapping[str, Any], new: Mapping[str, Any]) -> None:
        """Take note of the pods that the controller of a component adds and removes when its spec changes; without a spec it has none.

        A new template replaces them all, unless the component is a Deployment that is paused.
        """
        is_new = any(old.get(field) != new.get(field) for field in TEMPLATES) and new.get("paused") is not True
        before, after = _pods_of_component(old), _pods_of_component(new)
        touched = self._touched.setdefault(root, _Touched())
        for template in before | after:
            slot = id.namespace, f"{id.kind}/{id.name}", template
            removed, added = before.get(template, NO_PODS), after.get(template, NO_PODS)
            kept = 0 if is_new else min(removed.count, added.count)
            touched.deleted[slot] += removed.count - kept
            touched.created[slot] += added.count - kept
            touched.gpus[slot] = added.gpus if added.count else removed.gpus

    def _remove(self, root: ResourceId, live: Live) -> None:
        touched = self._touched.setdefault(root, _Touched())
        if live.id.kind == kinds.POD.name:
            slot = _slot_of(live.id, live.labels)
            touched.deleted[slot] += 1
            touched.gpus.setdefault(slot, _gpus(live.body))
            touched.cliques[kinds.PODCLIQUE.id(slot[0], slot[1])] = None
        elif is_component(live.id):
            self._change_component(root, live.id, mapping(live.body.get("spec")), {})
        elif not self._domains.isdisjoint(live.id.keys()):
            touched.domains_removed[live.id.name] += 1

    def changed(self, ids: Sequence[ResourceId], store: ForecastStore) -> None:
        """Take note of the objects that operations have changed, before the cluster answers."""
        for id in ids:
            if id.kind in (kinds.POD.name, kinds.PODCLIQUE.name, kinds.SCALING_GROUP.name):
                live = store.find(id)
                if live is not None:
                    self._note(live)
                elif id.kind != kinds.POD.name:
                    self._gone.add(id)
                elif id in self._clique_of:
                    self._count(self._clique_of[id], id, is_ready=False)

    def _note(self, live: Live) -> None:
        if live.id.kind == kinds.POD.name and (name := live.labels.get(labels.PODCLIQUE)):
            clique = self._clique_of[live.id] = kinds.PODCLIQUE.id(live.id.namespace, name)
            self._count(clique, live.id, is_ready=live.deleting_since is None and facts_of(live).ready)
        elif live.id.kind in (kinds.PODCLIQUE.name, kinds.SCALING_GROUP.name):
            self._gone.discard(live.id)
            minimum = mapping(live.body.get("spec")).get("minAvailable")
            self._minimum[live.id] = minimum if isinstance(minimum, int) else 0
            if (group := live.labels.get(labels.SCALING_GROUP)) and live.id.kind == kinds.PODCLIQUE.name:
                replica = live.labels.get(labels.GROUP_REPLICA_INDEX, "")
                place = self._place[live.id] = _Place(kinds.SCALING_GROUP.id(live.id.namespace, group), replica)
                self._cliques_of.setdefault(place, set()).add(live.id)
                self._count_replica(place)

    def _count(self, clique: ResourceId, pod: ResourceId, *, is_ready: bool) -> None:
        self._members.setdefault(clique, _Members()).set(pod, is_ready=is_ready)
        if (place := self._place.get(clique)) is not None:
            self._count_replica(place)

    def _count_replica(self, place: _Place) -> None:
        """A replica of a scaling group is available while each of its cliques has its minimum."""
        is_available = all(
            clique in self._members and len(self._members[clique].ready) >= max(1, self._minimum.get(clique, 0))
            for clique in self._cliques_of[place]
        )
        self._members.setdefault(place.group, _Members()).set(place.replica, is_ready=is_available)

    def effects(self) -> Mapping[ResourceId, Effects]:
        """The effects on each root whose pods or domains are touched."""
        return {root: self._effects_of(touched) for root, touched in self._touched.items()}

    def effects_of_replica(self, root: ResourceId, index: int) -> Effects:
        """The effects on one replica of a set."""
        touched = self._touched.get(root)
        return self._effects_of(touched.of_replica(root, index)) if touched is not None else Effects()

    def _effects_of(self, touched: _Touched) -> Effects:
        restarted = touched.deleted & touched.created
        moves = {"restarted": restarted, "added": touched.created - restarted, "removed": touched.deleted - restarted}
        counts = {f"pods {word}": slots.total() for word, slots in moves.items()}
        counts |= {f"GPUs {word}": sum(touched.gpus[slot] * count for slot, count in slots.items()) for word, slots in moves.items()}
        replaced = touched.domains_made & touched.domains_removed
        counts["domains replaced"] = replaced.total()
        counts["domains made"] = (touched.domains_made - replaced).total()
        counts["domains removed"] = (touched.domains_removed - replaced).total()
        return Effects({what: count for what, count in counts.items() if count}, worst_first(self._levels(touched)))

    def _levels(self, touched: _Touched) -> Iterator[Level]:
        """The cliques outside scaling groups, and the groups, that have fewer ready members for a time than before and after.

        Those that fall below their minimum and stay there are among them, unless they are deleted.
        """
        subjects = dict.fromkeys(self._place[clique].group if clique in self._place else clique for clique in touched.cliques)
        for id in subjects:
            members = self._members.get(id)
            if members is None:
                continue
            unit = "replicas" if id.kind == kinds.SCALING_GROUP.name else "pods"
            level = Level(id, members.before, members.lowest, len(members.ready), self._minimum.get(id, 0), unit)
            if level.lowest < min(level.before, level.after) or (level.falls_below and id not in self._gone):
                yield level


def _slot_of(id: ResourceId, pod_labels: Mapping[str, Any]) -> Slot:
    return id.namespace, str(pod_labels.get(labels.PODCLIQUE, "")), str(pod_labels.get(labels.POD_INDEX, id.name))


class _Pods(Struct, frozen=True):
    """The pods of one template of a component."""

    count: int
    gpus: int
    """Of each."""


NO_PODS: Final = _Pods(0, 0)


def _pods_of_component(spec: Mapping[str, Any]) -> dict[str, _Pods]:
    """The field of each pod template of a Deployment or LeaderWorkerSet -> its pods; none without a spec."""
    return {field: _Pods(number, _gpus(template)) for field, (number, template) in templates_of(spec).items()}


def templates_of(spec: Mapping[str, Any]) -> dict[str, tuple[int, Mapping[str, Any]]]:
    """The field of each pod template of a Deployment or LeaderWorkerSet -> the number of its pods, and the template; none without a spec.

    Leaders without a template of their own have that of the workers.
    """
    replicas = count(spec.get("replicas", 1))
    if "template" in spec:
        return {"template": (replicas, mapping(spec["template"]))}
    group = mapping(spec.get("leaderWorkerTemplate"))
    worker = mapping(group.get("workerTemplate"))
    leaders = replicas, mapping(group.get("leaderTemplate")) or worker
    return {"leaderTemplate": leaders, "workerTemplate": (replicas * max(0, count(group.get("size", 1)) - 1), worker)} if group else {}


def _gpus(body: Mapping[str, Any]) -> int:
    """The GPUs that the containers of a pod request."""
    total = 0
    for container in mappings(mapping(body.get("spec")).get("containers")):
        resources = mapping(container.get("resources"))
        amounts = {**mapping(resources.get("limits")), **mapping(resources.get("requests"))}
        total += sum(int(amount(str(amounts[name])) or 0) for name in names.GPUS if name in amounts)
    return total
