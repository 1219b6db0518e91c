"""The wire: requests and answers as values, paths of the API, and bytes into objects."""

import gc
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Generic, TypeVar
from urllib.parse import quote, urlencode

import msgspec
import orjson

from engine.errors import Invalid, ServerFault, Unreachable
from engine.ids import Kind, OwnerRef

T = TypeVar("T")

JSON = "application/json"
METADATA_ONLY = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
"""Asks for metadata instead of the whole object: a third of the bytes, and a tenth less work for the server."""


@dataclass(frozen=True, slots=True)
class Request:
    """One HTTP request, but for the server and who asks it."""

    method: str
    path: str
    """From the root, percent-encoded, with its query."""
    body: bytes | None = None
    content_type: str = JSON
    accept: str = JSON
    timeout: float | None = None
    """Seconds for the whole exchange; none: as the session has it."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back: status, content, and the two headers that mean something to us."""

    status: int
    content: bytes
    content_type: str = JSON
    retry_after: str = ""


def collection(kind: Kind, namespace: str) -> str:
    """The path of all objects of a kind, in a namespace or (empty) in all of them."""
    root = f"/apis/{kind.group}/{kind.version}" if kind.group else f"/api/{kind.version}"
    within = f"/namespaces/{segment(namespace)}" if namespace and kind.namespaced else ""
    return f"{root}{within}/{kind.plural}"


def member(kind: Kind, namespace: str, name: str, subresource: str = "") -> str:
    """The path of one object, or of a subresource of it. Raises `Invalid` for a name that no object can have."""
    path = f"{collection(kind, namespace)}/{segment(name)}"
    return f"{path}/{segment(subresource)}" if subresource else path


def segment(name: str) -> str:
    """A name as one segment of a path: it can neither leave its place nor vanish. Raises `Invalid`."""
    if name in ("", ".", ".."):
        raise Invalid(f"no object can be named {name!r}")
    return quote(name, safe="")


def query(**values: str) -> str:
    """The query of these values, empty ones left out; a trailing underscore of a keyword is not part of its name."""
    given = {key.rstrip("_"): value for key, value in values.items() if value}
    return f"?{urlencode(given)}" if given else ""


def encoded(body: Any) -> bytes:
    """A manifest or a patch as JSON, whatever mapping type it is made of."""
    return orjson.dumps(body, default=_plain)


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{type(value).__name__} is no JSON")


def decoded(content: bytes) -> dict[str, Any]:
    """The object that an answer holds. Raises `ServerFault` when it holds none."""
    try:
        body = orjson.loads(content)
    except orjson.JSONDecodeError:
        body = None
    if not isinstance(body, dict):
        raise ServerFault("the server did not answer with a JSON object; is it a Kubernetes API server?")
    return body


class Reference(msgspec.Struct, frozen=True, gc=False):
    """One owner of an object, as the API writes it."""

    kind: str
    name: str
    uid: str
    controller: bool = False

    def owner(self) -> OwnerRef:
        """The same as the engine has it."""
        return OwnerRef(self.kind, self.name, self.uid, self.controller)


class Metadata(msgspec.Struct, frozen=True, rename="camel"):
    """What the engine asks of an object before it looks inside."""

    name: str
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    creation_timestamp: datetime | None = None
    deletion_timestamp: datetime | None = None
    labels: dict[str, str] | None = None
    owner_references: tuple[Reference, ...] = ()


class _ListMeta(msgspec.Struct, frozen=True, rename="camel"):
    resource_version: str = ""
    continue_: str = msgspec.field(name="continue", default="")


class _RawPage(msgspec.Struct, frozen=True):
    metadata: _ListMeta
    items: list[msgspec.Raw] | None = None


class _Item(msgspec.Struct, frozen=True):
    metadata: Metadata
    kind: str = ""


_raw_page = msgspec.json.Decoder(_RawPage)
_item = msgspec.json.Decoder(_Item)


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """A part of a list: its objects, the revision of the whole, and the token of the next part (empty: this was the last)."""

    items: list[T]
    revision: str
    rest: str


def objects(content: bytes, kind: Kind) -> Page[dict[str, Any]]:
    """A page of a list, its objects parsed. Lists of built-in kinds leave out what each item is; here every item says it."""
    with uncollected():
        page = decoded(content)
    items = page.get("items") or []
    for item in items:
        item.setdefault("apiVersion", kind.api_version)
        item.setdefault("kind", kind.name)
    meta = page.get("metadata") or {}
    return Page(items, meta.get("resourceVersion", ""), meta.get("continue", ""))


def raw_objects(content: bytes, kind: Kind) -> Page[tuple[Metadata, bytes]]:
    """A page of a list, each object as the bytes it came in, with its metadata typed; nothing else is parsed."""
    says = b'{"apiVersion":"%s","kind":"%s",' % (kind.api_version.encode(), kind.name.encode())
    try:
        with uncollected():
            page = _raw_page.decode(content)
            items = [_raw_object(bytes(raw), says) for raw in page.items or ()]
    except msgspec.MsgspecError:
        raise ServerFault(f"the server did not answer with a list of {kind.plural}") from None
    return Page(items, page.metadata.resource_version, page.metadata.continue_)


def _raw_object(content: bytes, says: bytes) -> tuple[Metadata, bytes]:
    item = _item.decode(content)
    return item.metadata, content if item.kind else says + content[1:]


@contextmanager
def uncollected() -> Iterator[None]:
    """While big answers are parsed, the collector would walk every new object again and again and find nothing."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()


async def lines(chunks: AsyncIterator[bytes]) -> AsyncGenerator[bytes]:
    """The lines of a stream. Raises `Unreachable` when it ends within one."""
    unfinished: list[bytes] = []
    async for chunk in chunks:
        first, *more = chunk.split(b"\n")
        unfinished.append(first)
        if not more:
            continue
        yield b"".join(unfinished)
        for line in more[:-1]:
            yield line
        unfinished = [more[-1]] if more[-1] else []
    if any(unfinished):
        raise Unreachable("the server ended a watch in the middle of an event")
