"""Cluster: the world behind any client of a Kubernetes API, in process, sandboxed or real."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import anyio

from engine.errors import ClusterError, Conflict, Invalid, NotFound, Unauthorized, Unreachable
from engine.event import Event
from engine.ids import Kind, ResourceId
from engine.mask import masked
from engine.observed import Live, live
from engine.operation import Operation
from engine.planner import owner_reference
from engine.runtime.client import Client
from engine.runtime.clock import Clock
from engine.runtime.provider import Observation, Scope
from engine.verb import Verb
from providers.listing import is_hole, is_older, listed, serves
from providers.recorder import Recorder
from providers.scoping import Target, sighting, targets
from resources.base import kinds

KINDS: Mapping[tuple[str, str], Kind] = {(kind.group, kind.name): kind for kind in kinds.KINDS}


class Cluster:
    """`engine.runtime.provider.Provider` over a client."""

    def __init__(self, client: Client, clock: Clock) -> None:
        self._client = client
        self._kinds = dict(KINDS)
        self._recorder = Recorder(client, clock)

    async def observe(self, scope: Scope) -> Observation:
        """List all kinds of the scope at once. Raises `Unauthorized`, and `Unreachable` when no list at all is answered."""
        self.know(scope)
        look = _Look(self._client, scope)
        async with anyio.create_task_group() as lists:
            for target in targets(scope):
                lists.start_soon(look.at, target)
        return look.sighting()

    def know(self, scope: Scope) -> None:
        """Learn the kinds of a scope, for plug-ins bring kinds of their own: whatever is written has been looked at before."""
        self._kinds.update({(kind.group, kind.name): kind for kind in (*scope.children, *scope.references)})

    async def execute(self, operation: Operation, uids: Mapping[ResourceId, str]) -> Mapping[str, Any] | None:
        """Make the call that the operation stands for. A vanished object is success for what goes."""
        answer = await self._call(operation, uids)
        return masked(answer) if answer is not None else None

    async def _call(self, operation: Operation, uids: Mapping[ResourceId, str]) -> Mapping[str, Any] | None:
        kind = self._kinds[operation.id.group, operation.id.kind]
        namespace, name = operation.id.namespace, operation.id.name
        match operation.verb:
            case Verb.CREATE:
                return await self._create(kind, operation, uids)
            case Verb.REPLACE:
                await self._delete(kind, operation)
                return await self._create(kind, operation, uids)
            case Verb.PATCH:
                return await self._client.patch(kind, namespace, name, _bound(operation))
            case Verb.STATUS:
                return await self._client.patch(kind, namespace, name, _bound(operation), subresource="status")
            case Verb.RELEASE:
                return await self._release(kind, operation)
            case Verb.DELETE:
                return await self._delete(kind, operation)

    async def _create(self, kind: Kind, operation: Operation, uids: Mapping[ResourceId, str]) -> Mapping[str, Any]:
        body = operation.body
        if operation.owners:
            references = [owner_reference(wanted, uids) for wanted in operation.owners]
            body = {**body, "metadata": {**body["metadata"], "ownerReferences": references}}
        return await self._client.create(kind, operation.id.namespace, body)

    async def _release(self, kind: Kind, operation: Operation) -> Mapping[str, Any] | None:
        try:
            answer = await self._client.patch(kind, operation.id.namespace, operation.id.name, _released(operation), how="json")
            return _remaining(answer) if answer["metadata"].get("deletionTimestamp") else answer
        except NotFound:
            return None
        except Invalid as error:
            # A JSON patch whose test does not hold is refused like one that makes no sense, and ours does.
            raise Conflict(f"{operation.id} or its finalizers have changed", status=error.status) from error

    async def _delete(self, kind: Kind, operation: Operation) -> Mapping[str, Any] | None:
        expect = operation.expect
        try:
            return _remaining(
                await self._client.delete(kind, operation.id.namespace, operation.id.name, uid=expect.uid, revision=expect.revision)
            )
        except NotFound:
            return None

    async def look(self, id: ResourceId) -> Live | None:
        """That one object, if it is there."""
        try:
            return live(masked(await self._client.get(self._kinds[id.group, id.kind], id.namespace, id.name)))
        except NotFound:
            return None

    async def record(self, event: Event) -> None:
        """Write a Kubernetes Event."""
        await self._recorder.record(event)

    async def serves(self, kind: Kind) -> bool:
        """Whether the cluster serves that kind."""
        return await serves(self._client, kind)


class _Look:
    """What one look has brought so far."""

    def __init__(self, client: Client, scope: Scope) -> None:
        self._client, self._scope = client, scope
        self.found: list[tuple[Kind, Sequence[Live]]] = []
        self.troubles: dict[str, ClusterError] = {}
        self.unserved: set[str] = set()

    async def at(self, target: Target) -> None:
        """Make one list. What is not served is not there; what is not answered is a hole."""
        try:
            found = await listed(self._client, target)
            self.found.append((target.kind, found.lives))
            if is_older(found.kind, self._scope):
                self.unserved.add(target.kind.name)
        except NotFound:
            self.unserved.add(target.kind.name)
        except ClusterError as error:
            if await is_hole(self._client, target.kind, error):
                self.troubles[target.kind.name] = error
            else:
                self.unserved.add(target.kind.name)

    def sighting(self) -> Observation:
        """All of it. Raises what makes it worthless."""
        raise_if_nothing_observed(self.troubles.values(), anything=bool(self.found or self.unserved))
        return sighting(self._scope, self.found, {kind: str(error) for kind, error in self.troubles.items()}, self.unserved)


def raise_if_nothing_observed(troubles: Iterable[ClusterError], *, anything: bool) -> None:
    """Raise what makes a look worthless: that nobody knows us, or that nothing at all was answered."""
    for error in troubles:
        if isinstance(error, Unauthorized) or (isinstance(error, Unreachable) and not anything):
            raise error


def _remaining(answer: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """What is left of an object that goes, by the server's answer; nothing where it tells that it has gone, with its last finalizer."""
    metadata = answer.get("metadata") or {}
    waits = metadata.get("finalizers") or metadata.get("deletionGracePeriodSeconds")
    return answer if metadata.get("deletionTimestamp") and waits else None


def _bound(operation: Operation) -> dict[str, Any]:
    """A merge patch that holds only for the incarnation and the revision that were judged."""
    metadata = {**operation.body.get("metadata", {}), "uid": operation.expect.uid, "resourceVersion": operation.expect.revision}
    return {**operation.body, "metadata": metadata}


def _released(operation: Operation) -> list[dict[str, Any]]:
    """A JSON patch that takes our finalizers off if they are where they were judged to be, the last one first.

    What others add or take off behind them, as the garbage collector does in the middle of a deletion, is no conflict.
    """
    patch = [{"op": "test", "path": "/metadata/uid", "value": operation.expect.uid}]
    for place, finalizer in reversed(list(enumerate(operation.body["of"]))):
        if finalizer in operation.body["finalizers"]:
            path = f"/metadata/finalizers/{place}"
            patch += [{"op": "test", "path": path, "value": finalizer}, {"op": "remove", "path": path}]
    return patch
