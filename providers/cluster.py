"""Cluster: the world behind any client of a Kubernetes API, in process, sandboxed or real."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, Protocol, runtime_checkable

import anyio

from engine.errors import ClusterError, Conflict, Forbidden, Invalid, NotFound, ServerFault, Unauthorized, Unreachable
from engine.ids import Kind, ResourceId
from engine.mask import masked
from engine.observed import Live, live
from engine.operation import Event, Operation, Verb
from engine.plan import reference
from engine.runtime.client import Client
from engine.runtime.clock import Clock
from engine.runtime.provider import Scope, Sighting
from providers.asking import Open
from providers.recorder import Recorder
from providers.scoping import children_among, is_of
from resources import kinds

KINDS: Mapping[tuple[str, str], Kind] = {(kind.group, kind.name): kind for kind in kinds.KINDS}


@runtime_checkable
class Sparing(Protocol):
    """A client that can leave objects unparsed."""

    async def lives(self, kind: Kind, namespace: str, labels: str) -> Sequence[Live]:
        """All objects of a kind, as bytes with typed metadata."""
        ...


class Cluster:
    """`engine.runtime.provider.Provider` over a client."""

    def __init__(self, client: Client, clock: Clock) -> None:
        self._client = client
        self._kinds = dict(KINDS)
        self._recorder = Recorder(client, clock)

    async def observe(self, scope: Scope) -> Sighting:
        """List all kinds of the scope at once. Raises `Unauthorized`, and `Unreachable` when no list at all is answered."""
        look = _Look(self._client)
        # Plug-ins bring kinds of their own; whatever is written has been looked at before.
        self._kinds.update({(kind.group, kind.name): kind for kind in (*scope.children, *scope.neighbours)})
        async with anyio.create_task_group() as lists:
            for namespace in scope.namespaces or ("",):
                for kind in scope.children:
                    if kind not in scope.neighbours:
                        lists.start_soon(look.at, kind, namespace, scope.selector, look.children)
            for kind in dict.fromkeys((*scope.neighbours, *scope.roots)):
                for namespace in (scope.namespaces if kind.namespaced else ()) or ("",):
                    lists.start_soon(look.at, kind, namespace, "", look.neighbours if kind in scope.neighbours else look.roots)
        look.children += children_among(look.neighbours, scope)
        look.roots += [one for one in look.neighbours if is_of(one, scope.roots)]
        return look.sighting()

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
                await self._release(kind, operation)
            case Verb.DELETE:
                await self._delete(kind, operation)
        return None

    async def _create(self, kind: Kind, operation: Operation, uids: Mapping[ResourceId, str]) -> Mapping[str, Any]:
        body = operation.body
        if operation.references:
            references = [reference(wanted, uids) for wanted in operation.references]
            body = {**body, "metadata": {**body["metadata"], "ownerReferences": references}}
        return await self._client.create(kind, operation.id.namespace, body)

    async def _release(self, kind: Kind, operation: Operation) -> None:
        try:
            await self._client.patch(kind, operation.id.namespace, operation.id.name, _released(operation), how="json")
        except NotFound:
            return
        except Invalid as error:
            # A JSON patch whose test does not hold is refused like one that makes no sense, and ours does.
            raise Conflict(f"{operation.id} or its finalizers have changed", status=error.status) from error

    async def _delete(self, kind: Kind, operation: Operation) -> None:
        with suppress(NotFound):
            await self._client.delete(kind, operation.id.namespace, operation.id.name, uid=operation.expect.uid)

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


async def serves(client: Client, kind: Kind) -> bool:
    """Whether the server says that it has that kind, in that version if it tells versions. Raises `ServerFault` where it does not know."""
    if isinstance(client, Open):
        found = await client.discover()
        if not found.serves(kind) and kind.api_version in found.incomplete:
            raise ServerFault(f"{kind.api_version}: {found.incomplete[kind.api_version]}")
        return found.serves(kind)
    return any((served.group, served.name) == (kind.group, kind.name) for served in await client.kinds())


class _Look:
    """What one look has brought so far."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._troubles: dict[str, ClusterError] = {}
        self._answers = 0
        self.roots: list[Live] = []
        self.children: list[Live] = []
        self.neighbours: list[Live] = []
        self._unserved: set[str] = set()

    async def at(self, kind: Kind, namespace: str, labels: str, into: list[Live]) -> None:
        """Look at one kind in one namespace. What is not served is not there; what is not answered is a hole."""
        try:
            into.extend(await _lives(self._client, kind, namespace, labels))
            self._answers += 1
        except NotFound:
            self._answers += 1
            self._unserved.add(kind.name)
        except Forbidden as error:
            await self._forbidden(kind, error)
        except ClusterError as error:
            self._troubles[kind.name] = error

    async def _forbidden(self, kind: Kind, error: Forbidden) -> None:
        """Servers forbid before they look whether there is such a kind at all: what is not served is no hole."""
        try:
            served = await serves(self._client, kind)
        except ClusterError:
            served = True
        if served:
            self._troubles[kind.name] = error
        else:
            self._unserved.add(kind.name)

    def sighting(self) -> Sighting:
        """All of it. Raises what makes it worthless."""
        for error in self._troubles.values():
            if isinstance(error, Unauthorized) or (isinstance(error, Unreachable) and not self._answers):
                raise error
        incomplete = {kind: str(error) for kind, error in sorted(self._troubles.items())}
        return Sighting(self.roots, self.children, incomplete, self.neighbours, frozenset(self._unserved))


async def _lives(client: Client, kind: Kind, namespace: str, labels: str) -> Sequence[Live]:
    """The objects of a kind. What Secrets hold is forgotten at this door: that they hold something is all that anybody may know."""
    if isinstance(client, Sparing):
        found = await client.lives(kind, namespace, labels)
        return [replace(one, source=masked(one.body)) for one in found] if kind == kinds.SECRET else found
    listing = await client.list(kind, namespace, labels=labels)
    frame = {"apiVersion": kind.api_version, "kind": kind.name}
    return [live(masked({**frame, **item})) for item in listing.items]


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
