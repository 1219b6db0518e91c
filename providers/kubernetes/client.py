"""KubernetesClient: the verbs of a Kubernetes API over HTTP."""

import random
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing
from sys import intern
from typing import Any, TypeVar

from engine.errors import Expired
from engine.ids import Kind, ResourceId
from engine.observed import Live, Source, moment, shared_finalizers, shared_labels
from engine.runtime.provider import Body, Listing, PatchType
from providers.kubernetes.api import DirectApi
from providers.kubernetes.discovery import Discovery, discover
from providers.kubernetes.errors import error_of_status
from providers.kubernetes.wire import (
    JSON,
    METADATA_ONLY_LIST,
    HttpRequest,
    ListPage,
    Metadata,
    Send,
    collection,
    decoded,
    encoded,
    lines,
    member,
    objects,
    query,
    raw_objects,
)

T = TypeVar("T")

ReadPage = Callable[[bytes, Kind], ListPage[T]]

EPOCH = "1970-01-01T00:00:00Z"
WATCH_SECONDS = (270, 330)
"""Shortest and longest duration of a watch; random, so that not all watches end at the same time."""
PAGE_SIZE = "500"
"""Objects of a page, as client-go lists them; the value of `limit`."""
CONTENT_TYPES: dict[PatchType, str] = {
    "merge": "application/merge-patch+json",
    "json": "application/json-patch+json",
    "strategic": "application/strategic-merge-patch+json",
    "apply": "application/apply-patch+yaml",
}


class KubernetesClient:
    """An `engine.runtime.provider.Client` over `DirectApi`. Writes with one field manager; raises only `engine.errors`."""

    def __init__(self, api: DirectApi, field_manager: str = "engine", *, dry_run: bool = False) -> None:
        """`dry_run`: the server checks every write and stores none."""
        self._api = api
        self._manager = field_manager
        self._dry_run = dry_run

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._api!r}>"

    def trying(self) -> "KubernetesClient":
        """A client over the same connections whose writes are dry runs."""
        return KubernetesClient(self._api, self._manager, dry_run=True)

    @property
    def namespace(self) -> str:
        """The default namespace of the kubeconfig or of the pod."""
        return self._api.namespace

    async def aclose(self) -> None:
        """Close all connections."""
        await self._api.aclose()

    async def list(self, kind: Kind, namespace: str = "", *, labels: str = "", fields: str = "") -> Listing:
        """All objects of the kind, in one namespace or (empty) in all; pages are joined."""
        return Listing(*await _list_all(self._api.send, objects, kind, namespace, labels, fields))

    async def pages(self, kind: Kind, *, fields: str = "") -> AsyncGenerator[Sequence[Mapping[str, Any]]]:
        """The objects of the kind in all namespaces, page by page. Use `aclosing`."""
        async with aclosing(_each_page(self._api.send, objects, kind, fields=fields)) as pages:
            async for page in pages:
                yield page.items

    async def names(self, kind: Kind, namespace: str) -> frozenset[str]:
        """The names of all objects of the kind in a namespace. Only their metadata is sent."""
        items, _ = await _list_all(self._api.send, raw_objects, kind, namespace, "", "", accept=METADATA_ONLY_LIST)
        return frozenset(metadata.name for metadata, _ in items)

    async def lives(
        self, kind: Kind, namespace: str, labels: str, keep: Callable[[Mapping[str, str], bytes], Source]
    ) -> tuple[Sequence[Live], str]:
        """All objects of the kind as `Live` objects, of which the metadata is parsed; and the revision from which a watch misses nothing.

        `keep` returns what is kept of the bytes of an object with these labels.
        """

        def read(content: bytes, kind: Kind) -> ListPage[Live]:
            page = raw_objects(content, kind)
            lives = [_live(kind, metadata, keep(metadata.labels or {}, raw)) for metadata, raw in page.items]
            return ListPage(lives, page.revision, page.continue_token)

        return await _list_all(self._api.send, read, kind, namespace, labels, "")

    async def watch(
        self, kind: Kind, namespace: str = "", *, since: str, labels: str = "", fields: str = "", on_open: Callable[[], None] | None = None
    ) -> AsyncGenerator[tuple[str, dict[str, Any]]]:
        """Events after revision `since`, bookmarks among them, until the server ends the stream.

        Raises `Expired` when the server no longer has the revision, `Unreachable` when the stream breaks or is silent. Use `aclosing`.
        """
        parameters = query(
            watch="1",
            allowWatchBookmarks="true",
            resourceVersion=since,
            timeoutSeconds=str(random.randint(*WATCH_SECONDS)),
            labelSelector=labels,
            fieldSelector=fields,
        )
        stream = await self._api.stream(HttpRequest("GET", collection(kind, namespace) + parameters))
        async with aclosing(stream), aclosing(stream.chunks()) as chunks, aclosing(lines(chunks)) as events:
            if on_open is not None:
                on_open()
            async for line in events:
                event = decoded(line)
                if event.get("type") == "ERROR":
                    raise error_of_status(event.get("object") or {})
                yield event["type"], event["object"]

    async def get(self, kind: Kind, namespace: str, name: str, *, subresource: str = "") -> dict[str, Any]:
        """One object, or a subresource of it (`scale`). Raises `NotFound`."""
        return await self._send("GET", member(kind, namespace, name, subresource))

    async def create(self, kind: Kind, namespace: str, body: Body, *, name: str = "", subresource: str = "") -> dict[str, Any]:
        """POST to the collection, or, with `name` and `subresource`, to a subresource of one object.

        Raises `AlreadyExists`, `Conflict`, `NotFound`, `Invalid`, `Forbidden`; after `Unreachable` and `ServerFault` the object may have
        been created.
        """
        path = member(kind, namespace, name, subresource) if name else collection(kind, namespace)
        return await self._send("POST", path + self._write_query(), encoded(body))

    async def replace(self, kind: Kind, namespace: str, name: str, body: Body, *, subresource: str = "") -> dict[str, Any]:
        """PUT, bound to the resourceVersion in the body if there is one. Raises `Conflict`, `NotFound`."""
        path = member(kind, namespace, name, subresource) + self._write_query()
        return await self._send("PUT", path, encoded(body))

    async def patch(
        self, kind: Kind, namespace: str, name: str, body: Any, *, how: PatchType = "merge", subresource: str = "", force: bool = False
    ) -> dict[str, Any]:
        """PATCH of the given type; `force` is for `apply` only. Raises `Conflict`, `NotFound`, `Invalid`."""
        parameters = self._write_query(force="true" if force and how == "apply" else "")
        path = member(kind, namespace, name, subresource) + parameters
        return await self._send("PATCH", path, encoded(body), content_type=CONTENT_TYPES[how])

    async def delete(
        self, kind: Kind, namespace: str, name: str, *, uid: str = "", revision: str = "", propagation: str = "", grace: int | None = None
    ) -> dict[str, Any]:
        """DELETE with preconditions. Raises `Conflict` when uid or revision differ, `NotFound`."""
        options = {
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "preconditions": {key: value for key, value in (("uid", uid), ("resourceVersion", revision)) if value},
            "propagationPolicy": propagation or None,
            "gracePeriodSeconds": grace,
        }
        body = encoded({key: value for key, value in options.items() if value not in (None, {})})
        return await self._send("DELETE", member(kind, namespace, name) + query(dryRun="All" if self._dry_run else ""), body)

    def _write_query(self, **parameters: str) -> str:
        return query(fieldManager=self._manager, dryRun="All" if self._dry_run else "", **parameters)

    async def kinds(self) -> Sequence[Kind]:
        """The kinds that the server can list and watch, each once in its preferred version."""
        return (await self.discover()).kinds()

    async def discover(self) -> Discovery:
        """All kinds that the server serves in all versions, and the API groups that did not answer."""
        return await discover(self._api.send)

    async def version(self) -> dict[str, Any]:
        """The server's version."""
        return await self._send("GET", "/version")

    async def openapi(self, version: str) -> dict[str, Any]:
        """The OpenAPI document (v3) of a group and version, e.g. `api/v1`."""
        return await self._send("GET", f"/openapi/v3/{version}")

    async def _send(
        self, method: str, path: str, body: bytes | None = None, *, content_type: str = JSON, accept: str = JSON
    ) -> dict[str, Any]:
        return decoded((await self._api.send(HttpRequest(method, path, body, content_type, accept))).content)


def _live(kind: Kind, metadata: Metadata, source: Source) -> Live:
    return Live(
        id=ResourceId(kind.group, kind.name, intern(metadata.namespace), intern(metadata.name)),
        uid=intern(metadata.uid),
        revision=metadata.resource_version,
        generation=metadata.generation,
        created_at=moment(metadata.creation_timestamp or EPOCH),
        deleting_since=moment(metadata.deletion_timestamp) if metadata.deletion_timestamp else None,
        owners=tuple(reference.owner() for reference in metadata.owner_references),
        labels=shared_labels(metadata.labels),
        finalizers=shared_finalizers(metadata.finalizers),
        source=source,
    )


async def _list_all(
    send: Send, read: ReadPage[T], kind: Kind, namespace: str, labels: str, fields: str, *, accept: str = JSON
) -> tuple[list[T], str]:
    """All objects of the kind, each as `read` returns it, and the revision of the list. `accept`: the form to ask for."""
    try:
        return await _list_in_pages(send, read, kind, namespace, labels, fields, PAGE_SIZE, accept)
    except Expired:
        # The server no longer has the revision of the first page: read everything in one page.
        return await _list_in_pages(send, read, kind, namespace, labels, fields, "", accept)


async def _list_in_pages(
    send: Send, read: ReadPage[T], kind: Kind, namespace: str, labels: str, fields: str, limit: str, accept: str
) -> tuple[list[T], str]:
    items: list[T] = []
    revision = ""
    async with aclosing(_each_page(send, read, kind, namespace, labels, fields, limit, accept)) as pages:
        async for page in pages:
            items.extend(page.items)
            revision = page.revision
    return items, revision


async def _each_page(
    send: Send,
    read: ReadPage[T],
    kind: Kind,
    namespace: str = "",
    labels: str = "",
    fields: str = "",
    limit: str = PAGE_SIZE,
    accept: str = JSON,
) -> AsyncGenerator[ListPage[T]]:
    """One page after the other. Raises `Expired` if the server no longer has the revision of the first page. Use `aclosing`."""
    path, token = collection(kind, namespace), ""
    while True:
        parameters = query(labelSelector=labels, fieldSelector=fields, limit=limit, continue_=token)
        page = read((await send(HttpRequest("GET", path + parameters, accept=accept))).content, kind)
        yield page
        token = page.continue_token
        if not token:
            return
