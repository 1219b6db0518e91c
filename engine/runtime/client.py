"""Client: the verbs of a Kubernetes API that providers, the sandbox's actors and the tests use."""

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from typing import Any, Literal, Protocol

from msgspec import Struct

from engine.ids import Kind

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

    async def create(
        self, kind: Kind, namespace: str, body: Body, *, name: str = "", subresource: str = "", dry_run: bool = False
    ) -> dict[str, Any]:
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
