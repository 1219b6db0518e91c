"""Garbage: the garbage collector; it deletes objects whose owners are gone, as kube-controller-manager does."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Final, NamedTuple

import anyio
from anyio.abc import TaskGroup

from grove_sandbox.actors.body import Body, Key, finalizers_of, is_deleting, key_of, owners_of, uid_of
from grove_sandbox.actors.options import ActorOptions
from grove_sandbox.actors.store import InformerStore, is_established, run_informers
from grove_sandbox.actors.work_queue import WorkQueue
from grove_sandbox.product import Client, Clock, Kind, NotFound, kinds

FOREGROUND: Final = "foregroundDeletion"
ORPHAN: Final = "orphan"

OwnerReference = Mapping[str, Any]


class Node(NamedTuple):
    """One object and its kind."""

    kind: Kind
    body: Body


class OwnerGraph:
    """Objects by uid, and the uids of their dependents. A uid that was deleted never comes back."""

    def __init__(self) -> None:
        self._nodes: dict[str, Node] = {}
        self._dependents: dict[str, dict[str, None]] = {}
        self._deleted: set[str] = set()

    def get(self, uid: str) -> Node | None:
        """The object of that uid."""
        return self._nodes.get(uid)

    def was_deleted(self, uid: str) -> bool:
        """Whether the object was known and is gone, while others still refer to it as their owner."""
        return uid in self._deleted

    def dependents(self, uid: str) -> list[Node]:
        """The objects that have it as an owner."""
        return [self._nodes[dependent] for dependent in self._dependents.get(uid, ())]

    def put(self, node: Node) -> None:
        """Add or update an object."""
        uid = uid_of(node.body)
        known = self._nodes.get(uid)
        if known is not None and owners_of(known.body) == owners_of(node.body):
            self._nodes[uid] = node
            return
        self._remove_edges(uid)
        self._nodes[uid] = node
        for owner in owners_of(node.body):
            self._dependents.setdefault(owner["uid"], {})[uid] = None

    def remove(self, uid: str) -> None:
        """Remove an object that is gone."""
        self._remove_edges(uid)
        self._nodes.pop(uid, None)
        if uid in self._dependents:
            self._deleted.add(uid)

    def _remove_edges(self, uid: str) -> None:
        if uid not in self._nodes:
            return
        for reference in owners_of(self._nodes[uid].body):
            owner = reference["uid"]
            self._dependents.get(owner, {}).pop(uid, None)
            if not self._dependents.get(owner):
                self._dependents.pop(owner, None)
                self._deleted.discard(owner)


def waits_for_dependents(body: Body) -> bool:
    """Whether it is being deleted in the foreground: it stays until the dependents that block it are gone."""
    return is_deleting(body) and FOREGROUND in finalizers_of(body)


def blocks(dependent: Body, owner: str) -> bool:
    """Whether the foreground deletion of the owner has to wait for this dependent."""
    return any(reference["uid"] == owner and reference.get("blockOwnerDeletion") for reference in owners_of(dependent))


def owners_without(body: Body, uids: Iterable[str]) -> list[OwnerReference]:
    """The owner references except those to these uids."""
    removed = set(uids)
    return [reference for reference in owners_of(body) if reference["uid"] not in removed]


SOLID, WAITING, ABSENT = "solid", "waiting", "absent"
"""Owners, in the garbage collector's words: it stays; it is being deleted in the foreground; it does not exist."""

NEVER_OWNED: Final = frozenset({"Event"})
DISCOVERY_RETRY: Final = 1.0
"""Seconds after which discovery is repeated while it lacks a kind whose definition is established."""
DISCOVER: Final = "discover"


async def run(client: Client, clock: Clock, options: ActorOptions) -> None:
    """Delete objects without owners; carry out foreground deletions and deletions that orphan dependents."""
    await GarbageCollector(client, clock).run()


class GarbageCollector:
    """Knows the owners of every object of every served kind, all of it from the API."""

    def __init__(self, client: Client, clock: Clock) -> None:
        self._client, self._clock = client, clock
        self._queue: WorkQueue[str] = WorkQueue(clock)
        self._discovery: WorkQueue[str] = WorkQueue(clock)
        self._graph = OwnerGraph()
        self._definitions = InformerStore(kinds.CRD, lambda key, old, new: self._discovery.add(DISCOVER))
        self._watched: dict[Kind, tuple[InformerStore, anyio.CancelScope]] = {}

    async def run(self) -> None:
        """Collect until cancelled."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(run_informers, self._client, self._clock, self._definitions)
            self._discovery.add(DISCOVER)

            async def discover(_: str) -> float | None:
                return await self._discover(tasks)

            tasks.start_soon(self._discovery.run, discover)
            await self._queue.run(self._process)

    async def _discover(self, tasks: TaskGroup) -> float | None:
        """Watch exactly the kinds that are served."""
        served = {kind for kind in await self._client.kinds() if kind.name not in NEVER_OWNED}
        for kind in sorted(served - self._watched.keys(), key=lambda kind: (kind.group, kind.plural)):
            store = InformerStore(kind, partial(self._on_object, kind))
            self._watched[kind] = store, anyio.CancelScope()
            tasks.start_soon(self._watch, *self._watched[kind])
        for kind in self._watched.keys() - served:
            self._watched.pop(kind)[1].cancel()
        discovered = {(kind.group, kind.plural) for kind in served}
        specs = [definition["spec"] for definition in self._definitions.objects.values() if is_established(definition)]
        established = {(spec["group"], spec["names"]["plural"]) for spec in specs}
        return None if established <= discovered else DISCOVERY_RETRY

    async def _watch(self, store: InformerStore, scope: anyio.CancelScope) -> None:
        with scope:
            await run_informers(self._client, self._clock, store)

    def _on_object(self, kind: Kind, key: Key, old: Body | None, new: Body | None) -> None:
        """Update the graph, and queue what the change concerns: the object, its dependents, and owners that wait for it."""
        if old is not None and (new is None or uid_of(new) != uid_of(old)):
            self._enqueue(self._graph.dependents(uid_of(old)))
            self._graph.remove(uid_of(old))
        if new is not None:
            self._graph.put(Node(kind, new))
            if waits_for_dependents(new):
                self._enqueue(self._graph.dependents(uid_of(new)))
            if _relevant_fields(new) != _relevant_fields(old) and (owners_of(new) or finalizers_of(new)):
                self._queue.add(uid_of(new))
        for reference in owners_of(old):
            owner = self._graph.get(reference["uid"])
            if owner is not None and waits_for_dependents(owner.body):
                self._queue.add(reference["uid"])

    def _enqueue(self, nodes: Sequence[Node]) -> None:
        for node in nodes:
            self._queue.add(uid_of(node.body))

    async def _process(self, uid: str) -> float | None:
        # Which objects have no dependents is known only after everything has been listed.
        for store in [store for store, _ in self._watched.values() if not store.synced.is_set()]:
            await store.synced.wait()
        node = self._graph.get(uid)
        if node is None:
            return None
        if is_deleting(node.body) and ORPHAN in finalizers_of(node.body):
            await self._orphan_dependents(node)
        elif waits_for_dependents(node.body):
            await self._process_foreground_deletion(node)
        elif not is_deleting(node.body) and owners_of(node.body):
            await self._collect(node)
        return None

    async def _orphan_dependents(self, owner: Node) -> None:
        uid = uid_of(owner.body)
        for dependent in self._graph.dependents(uid):
            await self._set_owners(dependent, owners_without(dependent.body, {uid}))
        await self._remove_finalizer(owner, ORPHAN)

    async def _process_foreground_deletion(self, owner: Node) -> None:
        dependents = self._graph.dependents(uid_of(owner.body))
        if any(blocks(dependent.body, uid_of(owner.body)) for dependent in dependents):
            self._enqueue([dependent for dependent in dependents if not is_deleting(dependent.body)])
        else:
            await self._remove_finalizer(owner, FOREGROUND)

    async def _collect(self, node: Node) -> None:
        """Delete the object if no owner is left; otherwise remove references to owners that are gone."""
        owners = owners_of(node.body)
        states = {owner["uid"]: await self._state(node, owner) for owner in owners}
        if SOLID in states.values():
            gone = {uid for uid, state in states.items() if state != SOLID}
            if gone:
                await self._set_owners(node, owners_without(node.body, gone))
        elif WAITING in states.values() and (dependents := self._graph.dependents(uid_of(node.body))):
            is_circular = any(waits_for_dependents(dependent.body) for dependent in dependents)
            if is_circular and any(owner.get("blockOwnerDeletion") for owner in owners):
                # Owners in a circle would wait for each other for ever. The change queues the object again.
                await self._set_owners(node, [{**owner, "blockOwnerDeletion": False} for owner in owners])
            else:
                await self._delete(node, "Foreground")
        else:
            finalizers = finalizers_of(node.body)
            await self._delete(node, "Orphan" if ORPHAN in finalizers else "Foreground" if FOREGROUND in finalizers else "Background")

    async def _state(self, node: Node, reference: OwnerReference) -> str:
        """The state of one owner. Watches of two kinds are not in step, so an owner that is not known is read from the server."""
        namespace = key_of(node.body)[0]
        owner = self._graph.get(reference["uid"])
        if owner is not None and key_of(owner.body)[0] in ("", namespace):
            return WAITING if waits_for_dependents(owner.body) else SOLID
        if self._graph.was_deleted(reference["uid"]):
            return ABSENT
        kind = self._kind_of(reference)
        if kind is None or (kind.namespaced and not namespace):
            return SOLID  # It cannot be read, so nothing is deleted.
        try:
            live = await self._client.get(kind, namespace if kind.namespaced else "", reference["name"])
        except NotFound:
            return ABSENT
        return SOLID if uid_of(live) == reference["uid"] else ABSENT

    def _kind_of(self, reference: OwnerReference) -> Kind | None:
        group = reference["apiVersion"].rpartition("/")[0]
        return next((kind for kind in self._watched if (kind.group, kind.name) == (group, reference["kind"])), None)

    async def _set_owners(self, node: Node, owners: Sequence[OwnerReference]) -> None:
        await self._patch(node, {"ownerReferences": list(owners) or None})

    async def _remove_finalizer(self, node: Node, finalizer: str) -> None:
        await self._patch(node, {"finalizers": [other for other in finalizers_of(node.body) if other != finalizer] or None})

    async def _patch(self, node: Node, metadata: dict[str, Any]) -> None:
        bound = {"uid": uid_of(node.body), "resourceVersion": node.body["metadata"]["resourceVersion"]}
        with suppress(NotFound):
            answer = await self._client.patch(node.kind, *key_of(node.body), {"metadata": {**bound, **metadata}})
            if node.kind in self._watched:
                self._watched[node.kind][0].assume(answer)

    async def _delete(self, node: Node, propagation: str) -> None:
        metadata = node.body["metadata"]
        with suppress(NotFound):
            await self._client.delete(
                node.kind, *key_of(node.body), uid=metadata["uid"], revision=metadata["resourceVersion"], propagation=propagation
            )


def _relevant_fields(body: Body | None) -> tuple[object, ...]:
    """The fields on which it depends whether an object is deleted."""
    return (uid_of(body), owners_of(body), finalizers_of(body), is_deleting(body)) if body else ()
