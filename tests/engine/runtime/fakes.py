"""Fakes: a provider over a dictionary that records its calls and fails on demand, and builders of operations and plans."""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

import anyio

from engine.errors import AlreadyExists, ClusterError, Conflict, NotFound
from engine.event import Event
from engine.ids import Kind, Owner, ResourceId
from engine.observed import Live, Unlisted, live
from engine.operation import BoundOwner, Cause, Create, Expect, Operation, Unknown, body_of, operation_key
from engine.paths import merge_patch
from engine.plan import Plan
from engine.resource import Body
from engine.runtime.clock import Clock
from engine.runtime.provider import Observation, Scope, TakenNames
from engine.verb import Verb
from tests.operations import operation_of

ROOT = Kind("example.io", "v1", "Root", "roots", status=True)
LEAF = Kind("example.io", "v1", "Leaf", "leaves", status=True)
SCOPE = Scope((ROOT,), (LEAF,), "app=ours")


class FakeProvider:
    """A `Provider` over a dictionary."""

    def __init__(self, *bodies: Body) -> None:
        self.objects: dict[ResourceId, dict[str, Any]] = {}
        self.revision = 0
        self.started: list[str] = []
        self.writes: Counter[Verb] = Counter()
        self.observe_errors: list[ClusterError] = []
        """What the next observations raise, one after the other."""
        self.ended: list[str] = []
        self.got: list[ResourceId] = []
        """The objects that were read one by one."""
        self.asked: set[ResourceId] = set()
        """The objects of which it was asked whether they exist."""
        self.get_errors: dict[ResourceId, ClusterError] = {}
        """Object -> what reading it raises."""
        self.events: list[Event] = []
        self.incomplete: dict[str, str] = {}
        self.failing: dict[str, list[Exception]] = defaultdict(list)
        """Key of an operation -> what its next calls raise."""
        self.lost_answers: dict[str, ClusterError] = {}
        """Key of an operation -> what its next call raises after it has been done."""
        self.gates: dict[str, anyio.Event] = {}
        """Key of an operation -> the event it waits for before it answers."""
        self.on_call: Callable[[str], None] = lambda key: None
        self.in_progress = 0
        self.most_in_progress = 0
        for body in bodies:
            self.put(body)

    def put(self, body: Body) -> dict[str, Any]:
        """Store an object, as another writer would."""
        self.revision += 1
        id = live(body).id
        before = self.objects.get(id, {}).get("metadata", {})
        uid = before.get("uid") or f"uid-{self.revision}"
        metadata = {"uid": uid, "generation": 1, **body["metadata"], "resourceVersion": str(self.revision)}
        self.objects[id] = {**body, "metadata": metadata}
        return self.objects[id]

    async def observe(self, scope: Scope) -> Observation:
        """All objects, without the kinds that are incomplete."""
        if self.observe_errors:
            raise self.observe_errors.pop(0)
        lives = [live(body) for body in self.objects.values()]
        roots = [live for live in lives if live.id.kind == ROOT.name]
        children = [live for live in lives if live.id.kind != ROOT.name and live.id.kind not in self.incomplete]
        return Observation(roots, children, {kind: Unlisted(why) for kind, why in self.incomplete.items()})

    async def execute(self, operation: Operation, uids: Mapping[ResourceId, str]) -> Mapping[str, Any] | None:
        """Do it, or raise what was prepared for it."""
        self.started.append(operation.key)
        self.writes[operation.verb] += 1
        self.in_progress += 1
        self.most_in_progress = max(self.most_in_progress, self.in_progress)
        try:
            self.on_call(operation.key)
            await anyio.lowlevel.checkpoint()
            if gate := self.gates.get(operation.key):
                await gate.wait()
            if failures := self.failing.get(operation.key):
                raise failures.pop(0)
            done = self._do(operation, uids)
            if lost := self.lost_answers.pop(operation.key, None):
                raise lost
            return done
        finally:
            self.in_progress -= 1
            self.ended.append(operation.key)

    def _do(self, operation: Operation, uids: Mapping[ResourceId, str]) -> dict[str, Any] | None:
        existing = self.objects.get(operation.id)
        if operation.verb is Verb.CREATE:
            if existing:
                raise AlreadyExists(f"{operation.id} already exists")
            owners = [_owner(reference, uids) for reference in operation.owners]
            return self.put({**body_of(operation), "metadata": {**body_of(operation)["metadata"], "ownerReferences": owners}})
        if operation.verb is Verb.DELETE:
            self.objects.pop(operation.id, None)
            return None
        if not existing:
            raise NotFound(f"{operation.id} not found")
        if operation.expect.revision not in ("", existing["metadata"]["resourceVersion"]):
            raise Conflict(f"{operation.id} has changed")
        return self.put(merge_patch(existing, body_of(operation)))

    async def get(self, id: ResourceId) -> Live | None:
        """The object, or None."""
        self.got.append(id)
        if error := self.get_errors.get(id):
            raise error
        return live(self.objects[id]) if id in self.objects else None

    async def taken(self, ids: Collection[ResourceId]) -> TakenNames:
        """The objects that exist."""
        self.asked |= set(ids)
        return TakenNames(frozenset(self.objects.keys() & ids))

    async def record(self, event: Event) -> None:
        """Remember the event."""
        self.events.append(event)

    async def serves(self, kind: Kind) -> bool:
        """Yes."""
        return True


def delay(provider: FakeProvider, clock: Clock, seconds: float) -> None:
    """Make the provider take that long for every call."""
    execute = provider.execute

    async def execute_slowly(operation: Operation, uids: Mapping[ResourceId, str]) -> Mapping[str, Any] | None:
        await clock.sleep(seconds)
        return await execute(operation, uids)

    provider.execute = execute_slowly  # type: ignore[method-assign]


def _owner(reference: BoundOwner, uids: Mapping[ResourceId, str]) -> dict[str, Any]:
    uid = uids[reference.uid.id] if isinstance(reference.uid, Unknown) else reference.uid
    owner = reference.owner
    return {"apiVersion": owner.api_version, "kind": owner.id.kind, "name": owner.id.name, "uid": uid, "controller": owner.controller}


def body(kind: Kind, name: str, *, labels: Mapping[str, str] | None = None, **fields: Any) -> dict[str, Any]:
    """A manifest."""
    metadata = {"name": name, "namespace": "default", "labels": {"app": "ours"} if labels is None else dict(labels)}
    return {"apiVersion": kind.api_version, "kind": kind.name, "metadata": metadata, **fields}


def leaf(name: str) -> ResourceId:
    """The identity of a leaf."""
    return LEAF.id("default", name)


def root(name: str = "root") -> ResourceId:
    """The identity of a root."""
    return ROOT.id("default", name)


def create(name: str, *after: str, owner: ResourceId | str | None = None) -> Operation:
    """Create a leaf after other leaves. `owner`: the id of a leaf that the same plan creates, or the uid of the root."""
    references: tuple[BoundOwner, ...] = ()
    if isinstance(owner, ResourceId):
        references = (BoundOwner(Owner(owner, LEAF.api_version), Unknown(owner)),)
    elif owner:
        references = (BoundOwner(Owner(root(), ROOT.api_version), owner),)
    edges = frozenset(operation_key(Verb.CREATE, leaf(before)) for before in after)
    return Create(leaf(name), "missing", Cause.INTENT, manifest=body(LEAF, name), owners=references, after=edges)


def change(verb: Verb, id: ResourceId, fields: Body, *, revision: str = "", after: Iterable[str] = ()) -> Operation:
    """Change an object, or its status."""
    return operation_of(verb, id, "differs", Cause.DRIFT, fields, expect=Expect(revision=revision), after=frozenset(after))


def plan(*operations: Operation, name: str = "root") -> Plan:
    """A plan of those operations."""
    return Plan(root(name), operations)
