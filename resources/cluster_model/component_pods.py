"""Component pods: those that the controllers of Deployments and LeaderWorkerSets create in a forecast, and that need room on nodes."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, Protocol

from msgspec import Struct
from msgspec.structs import replace

from engine.ids import ResourceId
from engine.observed import Live, live
from engine.paths import get
from resources.base import kinds
from resources.base.fields import count, mapping, mappings
from resources.base.labels import SET_OF_POD
from resources.cluster_model.pods import ENDED, TEMPLATES, PodSelector, is_component, is_rolled_out, templates_of
from resources.model.pod_facts import facts_of

SELECTOR: Final = ("spec", "selector", "matchLabels")
TEMPLATE_HASHES: Final = ("pod-template-hash", "leaderworkerset.sigs.k8s.io/template-revision-hash")
"""The labels by which the controllers of components distinguish pods of one template from those of another."""


class ExchangeStep(Struct, frozen=True):
    """A part of the roll-out of a Deployment: so many new pods in all, beside so many earlier ones that stay until these are ready."""

    new: int
    earlier: int


class Asks(Protocol):
    """The nodes, which are asked for room."""

    def ask(self, pod: Live, root: ResourceId, slots: Mapping[str, int], workload: ResourceId | None = None) -> bool:
        """See `resources.cluster_model.cluster.RoomModel`."""
        ...

    def remove(self, uids: Iterable[str]) -> None:
        """See `resources.cluster_model.cluster.RoomModel`."""
        ...

    def let_go(self, component: ResourceId, staying: int = 0) -> None:
        """See `resources.cluster_model.cluster.RoomModel`."""
        ...


def keeps_pods(before: Live | None, live: Live) -> bool:
    """Whether an object had no pods of earlier templates before the first operation, and has the same templates now."""
    if before is None:
        return False
    status, spec, old = (mapping(each) for each in (before.body.get("status"), live.body.get("spec"), before.body.get("spec")))
    is_current = status.get("observedGeneration") == before.generation and status.get("updatedReplicas") == status.get("replicas")
    return is_current and all(old.get(field) == spec.get(field) for field in TEMPLATES)


def new_pods(component: Live, before: Live | None) -> tuple[Live, ...]:
    """The pods that the controller creates for a component as it is now: all if it is new or replaces them, else those it has more."""
    old = _counts(before, component)
    return tuple(
        _pod(component, field, number, template)
        for field, (count, template) in templates_of(mapping(component.body.get("spec"))).items()
        for number in range(old.get(field, 0), count)
    )


def starting(component: Live, before: Live | None, read: Sequence[Live] = ()) -> tuple[Live, ...]:
    """The pods of a component that have still to start: of those that exist and stay the ones that wait for claims, and `new_pods`.

    `before`: the component before the first operation; `read`: its pods of the newest template then, as far as they were read.
    """
    if before is None or before.uid != component.uid or _replaces(before, component):
        return new_pods(component, None)
    total = sum(count for count, _ in templates_of(mapping(component.body.get("spec"))).values())
    active = [facts for facts in map(facts_of, read) if facts.phase not in ENDED]
    going = max(0, len(active) - total)  # Controllers delete those that have not started first.
    waiting = [facts.live for facts in active if not facts.node][going:]
    new = new_pods(component, _with_existing(before))
    absent = max(0, total - len(active)) if read else len(new)  # A group of which only the leader exists is not reported as updated.
    return (*waiting, *new[max(0, len(new) - absent) :])


def is_hindered(component: Live, before: Live | None, read: Sequence[Live]) -> bool:
    """Whether a pod of a component that has its template and stays cannot run: its controller goes no further. `before`, `read`: see above.

    Pods beyond its number of replicas do not count: its controller deletes those that are not ready first. Nor does a pod that has failed
    once and runs again: it may still load its model.
    """
    if not read or before is None or before.uid != component.uid or _replaces(before, component):
        return False
    total = sum(count for count, _ in templates_of(mapping(component.body.get("spec"))).values())
    active = [facts for facts in map(facts_of, read) if facts.phase not in ENDED]
    return sum(facts.kept_from_starting for facts in active) > max(0, len(active) - total)


def _with_existing(component: Live) -> Live:
    """The component with as many replicas as have pods of its template, as its controller says."""
    if is_rolled_out(component):
        return component
    spec, existing = mapping(component.body.get("spec")), count(mapping(component.body.get("status")).get("updatedReplicas"))
    return live({**component.body, "spec": {**spec, "replicas": existing}})


def vacated(before: Iterable[Live], after: Mapping[ResourceId, Live]) -> frozenset[PodSelector]:
    """The pods that do not stay where they are: of the components that go, become smaller, or replace their pods."""
    return frozenset(each for component in before if is_component(component.id) for each in _vacated(component, after.get(component.id)))


def _vacated(component: Live, after: Live | None) -> Iterator[PodSelector]:
    if (selector := selector_of(component)) is None:
        return
    if after is not None and (steps := steps_between(component, after)):
        old = count(mapping(component.body.get("spec")).get("replicas", 1))
        yield replace(selector, most=old - steps[0].earlier, component=component.id)
    elif (leaving := _leaving(component, after)) != 0:
        yield replace(selector, most=leaving)


def steps_between(before: Live | None, after: Live) -> tuple[ExchangeStep, ...]:
    """The parts in which the controller of a Deployment exchanges its pods, as far as they decide whether all new ones get nodes.

    These are the first new pod that has to be ready before an earlier one may go, and the last one; what is between them needs no more room
    than one of them, as each exchange is alike. Empty if no earlier pod has to stay for a new one.
    """
    if before is None or before.uid != after.uid or not _replaces(before, after):
        return ()
    return exchange_steps(*(mapping(each.body.get("spec")) for each in (before, after)))


def exchange_steps(old: Mapping[str, Any], new: Mapping[str, Any]) -> tuple[ExchangeStep, ...]:
    """The same for the specs of a component that replaces its pods."""
    strategy = mapping(new.get("strategy"))
    if "template" not in new or strategy.get("type") == "Recreate":
        return ()
    earlier, replicas = count(old.get("replicas", 1)), count(new.get("replicas", 1))
    least = replicas - _unavailable(mapping(strategy.get("rollingUpdate")), replicas)
    first, last = min(earlier, least), min(earlier, max(0, least - replicas + 1))
    return (ExchangeStep(max(0, least - earlier) + 1, first), ExchangeStep(replicas, last)) if replicas and first else ()


def parts_of(pods: Sequence[Live], steps: Sequence[ExchangeStep]) -> list[tuple[Sequence[Live], int]]:
    """The new pods in the parts in which they come, each with the number of earlier pods beside it; at the end none of these is left."""
    begins = (0, *(step.new for step in steps))
    parts = [(pods[begin : step.new], step.earlier) for begin, step in zip(begins, steps, strict=False)]
    return [*parts, (pods[begins[-1] :], 0)]


def _unavailable(rolling: Mapping[str, Any], replicas: int) -> int:
    """How many of its pods a Deployment lets be missing while it exchanges them: at least one, if it may have no more than its replicas."""
    surge = _share(rolling.get("maxSurge", "25%"), replicas, up=True)
    return min(replicas, _share(rolling.get("maxUnavailable", "25%"), replicas, up=False) or (0 if surge else 1))


def _share(value: object, total: int, *, up: bool) -> int:
    """A number, or a percentage of the total; 0 if it is malformed."""
    if isinstance(value, str) and value.endswith("%") and value[:-1].isdecimal():
        exact = int(value[:-1]) * total
        return -(-exact // 100) if up else exact // 100
    return count(value)


def needs_more(before: Iterable[Live], after: Mapping[ResourceId, Live]) -> Iterator[tuple[Live, tuple[Live, ...]]]:
    """The components that exist `after`, each with the pods for which it needs room that it has not had, if there are any."""
    known = {each.id: each for each in before if is_component(each.id)}
    for id, component in after.items():
        if is_component(id) and (pods := new_pods(component, known.get(id))):
            yield component, pods


class ComponentRoom:
    """The components of one forecast whose new pods ask for nodes."""

    def __init__(self, room: Asks, slots_of: Callable[[Live], Mapping[str, int]], lives: Iterable[Live]) -> None:
        """`slots_of`: the places in domains that a pod takes. `lives`: the objects as they are; the pods of their components have nodes."""
        self._room, self._slots_of = room, slots_of
        self._before = {each.id: each for each in lives if is_component(each.id)}
        self._pods: dict[ResourceId, tuple[Live, ...]] = {}
        """Component -> the pods that have asked for a node."""
        self._parts: dict[ResourceId, list[tuple[Sequence[Live], int]]] = {}
        """Component -> the parts of its pods that have not asked yet: see `parts_of`."""
        self._waiting: dict[ResourceId, ResourceId] = {}
        """Pod that waits for a node -> its component."""
        self._short: Counter[ResourceId] = Counter()
        """Component -> how many of its pods wait."""

    def refused(
        self, components: Iterable[tuple[Live, ResourceId, int]]
    ) -> Iterator[tuple[Live, ResourceId, Mapping[str, int], ResourceId]]:
        """The pods of components whose PodGroup the scheduler refuses, as `RoomModel.note_refused` takes them.

        Each component has its root and the number of its pods that run. The last ones are missing: a leader takes the others with it.
        """
        for component, root, running in components:
            self._pods[component.id] = new_pods(component, None)[running:]
            yield from ((pod, root, self._slots_of(pod), component.id) for pod in self._pods[component.id])

    def note_waiting(self, is_explained: Callable[[str], bool]) -> frozenset[ResourceId]:
        """Those of the `refused` pods wait for room whose refusal is explained so. Returns the components that wait for something else."""
        for id, pods in self._pods.items():
            for pod in pods:
                if is_explained(pod.uid):
                    self._wait(pod.id, id)
        others = frozenset(id for id in self._pods if not self._short[id])
        self._pods = {id: pods for id, pods in self._pods.items() if id not in others}
        return others

    def have_room(self, component: Live, root: ResourceId) -> bool:
        """Ask for nodes for the new pods of a component that has changed. Returns whether none of its pods waits for one."""
        before = self._before.get(component.id)
        pods = new_pods(component, before)
        asked = {each.uid for each in self._pods.get(component.id, ())}
        if (pods and not asked) or not asked <= {each.uid for each in pods}:
            self._forget(component.id)
            self._pods[component.id] = pods
            self._parts[component.id] = parts_of(pods, steps_between(before, component))
        parts = self._parts.get(component.id, [])
        while parts and not self._short[component.id]:
            part, earlier = parts.pop(0)
            self._room.let_go(component.id, earlier)
            for pod in part:
                if self._room.ask(pod, root, self._slots_of(pod), component.id):
                    self._wait(pod.id, component.id)
        return not self._short[component.id]

    def removed(self, exists: Callable[[ResourceId], bool]) -> None:
        """Give back the nodes of components that do not exist any more."""
        for id in [id for id in self._pods if not exists(id)]:
            self._forget(id)

    def admitted(self, ids: Iterable[ResourceId]) -> list[ResourceId]:
        """These pods have a node. Returns the components none of whose pods waits for one any more."""
        changed = dict.fromkeys(self._end_wait(id) for id in ids if id in self._waiting)
        return [id for id in changed if not self._short[id]]

    def _wait(self, pod: ResourceId, component: ResourceId) -> None:
        if pod not in self._waiting:
            self._waiting[pod] = component
            self._short[component] += 1

    def _end_wait(self, pod: ResourceId) -> ResourceId:
        component = self._waiting.pop(pod)
        self._short[component] -= 1
        return component

    def _forget(self, component: ResourceId) -> None:
        pods = self._pods.pop(component, ())
        self._parts.pop(component, None)
        for pod in pods:
            if pod.id in self._waiting:
                self._end_wait(pod.id)
        self._room.remove([pod.uid for pod in pods])


def _counts(before: Live | None, after: Live) -> Mapping[str, int]:
    """The pods of each template that the component keeps."""
    if before is None or before.uid != after.uid or _replaces(before, after):
        return {}
    return {field: count for field, (count, _) in templates_of(mapping(before.body.get("spec"))).items()}


def _replaces(before: Live, after: Live) -> bool:
    """The same for components as they are."""
    return replaces(*(mapping(each.body.get("spec")) for each in (before, after)))


def replaces(old: Mapping[str, Any], new: Mapping[str, Any]) -> bool:
    """Whether the controller replaces the pods: their template differs, and no Deployment that is paused has it."""
    return new.get("paused") is not True and any(old.get(field) != new.get(field) for field in TEMPLATES)


def _leaving(before: Live, after: Live | None) -> int | None:
    """How many of its pods a component loses; None: all."""
    if after is None or after.uid != before.uid or after.deleting_since is not None or _replaces(before, after):
        return None
    old, new = (templates_of(mapping(each.body.get("spec"))) for each in (before, after))
    return sum(max(0, count - new.get(field, (0, {}))[0]) for field, (count, _) in old.items())


def with_pod_specs(spec: Mapping[str, Any], change: Callable[[Mapping[str, Any]], Mapping[str, Any]]) -> Mapping[str, Any]:
    """The spec of a Deployment or LeaderWorkerSet whose pods have changed specs."""

    def changed(parent: Mapping[str, Any], *fields: str) -> Mapping[str, Any]:
        templates = {field: mapping(parent[field]) for field in fields if field in parent}
        return {**parent, **{field: {**each, "spec": change(mapping(each.get("spec")))} for field, each in templates.items()}}

    group = mapping(spec.get("leaderWorkerTemplate"))
    return {**changed(spec, "template"), **({"leaderWorkerTemplate": changed(group, "leaderTemplate", "workerTemplate")} if group else {})}


def of_newest_template(pods: Iterable[Live]) -> Iterator[Live]:
    """The pods of a component that have the template of those created last: its controller deletes the others."""
    staying = [pod for pod in pods if pod.deleting_since is None]
    newest = max((pod.created_at for pod in staying), default=None)
    templates = {_template_of(pod) for pod in staying if pod.created_at == newest}
    return (pod for pod in staying if _template_of(pod) in templates)


def _template_of(pod: Live) -> tuple[str | None, ...]:
    return tuple(pod.labels.get(label) for label in TEMPLATE_HASHES)


def claims_of_component(component: Live) -> Iterator[ResourceId]:
    """The claims, and the templates of claims, that the pods of a component refer to."""
    for _, template in templates_of(mapping(component.body.get("spec"))).values():
        for entry in mappings(mapping(template.get("spec")).get("resourceClaims")):
            for kind, name in (
                (kinds.RESOURCE_CLAIM_TEMPLATE, entry.get("resourceClaimTemplateName")),
                (kinds.RESOURCE_CLAIM, entry.get("resourceClaimName")),
            ):
                if isinstance(name, str):
                    yield kind.id(component.id.namespace, name)


def selector_of(component: Live) -> PodSelector | None:
    """Selects the pods of a component; None if nothing tells which these are."""
    if component.id.kind == kinds.LEADER_WORKER_SET.name:
        return PodSelector(component.id.namespace, ((SET_OF_POD, component.id.name),))
    labels: Sequence[tuple[str, str]] = sorted((str(key), str(value)) for key, value in mapping(get(component.body, SELECTOR)).items())
    return PodSelector(component.id.namespace, tuple(labels)) if labels else None


def _pod(component: Live, field: str, number: int, template: Mapping[str, Any]) -> Live:
    """A pod as its controller makes it; its name and uid stand for those that it will have."""
    name = f"{component.id.name}-{field}-{number}"
    metadata = {**mapping(template.get("metadata")), "name": name, "namespace": component.id.namespace}
    metadata["uid"] = f"{component.uid}/{component.generation}/{component.id.namespace}/{name}"
    return live({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": mapping(template.get("spec"))})
