"""Request and Answer: what is asked of the in-memory API and what it says, without a word of HTTP."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import orjson

from providers.sandbox.kinds.served import Served

Strictness = Literal["Strict", "Warn", "Ignore"]
PatchHow = Literal["merge", "json", "strategic", "apply"]

ITSELF = "system:admin"
"""The user behind what the server does of its own accord, and behind who uses it without HTTP. No token stands for it."""


@dataclass(frozen=True, slots=True)
class Request:
    """Which object or collection, and how a write is to be taken."""

    served: Served
    namespace: str = ""
    """Empty for cluster-scoped kinds, and for lists and watches over all namespaces."""
    name: str = ""
    subresource: str = ""
    manager: str = ""
    """`fieldManager`; empty: the front of the caller's user agent, which the HTTP face fills in."""
    validation: Strictness = "Warn"
    """What unknown and duplicate fields lead to: an error, a warning, nothing."""
    dry_run: bool = False
    force: bool = False
    """Take fields over from other managers; apply patches only."""
    user: str = ITSELF


@dataclass(frozen=True, slots=True)
class Selection:
    """What of a collection a list, a watch or a deletecollection is about."""

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


@dataclass(frozen=True, slots=True)
class Deletion:
    """DeleteOptions, read. `grace` in seconds."""

    grace: int | None = None
    propagation: str = ""
    """`Background`, `Foreground`, `Orphan`, or empty for the kind's default."""
    uid: str | None = None
    revision: str | None = None


EVERYTHING = Selection()
PLAINLY = Deletion()


@dataclass(frozen=True, slots=True)
class Answer:
    """What a verb says: the HTTP code, the object (shared: never to be changed), its bytes, and warnings for the Warning header."""

    code: int
    body: Mapping[str, Any]
    encoded: bytes
    warnings: tuple[str, ...] = ()


def answer(code: int, body: Mapping[str, Any], warnings: tuple[str, ...] = ()) -> Answer:
    """An answer whose bytes are made here."""
    return Answer(code, body, orjson.dumps(body), warnings)


@dataclass(frozen=True, slots=True)
class Page:
    """A list: its items (shared bodies with their bytes, in key order) and the metadata of the list."""

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
        """The whole list, joined from bytes that exist already."""
        kind = self.served.kind
        head = orjson.dumps({"kind": self.served.list_name, "apiVersion": kind.api_version, "metadata": self.metadata()})
        # In a list of a built-in kind the server leaves out what all items have in common.
        common = b"" if self.served.custom else orjson.dumps({"kind": kind.name, "apiVersion": kind.api_version})[1:-1] + b","
        items = (item.encoded.replace(common, b"", 1) if item.encoded.startswith(common, 1) else item.encoded for item in self.items)
        return b'%b,"items":[%b]}' % (head[:-1], b",".join(items))


@dataclass(frozen=True, slots=True)
class Item:
    """One object of a page."""

    body: Mapping[str, Any]
    encoded: bytes


@dataclass(frozen=True, slots=True)
class WatchEvent:
    """One event of a watch. `body` is shared; `encoded` are the bytes of the object alone."""

    type: Literal["ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR"]
    body: Mapping[str, Any]
    encoded: bytes = field(repr=False)
