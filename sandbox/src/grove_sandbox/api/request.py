"""Requests to the in-memory API and its answers, independent of HTTP."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import orjson
from msgspec import Struct

from grove_sandbox.kinds.served import Served

Strictness = Literal["Strict", "Warn", "Ignore"]

SERVER_USER = "system:admin"
"""The user of the server's own writes, and of clients without HTTP. No token authenticates it."""


class Request(Struct, frozen=True):
    """The object or collection, and the options of a write."""

    served: Served
    namespace: str = ""
    """Empty for cluster-scoped kinds, and for lists and watches over all namespaces."""
    name: str = ""
    subresource: str = ""
    manager: str = ""
    """`fieldManager`; over HTTP the default is the first part of the user agent."""
    validation: Strictness = "Warn"
    """Whether unknown fields are an error, a warning, or ignored."""
    dry_run: bool = False
    force: bool = False
    """Take fields from other managers; for apply patches only."""
    user: str = SERVER_USER


class Selection(Struct, frozen=True):
    """The options of a list, a watch or a deletecollection."""

    labels: str = ""
    fields: str = ""
    limit: int = 0
    token: str = ""
    """`continue`."""
    revision: str = ""
    """`resourceVersion` as sent."""
    match: str = ""
    """`resourceVersionMatch` as sent."""
    timeout: float | None = None
    """Seconds after which a watch ends; None: never."""
    bookmarks: bool = False
    initial_events: bool | None = None
    """`sendInitialEvents` as sent."""


class Deletion(Struct, frozen=True):
    """DeleteOptions. `grace` is in seconds."""

    grace: int | None = None
    propagation: str = ""
    """`Background`, `Foreground`, `Orphan`, or empty for the kind's default."""
    uid: str | None = None
    revision: str | None = None


EVERYTHING = Selection()
DEFAULT_DELETION = Deletion()


class Answer(Struct, frozen=True):
    """The result of a verb: the HTTP code, the object (shared: must not be changed), its JSON, and texts for the Warning header."""

    code: int
    body: Mapping[str, Any]
    encoded: bytes
    warnings: tuple[str, ...] = ()


def answer(code: int, body: Mapping[str, Any], warnings: tuple[str, ...] = ()) -> Answer:
    """An answer, with the JSON of the body."""
    return Answer(code, body, orjson.dumps(body), warnings)


class Page(Struct, frozen=True):
    """A list: its items (shared bodies and their JSON, in key order) and its metadata."""

    served: Served
    items: tuple["Item", ...]
    revision: str
    token: str = ""
    remaining: int | None = None

    def metadata(self) -> dict[str, Any]:
        """The list's `metadata`."""
        return {
            "resourceVersion": self.revision,
            **({"continue": self.token} if self.token or self.served.custom else {}),
            **({"remainingItemCount": self.remaining} if self.remaining is not None else {}),
        }

    def encoded(self) -> bytes:
        """The JSON of the list, joined from that of its items."""
        kind = self.served.kind
        head = orjson.dumps({"kind": self.served.list_name, "apiVersion": kind.api_version, "metadata": self.metadata()})
        # Items of a built-in kind have no kind and apiVersion.
        common = b"" if self.served.custom else orjson.dumps({"kind": kind.name, "apiVersion": kind.api_version})[1:-1] + b","
        items = (item.encoded.replace(common, b"", 1) if item.encoded.startswith(common, 1) else item.encoded for item in self.items)
        return b'%b,"items":[%b]}' % (head[:-1], b",".join(items))


class Item(Struct, frozen=True):
    """One object of a page."""

    body: Mapping[str, Any]
    encoded: bytes


@dataclass(frozen=True, slots=True)
class WatchEvent:
    """An event of a watch. `body` is shared; `encoded` is the JSON of the object alone."""

    type: Literal["ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR"]
    body: Mapping[str, Any]
    encoded: bytes = field(repr=False)
