"""ModelledCluster: a cluster without surprises: pods start where there is room, controllers do their work, and others do not interfere."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any, Final, Protocol

from engine.forecast.cluster_model import Assumption, Effects
from engine.forecast.store import ForecastStore
from engine.health import PATIENCE
from engine.ids import ResourceId
from engine.observed import Live, timestamp
from engine.operation import Create, Operation
from engine.plan import Wait
from engine.resource import Body
from resources.base import kinds, labels
from resources.base.fields import annotations_of, mapping
from resources.cluster_model.deletions import Deletions
from resources.cluster_model.pods import (
    ENDED,
    WorkloadLog,
    has_time_to_end,
    is_component,
    is_halted,
    is_refused,
    is_refused_just_now,
    rolled_out,
    started,
    stays_as_it_is,
)
from resources.cluster_model.references import LISTED, NOTHING_ABSENT, NOTHING_BESIDE, IncompleteGangs, PodReferences, PodSlots, Words
from resources.model.pod_facts import facts_of
from resources.ports.fabric import Fabric
from resources.ports.scheduler import refused_groups, running_of

Slots = Mapping[str, int]
"""Kind of domains -> the places in them that a pod takes."""
TOKEN_TYPE: Final = "kubernetes.io/service-account-token"
ACCOUNT_NAME, ACCOUNT_UID = "kubernetes.io/service-account.name", "kubernetes.io/service-account.uid"
"""The annotations of a token Secret that name its service account."""
FILLED: Final = "Kg=="
"""Stands for the data of a token Secret, which no plan reads."""


class RoomModel(Protocol):
    """The nodes in one forecast, with the pods that have a node, and those that wait for one."""

    @property
    def slot_kinds(self) -> frozenset[str]:
        """The kinds of domains of which it is known which nodes have a place."""
        ...

    def begin(self, find: Callable[[ResourceId], Body | None], pods: Iterable[tuple[Live, Slots]]) -> None:
        """Take note of the pods as they are. `find` returns the body of an object, None if it does not exist."""
        ...

    def note_refused(self, pods: Iterable[tuple[Live, ResourceId, Slots, ResourceId | None]]) -> None:
        """Take note of pods, with their roots and `workload` as of `ask`, that the scheduler says it cannot place."""
        ...

    def is_explained(self, uid: str) -> bool:
        """Whether the scheduler refuses this pod because there is no room."""
        ...

    def ask(self, live: Live, root: ResourceId, slots: Slots, workload: ResourceId | None = None) -> bool:
        """A pod may have a node if there is room. Returns false if nothing can be said about it.

        `workload`: what it is a pod of, if that is no PodClique.
        """
        ...

    def remove(self, uids: Iterable[str]) -> None:
        """These objects are gone."""
        ...

    def let_go(self, component: ResourceId, staying: int = 0) -> None:
        """So many of the earlier pods of a component are left."""
        ...

    def admitted(self) -> list[ResourceId]:
        """The waiting pods that have a node from now on."""
        ...

    def note_pause(self) -> None:
        """Nothing happens now for longer than a sync waits: what waits for room lacks it, even if it gets some later."""
        ...


class ComponentModel(Protocol):
    """Deployments and LeaderWorkerSets, whose new pods need room: see `resources.cluster_model.component_pods.ComponentRoom`."""

    def have_room(self, component: Live, root: ResourceId) -> bool:
        """Whether none of the new pods of a component waits for a node."""
        ...

    def removed(self, exists: Callable[[ResourceId], bool]) -> None:
        """Give back the nodes of components that do not exist any more."""
        ...

    def admitted(self, ids: Iterable[ResourceId]) -> list[ResourceId]:
        """These pods have a node. Returns the components none of whose pods waits for one any more."""
        ...


class ModelledCluster:
    """`engine.forecast.cluster_model.ClusterModel` for Kubernetes."""

    def __init__(
        self,
        fabrics: Iterable[Fabric],
        room: RoomModel | None = None,
        listed: Collection[str] = LISTED,
        gang_schedulers: Collection[str] = (),
        component_pods: Mapping[ResourceId, Sequence[Live]] | None = None,
        device_classes: Collection[str] | None = None,
        absent: Mapping[ResourceId, Words] = NOTHING_ABSENT,
        beside: Mapping[ResourceId, str] = NOTHING_BESIDE,
    ) -> None:
        """`room`: the nodes; None: they are not known, and every pod is assumed to have room.

        `listed`, `device_classes`, `absent`, `beside`: see `PodReferences`. `gang_schedulers`: see `IncompleteGangs`.
        `component_pods`: component -> its pods of the newest template, as far as they were read.
        """
        enabled = tuple(fabrics)
        self._gangs = IncompleteGangs(gang_schedulers)
        self._room, self._component_pods = room, component_pods or {}
        self._references = PodReferences(enabled, listed, device_classes, absent, beside)
        self._store: ForecastStore | None = None
        self._slots = PodSlots(enabled, room.slot_kinds if room is not None else ())
        self._components: ComponentModel | None = None
        self._roots: dict[ResourceId, ResourceId] = {}
        """Pod that is created, or component that is written -> its root."""
        drivers = [(fabric.kind.key, fabric.modelled_driver()) for fabric in enabled]
        self._drivers = tuple(driver for _, driver in drivers if driver is not None)
        self._unknown = frozenset(key for key, driver in drivers if driver is None)
        """The kinds of domains whose driver is not modelled."""
        self._deletions = Deletions((fabric.finalizer for fabric in enabled), self._drivers)
        self._log = WorkloadLog(frozenset(fabric.kind.key for fabric in enabled))
        self._unclaimed: dict[ResourceId, None] = {}
        """Pods that wait for objects that they refer to, and components whose pods do."""
        self._earlier: dict[ResourceId, Live] = {}
        """The components before the first operation."""
        self._tokens: dict[ResourceId, None] = {}
        """The token Secrets."""
        self._used: set[Assumption] = set()
        self._answered: datetime | None = None
        """When every program of the cluster took its last step."""
        self._refused: dict[tuple[str, str], list[ResourceId]] = {}
        """Namespace and gang -> its pods that the scheduler refused before the first operation: maybe only because others were missing."""
        self._grown: dict[tuple[str, str], None] = {}
        """The gangs of such pods that have got another pod."""
        self._unplaced: dict[ResourceId, Live] = {}
        """The components whose PodGroup the scheduler refused before the first operation, as they were then; not those that lack room."""

    def is_graceful(self, live: Live) -> bool:
        """Whether it is a pod that has time to end."""
        return has_time_to_end(live)

    def begin(self, store: ForecastStore) -> None:
        """Take note of every object."""
        self._store = store
        self._log.begin(store.lives.values())
        self._references.note_promises(store, store.lives)
        self._earlier = {id: live for id, live in store.lives.items() if is_component(id)}
        pods = [live for live in store.lives.values() if live.id.kind == kinds.POD.name]
        refused = [
            live for live in pods if live.deleting_since is None and is_refused(facts_of(live)) and not self._references.lacks(store, live)
        ]
        for live in refused:
            self._refused.setdefault(_gang_of(live.id, live.labels), []).append(live.id)
        groups = (group for group, _ in refused_groups(store.lives.values()))
        running = {kinds.LEADER_WORKER_SET.id(group.id.namespace, group.id.name): running_of(group) for group in groups}
        self._unplaced = {id: each for id in running if (each := store.find(id)) is not None and each.deleting_since is None}
        if self._room is not None:
            self._room.begin(partial(_body, store), ((live, self._slots.of(store, live)) for live in pods))
            from resources.cluster_model.component_pods import ComponentRoom  # Only forecasts with nodes have it.

            slots_of = partial(self._slots.of, store)
            components = ComponentRoom(self._room, slots_of, (live for id, live in store.lives.items() if id not in self._unplaced))
            of_pods = [(live, self._root_of(live), slots_of(live), None) for live in refused]
            unplaced = ((live, self._root_of(live), running[id]) for id, live in self._unplaced.items())
            self._room.note_refused((*of_pods, *components.refused(unplaced)))
            self._unplaced = {id: self._unplaced[id] for id in components.note_waiting(self._room.is_explained)}
            self._components = components
            self._try_again(store, [live.id for live in refused if is_refused_just_now(facts_of(live), store.now)])
        self._tokens = {live.id: None for live in store.lives.values() if _is_token(live)}
        self._deletions.begin(store)

    def sent(self, root: ResourceId, operation: Operation, existing: Live | None) -> None:
        """Take note of an operation."""
        self._log.sent(root, operation, existing)
        if is_component(operation.id):
            self._roots[operation.id] = root
        if isinstance(operation, Create) and operation.id.kind == kinds.POD.name:
            self._roots[operation.id] = root
            if self._refused and (gang := _gang_of(operation.id, mapping(operation.manifest["metadata"].get("labels")))) in self._refused:
                self._grown[gang] = None

    def effects(self) -> Mapping[ResourceId, Effects]:
        """What all operations so far mean for the workloads."""
        return self._log.effects()

    def is_known(self, store: ForecastStore) -> bool:
        """Whether there is no domain of a fabric whose driver is not modelled."""
        return not self._unknown or all(self._unknown.isdisjoint(id.keys()) for id in store.lives)

    def effects_of_replica(self, root: ResourceId, index: int) -> Effects:
        """What all operations so far mean for one replica of a set."""
        return self._log.effects_of_replica(root, index)

    def answer(self, store: ForecastStore) -> frozenset[Assumption]:
        """Let every program of the cluster take one step."""
        self._used = set()
        if self._room is not None and self._answered is not None and store.now - self._answered > PATIENCE:
            self._room.note_pause()
        self._answered = store.now
        changed, gone = store.take_changes()
        self._references.note_promises(store, changed)
        self._log.changed(changed, store)
        self._used.update(self._deletions.answer(store, self._log.deleted))
        self._revoke_tokens(store)
        if any([driver.answer(store, changed, gone) for driver in self._drivers]):
            self._used.add(Assumption.FABRIC)
        self._deletions.note_gone(store, gone)
        for id in changed:
            if (live := store.find(id)) is not None:
                self._attend_to(store, live)
        for gang in self._grown:
            self._try_again(store, self._refused.pop(gang, ()))
        self._grown = {}
        for id in list(self._unclaimed):
            self._start_if_claimed(store, id)
        for id in self._gangs.released(store):
            store.patch(id, {"status": {"conditions": []}})
        if self._room is not None:
            self._room.remove(gone)
            if self._components is not None and gone:
                self._components.removed(lambda id: store.find(id) is not None)
            self._start_admitted(store, self._room.admitted())
        return frozenset(self._used)

    def _attend_to(self, store: ForecastStore, live: Live) -> None:
        """Do what the cluster does about an object that has changed, or take note of it."""
        if live.deleting_since is not None:
            self._deletions.note(live)
        elif live.id.kind == kinds.POD.name:
            self._start_pod(store, live)
        elif is_component(live.id):
            self._roll_out(store, live)
        elif _is_token(live):
            self._tokens[live.id] = None
            if not live.body.get("data"):
                self._fill(store, live)

    def _fill(self, store: ForecastStore, token: Live) -> None:
        """Give a token Secret its data."""
        account = store.find(kinds.SERVICE_ACCOUNT.id(token.id.namespace, str(annotations_of(token.body).get(ACCOUNT_NAME, ""))))
        data = dict.fromkeys(("token", "ca.crt", "namespace"), FILLED)
        annotations = {"metadata": {"annotations": {ACCOUNT_UID: account.uid}}} if account is not None else {}
        store.patch(token.id, {"data": data, **annotations})
        self._used.add(Assumption.KUBERNETES)

    def _revoke_tokens(self, store: ForecastStore) -> None:
        """Delete the token Secrets of service accounts that do not exist any more, or that were created again."""
        for id in list(self._tokens):
            token = store.find(id)
            if token is None:
                del self._tokens[id]
                continue
            annotations = annotations_of(token.body)
            account = store.find(kinds.SERVICE_ACCOUNT.id(id.namespace, str(annotations.get(ACCOUNT_NAME, ""))))
            if account is None or annotations.get(ACCOUNT_UID, account.uid) != account.uid:
                store.delete(id)
                self._used.add(Assumption.KUBERNETES)

    def _roll_out(self, store: ForecastStore, live: Live) -> None:
        """Let the controller of an object replace its pods and make all of them ready."""
        from resources.cluster_model.component_pods import is_hindered, keeps_pods  # Most forecasts have no components.

        earlier = self._earlier.get(live.id)
        if is_halted(live):
            self._used.add(Assumption.FAILURES_STAY)
        elif (patch := rolled_out(live, timestamp(store.now), keeps_pods=keeps_pods(earlier, live))) is None:
            return
        elif is_hindered(live, earlier, self._component_pods.get(live.id, ())):
            self._used.add(Assumption.FAILURES_STAY)
        elif (before := self._unplaced.get(live.id)) is not None and _is_same(before, live):
            self._used.add(Assumption.FAILURES_STAY)
        elif not self._have_references(store, live):
            self._unclaimed[live.id] = None
        elif self._components is None or self._components.have_room(live, self._root_of(live)):
            store.patch(live.id, patch)
            self._used.update((Assumption.CAPACITY if self._components is None else Assumption.ROOM, Assumption.KUBERNETES))

    def _try_again(self, store: ForecastStore, ids: Iterable[ResourceId]) -> None:
        """Let the scheduler look once more at pods that it refused: their gang has grown, or room was freed. Others still wait."""
        for id in ids:
            if (live := store.find(id)) is not None and not (self._room is not None and self._room.is_explained(live.uid)):
                store.patch(id, {"status": {"conditions": []}})

    def _start_pod(self, store: ForecastStore, live: Live) -> None:
        """Schedule a pod and make it ready, if nothing keeps it from that."""
        facts = facts_of(live)
        if facts.ready or facts.phase in ENDED or facts.gated:
            return
        if mapping(live.body.get("spec")).get("schedulingGates"):
            store.patch(live.id, {"spec": {"schedulingGates": []}})
            self._used.add(Assumption.GATES)
            live = store.lives[live.id]
        if not facts.node and not self._has_references(store, live):
            self._unclaimed[live.id] = None
        elif not facts.node and self._gangs.keeps(store, live):
            return
        elif stays_as_it_is(facts, store.now, store.find(self._root_of(live))):
            if self._room is None or not self._room.is_explained(live.uid):
                self._used.add(Assumption.FAILURES_STAY)
        elif facts.node or self._room is None or not self._room.ask(live, self._root_of(live), self._slots.of(store, live)):
            store.patch(live.id, started(facts.node, timestamp(store.now)))
            self._used.add(Assumption.CAPACITY)

    def _start_admitted(self, store: ForecastStore, ids: Collection[ResourceId]) -> None:
        """Schedule pods for which there is room and make them ready."""
        for id in ids:
            if (live := store.find(id)) is not None and live.deleting_since is None:
                store.patch(id, started("", timestamp(store.now)))
                self._used.add(Assumption.ROOM)
        for component in self._components.admitted(ids) if self._components is not None else ():
            if (live := store.find(component)) is not None and live.deleting_since is None:
                self._used.add(Assumption.ROOM)
                self._roll_out(store, live)

    def _root_of(self, pod: Live) -> ResourceId:
        """The root that has created a pod or component; of what existed before, the set that its labels name, or the graph that owns it."""
        named = kinds.PODCLIQUESET.id(pod.id.namespace, pod.labels.get(labels.PART_OF, ""))
        if is_component(pod.id) and pod.controller is not None:
            named = kinds.DYNAMO_GRAPH.id(pod.id.namespace, pod.controller.name)
        return self._roots.get(pod.id, named)

    def _start_if_claimed(self, store: ForecastStore, id: ResourceId) -> None:
        """Start a pod, or the pods of a component, that has waited for objects that it refers to, if they exist now."""
        live = store.find(id)
        if (
            live is None
            or live.deleting_since is not None
            or not any(self._references.lacks(store, pod) for _, pod in self._starting(live))
        ):
            del self._unclaimed[id]
            if live is not None and live.deleting_since is None:
                self._attend_to(store, live)

    def _starting(self, live: Live) -> Iterator[tuple[ResourceId, Live]]:
        """A pod, or those of a component that have still to start, each with the PodClique or component that it is of."""
        if is_component(live.id):
            from resources.cluster_model.component_pods import starting  # Most forecasts have no components.

            pods = starting(live, self._earlier.get(live.id), self._component_pods.get(live.id, ()))
            yield from ((live.id, pod) for pod in pods)
        else:
            yield kinds.PODCLIQUE.id(live.id.namespace, live.labels.get(labels.PODCLIQUE, "")), live

    def unstarted(self) -> Mapping[ResourceId, tuple[Wait, ...]]:
        """Root -> for each PodClique or component whose pods refer to what does not exist, what that is; each that lacks pods of a gang."""
        if (store := self._store) is None:
            return {}
        waiting = (live for id in self._unclaimed if (live := store.find(id)) is not None and live.deleting_since is None)
        pods = ((self._root_of(live), member, pod) for live in waiting for member, pod in self._starting(live))
        missing = self._references.shortages(store, pods)
        incomplete = self._gangs.shortages(store, self._root_of)
        return {root: (*missing.get(root, ()), *incomplete.get(root, ())) for root in {**missing, **incomplete}}

    def _have_references(self, store: ForecastStore, component: Live) -> bool:
        """Whether everything that the pods of a component that have still to start refer to exists, or may."""
        pods = [pod for _, pod in self._starting(component)]
        if any(self._references.lacks(store, pod) for pod in pods):
            return False
        if any(self._references.are_assumed(store, pod) for pod in pods):
            self._used.add(Assumption.REFERENCES)
        if any(mapping(pod.body.get("spec")).get("schedulingGates") for pod in pods):
            self._used.add(Assumption.GATES)
        return True

    def _has_references(self, store: ForecastStore, pod: Live) -> bool:
        """Whether everything that a pod refers to exists, or may. Claims whose templates exist are created."""
        if self._references.make_claims(store, pod):
            self._used.add(Assumption.KUBERNETES)
        if self._references.lacks(store, pod):
            return False
        if self._references.are_assumed(store, pod):
            self._used.add(Assumption.REFERENCES)
        return True


def _is_same(before: Live, after: Live) -> bool:
    """Whether an object is still as it was specified."""
    return (before.uid, before.generation) == (after.uid, after.generation)


def _body(store: ForecastStore, id: ResourceId) -> Body | None:
    """The body of an object; None if it does not exist."""
    live = store.find(id)
    return live.body if live is not None else None


def _gang_of(pod: ResourceId, pod_labels: Mapping[str, Any]) -> tuple[str, str]:
    """Namespace and name of the gang of a pod; of a pod without a gang its own."""
    return pod.namespace, str(pod_labels.get(labels.PODGANG, pod.name))


def _is_token(live: Live) -> bool:
    """Whether it is the token Secret of a service account."""
    return live.id.kind == kinds.SECRET.name and live.body.get("type") == TOKEN_TYPE
