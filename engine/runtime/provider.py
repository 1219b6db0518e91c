"""Provider: the cluster as passes use it; implemented over an API server, a snapshot file or the sandbox."""

from collections.abc import AsyncGenerator, Callable, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, Literal, Protocol, runtime_checkable

from msgspec import Struct, field

from engine.errors import ClusterError, ServerFault, Throttled, Unreachable
from engine.event import Event
from engine.ids import Kind, ResourceId
from engine.observed import NOTHING_UNLISTED, Live, Unlisted
from engine.operation import Operation
from engine.shards import Shard
from engine.world_update import NO_CHANGES, Changes, LiveChange

TRANSIENT = (Unreachable, ServerFault, Throttled)
"""Errors after which the same request may succeed later."""


class Scope(Struct, frozen=True):
    """What to list: root kinds, the kinds of their children, and the kinds that they refer to."""

    roots: tuple[Kind, ...]
    children: tuple[Kind, ...]
    selector: str
    """Label selector of our children. Roots, references and children with `finalizers` are listed without a selector."""
    namespaces: tuple[str, ...] = ()
    """Empty: all namespaces."""
    references: tuple[Kind, ...] = ()
    """A kind that is also among the roots or the children is listed once, without a selector."""
    shard: Shard | None = None
    """The shard to which the namespaces must belong, and cluster-scoped roots and children; None: all of them.

    Cluster-scoped references are listed in any case.
    """
    finalizers: Mapping[Kind, tuple[str, ...]] = field(default_factory=dict)
    """Kinds of children that only the engine makes -> our finalizers: an object that has one counts although it has lost our labels. No
    list would show it, and only we can let it go."""


class Observation(Struct, frozen=True, eq=False):
    """Everything that one listing of the cluster returned, and what could not be listed."""

    roots: Sequence[Live]
    children: Sequence[Live]
    incomplete: Mapping[str, Unlisted] = NOTHING_UNLISTED
    """Key of a kind -> why it could not be listed completely (403, 5xx). Kinds that the server does not serve are not in here."""
    references: Sequence[Live] = ()
    unserved: frozenset[str] = frozenset()
    """Names of the kinds that the server does not serve: there are no objects of them."""
    token: object = field(default_factory=object)
    """Stands for this observation."""
    after: object | None = None
    """The token of an earlier observation from which this one differs by `changes` alone; None: it is not known what has changed."""
    changes: Changes = NO_CHANGES
    """What has changed since then."""

    def changes_since(self, token: object) -> Changes | None:
        """What has changed since the observation of that token; None if that is not known."""
        if token is None:
            return None
        return NO_CHANGES if self.token is token else self.changes if self.after is token else None


class TakenNames(Struct, frozen=True):
    """Which of some objects exist."""

    ids: frozenset[ResourceId] = frozenset()
    """Those that exist, or did a moment ago."""
    unread: Mapping[str, ClusterError] = field(default_factory=dict)
    """Kind name -> why it is not known which of its objects exist."""


class Provider(Protocol):
    """Reads and writes objects, and writes events. Raises only `engine.errors.ClusterError` and its subclasses."""

    async def observe(self, scope: Scope) -> Observation:
        """List all kinds of the scope concurrently. Raises `Unauthorized`, and `Unreachable` when no list is answered."""
        ...

    async def execute(self, operation: Operation, uids: Mapping[ResourceId, str]) -> Mapping[str, Any] | None:
        """Send the API call of an operation with its preconditions; `uids` are the uids of owners that the same plan has created.

        Returns the object as it is afterwards (at least its metadata), or None when it is gone. For release and delete an object that no
        longer exists is a success. Raises `AlreadyExists`, `Conflict`, `Forbidden`, `Invalid`, `NotFound`, `Throttled`, `Unreachable`,
        `ServerFault`.
        """
        ...

    async def get(self, id: ResourceId) -> Live | None:
        """One object, read from the server now; None if it does not exist."""
        ...

    async def taken(self, ids: Collection[ResourceId]) -> TakenNames:
        """Which of these objects exist, found out with few calls, those of others too. Raises `Unauthorized` and transient errors."""
        ...

    async def record(self, event: Event) -> None:
        """Write a Kubernetes Event."""
        ...

    async def serves(self, kind: Kind) -> bool:
        """Whether the cluster serves that kind."""
        ...


@runtime_checkable
class TryingProvider(Protocol):
    """An optional capability of a `Provider`: its server checks writes without storing them."""

    def trying(self) -> "Provider | None":
        """A provider whose `execute` is a dry run; None if the server that it reads from cannot do that."""
        ...


@runtime_checkable
class DescribingProvider(Protocol):
    """An optional capability of a `Provider`: its server publishes the types that it serves."""

    async def openapi(self, version: str) -> Mapping[str, Any]:
        """The OpenAPI document (v3) of a group and version, e.g. `api/v1`; empty if there is none. Raises `ClusterError`."""
        ...


@runtime_checkable
class ScanningProvider(Protocol):
    """An optional capability of a `Provider`: it reads all objects of a kind without keeping them."""

    async def scan(self, kind: Kind, visit: Callable[[Mapping[str, Any]], bool], *, fields: str = "") -> None:
        """Call `visit` with each object of the kind in all namespaces, as the server sends it, until it returns false.

        `fields`: a field selector in the API's notation; empty selects everything. Raises `engine.errors.ClusterError`.
        """
        ...


@runtime_checkable
class RecordedProvider(Protocol):
    """A `Provider` over a record of a cluster: an object that it does not contain may exist all the same."""

    @property
    def recorded_at(self) -> str:
        """Where the record is; empty if there is none, as for an empty cluster."""
        ...


@runtime_checkable
class WatchingProvider(Protocol):
    """An optional capability of a `Provider`: it watches the scope, so that `observe` makes no call and changes are noticed."""

    def watching(self, scope: Scope) -> AbstractAsyncContextManager[None]:
        """Watch everything in the scope while the block runs."""
        ...

    async def changed(self, concerns: Callable[[LiveChange], bool] | None = None, *, keeping: bool = False) -> None:
        """Wait until something has changed since the last `observe`; return at once if it has already.

        With `concerns`: until it is true of a change, or until it is not known what has changed. Changes of which it is not true are
        forgotten. With `keeping` they are kept for other waits before the next `observe`, as is what is not known.
        """
        ...

    def compact(self) -> None:
        """Keep what was observed in less memory. To be called when nothing changes for a while: reading it again takes longer."""
        ...


@runtime_checkable
class DividingProvider(Protocol):
    """An optional capability of a `Provider`: several shards watch the cluster with one set of watches."""

    def dividing(self, count: int) -> AbstractAsyncContextManager[Callable[[Shard], Provider]]:
        """Yield what returns the provider of a shard, one of `count`. It may be used while the block runs.

        A `Scope` that it observes or watches has that shard. Objects of a shard are kept only while its provider is watching.
        """
        ...


Body = Mapping[str, Any]
PatchType = Literal["merge", "json", "strategic", "apply"]


class Listing(Struct, frozen=True):
    """All objects of a kind at one revision; a watch from `revision` on misses nothing."""

    items: list[dict[str, Any]]
    revision: str


class Client(Protocol):
    """CRUD and watch. Raises only `engine.errors.ClusterError` and its subclasses.

    `labels` and `fields` are selectors in the API's notation; empty selects everything.
    """

    async def list(self, kind: Kind, namespace: str = "", *, labels: str = "", fields: str = "") -> Listing:
        """All objects of the kind, in one namespace or (empty) in all; pages are joined."""
        ...

    def watch(
        self, kind: Kind, namespace: str = "", *, since: str, labels: str = "", fields: str = "", on_open: Callable[[], None] | None = None
    ) -> AsyncGenerator[tuple[str, dict[str, Any]]]:
        """Events (`ADDED`, `MODIFIED`, `DELETED`, `BOOKMARK`) after revision `since`, until the server ends the stream.

        `on_open` is called when the server has accepted the watch. Raises `Expired` when the server no longer has the revision.
        Use it with `contextlib.aclosing`.
        """
        ...

    async def get(self, kind: Kind, namespace: str, name: str, *, subresource: str = "") -> dict[str, Any]:
        """One object, or a subresource of it (`scale`). Raises `NotFound`."""
        ...

    async def create(self, kind: Kind, namespace: str, body: Body, *, name: str = "", subresource: str = "") -> dict[str, Any]:
        """POST to the collection, or, with `name` and `subresource`, to a subresource of one object (a pod's `binding` or `eviction`).

        Returns the server's answer: the created object, or for some subresources a Status. Raises `AlreadyExists`, `Conflict`
        (a pod that is bound already), `NotFound`, `Invalid`, `Forbidden`.
        """
        ...

    async def replace(self, kind: Kind, namespace: str, name: str, body: Body, *, subresource: str = "") -> dict[str, Any]:
        """PUT, bound to the resourceVersion in the body if there is one. Raises `Conflict`, `NotFound`."""
        ...

    async def patch(
        self, kind: Kind, namespace: str, name: str, body: Any, *, how: PatchType = "merge", subresource: str = "", force: bool = False
    ) -> dict[str, Any]:
        """PATCH of the given type; `force` is for `apply` only. Raises `Conflict`, `NotFound`, `Invalid`."""
        ...

    async def delete(
        self, kind: Kind, namespace: str, name: str, *, uid: str = "", revision: str = "", propagation: str = "", grace: int | None = None
    ) -> dict[str, Any]:
        """DELETE; `uid` and `revision`, if not empty, are preconditions, `grace` is the grace period in seconds (None: the object's own).

        Returns the server's answer: the object while it terminates, or a Status. Raises `Conflict` when a precondition fails, `NotFound`.
        """
        ...

    async def kinds(self) -> Sequence[Kind]:
        """The kinds that the server can list and watch, each once in its preferred version."""
        ...
