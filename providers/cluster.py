"""Cluster: the provider over a client of a Kubernetes API, which lists whenever it observes."""

from collections.abc import AsyncGenerator, Callable, Collection, Iterable, Mapping, Sequence
from contextlib import aclosing
from typing import Any, Protocol, runtime_checkable

import anyio

from engine.errors import ClusterError, Conflict, Invalid, NotFound, Unauthorized, Unreachable
from engine.event import Event
from engine.ids import Kind, ResourceId
from engine.mask import masked
from engine.observed import Compressor, Live, Plain, live, unlisted
from engine.operation import Create, Creation, Delete, Operation, Patch, Release, Replace, Scale, WriteStatus, owner_reference
from engine.runtime.clock import Clock
from engine.runtime.provider import Client, Observation, Scope, TakenNames
from providers.key_pair import with_key_pair
from providers.listing import is_newer, is_older, list_lives, serves
from providers.recorder import Recorder
from providers.snapshot import Target, in_scope, observation, targets
from providers.taken_names import taken_names
from resources.base import kinds

KINDS: Mapping[tuple[str, str], Kind] = {(kind.group, kind.name): kind for kind in kinds.KINDS}
PLAIN_BYTES = 16 * 1024**2
"""How much of all lists of an observation stays uncompressed: a command that reads that once would compress longer than it is worth."""


@runtime_checkable
class TryingClient(Protocol):
    """A client whose server checks writes without storing them."""

    def trying(self) -> Client:
        """A client whose writes are dry runs."""
        ...


@runtime_checkable
class DescribingClient(Protocol):
    """A client whose server publishes the types that it serves."""

    async def openapi(self, version: str) -> Mapping[str, Any]:
        """The OpenAPI document (v3) of a group and version."""
        ...


@runtime_checkable
class PagingClient(Protocol):
    """A client that returns a list page by page."""

    def pages(self, kind: Kind, *, fields: str = "") -> AsyncGenerator[Sequence[Mapping[str, Any]]]:
        """The objects of a kind in all namespaces."""
        ...


class Cluster:
    """`engine.runtime.provider.Provider` over a client."""

    def __init__(self, client: Client, clock: Clock, known: Mapping[tuple[str, str], Kind] = KINDS) -> None:
        self._client, self._clock = client, clock
        self._kinds = dict(known)
        self._recorder = Recorder(client, clock)

    async def observe(self, scope: Scope) -> Observation:
        """List all kinds of the scope at once. Raises `Unauthorized`, and `Unreachable` when no list at all is answered."""
        self.register(scope)
        lists = _Lists(self._client, scope, self.use_version)
        async with anyio.create_task_group() as tasks:
            for target in targets(scope):
                tasks.start_soon(lists.add, target)
        return lists.observation()

    def register(self, scope: Scope) -> None:
        """Add the kinds of a scope to those that can be written: plug-ins bring kinds of their own."""
        self._kinds.update({(kind.group, kind.name): kind for kind in (*scope.children, *scope.references)})

    def use_version(self, kind: Kind) -> None:
        """Write objects of a kind in this version from now on."""
        self._kinds[kind.group, kind.name] = kind

    async def execute(self, operation: Operation, uids: Mapping[ResourceId, str]) -> Mapping[str, Any] | None:
        """Make the operation's API call and return its answer, Secrets masked; None if the object is gone, which is a success of DELETE."""
        answer = await self._call(operation, uids)
        return masked(answer) if answer is not None else None

    async def _call(self, operation: Operation, uids: Mapping[ResourceId, str]) -> Mapping[str, Any] | None:
        kind = self._kinds[operation.id.group, operation.id.kind]
        namespace, name = operation.id.namespace, operation.id.name
        match operation:
            case Create():
                return await self._create(kind, operation, uids)
            case Replace():
                await self._delete(kind, operation)
                return await self._create(kind, operation, uids)
            case Patch():
                return await self._client.patch(kind, namespace, name, _bound_patch(operation))
            case Scale():
                await self._client.patch(kind, namespace, name, _bound_patch(operation), subresource="scale")
                return await self._client.get(kind, namespace, name)
            case WriteStatus():
                return await self._client.patch(kind, namespace, name, _bound_patch(operation), subresource="status")
            case Release():
                return await self._release(kind, operation)
            case Delete():
                return await self._delete(kind, operation)

    async def _create(self, kind: Kind, operation: Creation, uids: Mapping[ResourceId, str]) -> Mapping[str, Any]:
        body = with_key_pair(operation.manifest)
        if operation.owners:
            references = [owner_reference(owner, uids) for owner in operation.owners]
            body = {**body, "metadata": {**body["metadata"], "ownerReferences": references}}
        return await self._client.create(kind, operation.id.namespace, body)

    async def _release(self, kind: Kind, operation: Release) -> Mapping[str, Any] | None:
        try:
            answer = await self._client.patch(kind, operation.id.namespace, operation.id.name, _release_patch(operation), how="json")
            return _remaining(answer) if answer["metadata"].get("deletionTimestamp") else answer
        except NotFound:
            return None
        except Invalid as error:
            # The server refuses a JSON patch whose test fails as it refuses a malformed one; ours is well-formed.
            raise Conflict(f"{operation.id}: its uid or finalizers have changed", status=error.status) from error

    async def _delete(self, kind: Kind, operation: Delete | Replace) -> Mapping[str, Any] | None:
        expect = operation.expect
        try:
            return _remaining(
                await self._client.delete(kind, operation.id.namespace, operation.id.name, uid=expect.uid, revision=expect.revision)
            )
        except NotFound:
            return None

    async def get(self, id: ResourceId) -> Live | None:
        """The object of that id, Secrets masked; None if there is none."""
        try:
            return live(masked(await self._client.get(self._kinds[id.group, id.kind], id.namespace, id.name)))
        except NotFound:
            return None

    async def scan(self, kind: Kind, visit: Callable[[Mapping[str, Any]], bool], *, fields: str = "") -> None:
        """Call `visit` with each object of the kind in all namespaces, until it returns false. Pages are not kept."""
        if isinstance(self._client, PagingClient):
            async with aclosing(self._client.pages(kind, fields=fields)) as pages:
                async for page in pages:
                    if not all(map(visit, page)):
                        return
        else:
            all(map(visit, (await self._client.list(kind, fields=fields)).items))

    def trying(self) -> "Cluster | None":
        """The same cluster, every write a dry run; None if the client cannot do that."""
        return Cluster(self._client.trying(), self._clock, self._kinds) if isinstance(self._client, TryingClient) else None

    async def openapi(self, version: str) -> Mapping[str, Any]:
        """The types that the server publishes of a group and version; empty if it publishes none, or the client cannot ask."""
        try:
            return await self._client.openapi(version) if isinstance(self._client, DescribingClient) else {}
        except NotFound:
            return {}

    async def taken(self, ids: Collection[ResourceId]) -> TakenNames:
        """Which of the objects exist. Objects of kinds that we do not know count as absent."""
        known = [(kind, id) for id in sorted(ids) if (kind := self._kinds.get((id.group, id.kind))) is not None]
        return await taken_names(self._client, known)

    async def record(self, event: Event) -> None:
        """Write a Kubernetes Event."""
        await self._recorder.record(event)

    async def serves(self, kind: Kind) -> bool:
        """Whether the cluster serves that kind."""
        return any([await serves(self._client, version) for version in (kind, *kinds.newer(kind))])


class _Lists:
    """The lists of one observation, made concurrently, and their results."""

    def __init__(self, client: Client, scope: Scope, use_version: Callable[[Kind], None]) -> None:
        self._client, self._scope, self._use_version = client, scope, use_version
        self._plain = Plain(PLAIN_BYTES)
        self.results: list[tuple[Kind, Sequence[Live]]] = []
        self.errors: dict[str, ClusterError] = {}
        self.unserved: set[str] = set()

    async def add(self, target: Target) -> None:
        """Make one list. A kind that is not served has no objects; a list that fails leaves the observation incomplete."""
        try:
            listed = await list_lives(self._client, target, Compressor(self._plain))
        except NotFound:
            self.unserved.add(target.kind.key)
        except ClusterError as error:
            self.errors[target.kind.key] = error
        else:
            self.results.append((target.kind, in_scope(target.kind, listed.lives, self._scope)))
            if is_older(listed.kind, self._scope):
                self.unserved.add(target.kind.key)
            if kinds.newer(target.kind):
                self._use_version(listed.kind)
                self.unserved |= {kinds.unread(target.kind)} if is_newer(listed.kind, target.kind) else set()

    def observation(self) -> Observation:
        """All results together. Raises `Unauthorized`, and `Unreachable` if no list was answered."""
        raise_if_nothing_observed(self.errors.values(), anything=bool(self.results or self.unserved))
        return observation(self._scope, self.results, {kind: unlisted(error) for kind, error in self.errors.items()}, self.unserved)


def raise_if_nothing_observed(errors: Iterable[ClusterError], *, anything: bool) -> None:
    """Raise the error that makes an observation worthless: `Unauthorized`, or `Unreachable` if no list was answered."""
    for error in errors:
        if isinstance(error, Unauthorized) or (isinstance(error, Unreachable) and not anything):
            raise error


def _remaining(answer: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The object that a DELETE left behind, from its answer; None if it is gone."""
    metadata = answer.get("metadata") or {}
    is_kept = metadata.get("finalizers") or metadata.get("deletionGracePeriodSeconds")
    return answer if metadata.get("deletionTimestamp") and is_kept else None


def _bound_patch(operation: Patch | Scale | WriteStatus) -> dict[str, Any]:
    """A merge patch that is refused if uid or resourceVersion differ from those that the plan saw."""
    metadata = {**operation.patch.get("metadata", {}), "uid": operation.expect.uid, "resourceVersion": operation.expect.revision}
    return {**operation.patch, "metadata": metadata}


def _release_patch(operation: Release) -> list[dict[str, Any]]:
    """A JSON patch that removes our finalizers if they are at the indices that the plan saw, the last one first.

    Finalizers after them may change meanwhile, as the garbage collector's do during a deletion.
    """
    patch = [{"op": "test", "path": "/metadata/uid", "value": operation.expect.uid}]
    for index, finalizer in reversed(list(enumerate(operation.existing))):
        if finalizer in operation.finalizers:
            path = f"/metadata/finalizers/{index}"
            patch += [{"op": "test", "path": path, "value": finalizer}, {"op": "remove", "path": path}]
    return patch
