"""Observed: what is there, as seen at one moment."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache
from typing import Any, TypeVar, cast

import orjson

from engine.failure import FailedCall
from engine.ids import OwnerRef, ResourceId
from engine.resource import Body

T = TypeVar("T")


@dataclass(frozen=True, slots=True, eq=False)
class Live:
    """One object as seen. Compared by identity: a changed object is another `Live`.

    `source` holds the object as the bytes it arrived in, or already parsed; bytes weigh a tenth of dictionaries.
    """

    id: ResourceId
    uid: str
    revision: str
    generation: int
    created_at: datetime
    deleting_since: datetime | None
    owners: tuple[OwnerRef, ...]
    labels: Mapping[str, str]
    source: bytes | Body

    @property
    def body(self) -> Body:
        """The whole object; bytes are parsed when intended, and what was parsed last is kept for a moment."""
        return _parsed(self) if isinstance(self.source, bytes) else self.source

    @property
    def controller(self) -> OwnerRef | None:
        """The owner that controls it."""
        return next((owner for owner in self.owners if owner.controller), None)


@lru_cache(maxsize=1024)
def _parsed(one: Live) -> Body:
    """An object is intended for its body several times in one pass, by the same root, and then not again."""
    body: Body = orjson.loads(cast(bytes, one.source))
    return body


def moment(text: str) -> datetime:
    """A Kubernetes timestamp as a datetime in UTC."""
    return datetime.fromisoformat(text)


def live(body: Body, *, source: bytes | None = None) -> Live:
    """What one object of the API says, typed. `source` keeps its bytes instead of the parsed body."""
    meta = body["metadata"]
    group, _, _ = body["apiVersion"].rpartition("/")
    deleting = meta.get("deletionTimestamp")
    return Live(
        id=ResourceId(group, body["kind"], meta.get("namespace", ""), meta["name"]),
        uid=meta.get("uid", ""),
        revision=meta.get("resourceVersion", ""),
        generation=meta.get("generation", 0),
        created_at=moment(meta.get("creationTimestamp") or "1970-01-01T00:00:00Z"),
        deleting_since=moment(deleting) if deleting else None,
        owners=tuple(owner_ref(reference) for reference in meta.get("ownerReferences", ())),
        labels=meta.get("labels") or {},
        source=source if source is not None else body,
    )


def owner_ref(reference: Mapping[str, Any]) -> OwnerRef:
    """One entry of `metadata.ownerReferences`, typed."""
    return OwnerRef(reference["kind"], reference["name"], reference["uid"], bool(reference.get("controller")))


@dataclass(frozen=True, slots=True, eq=False)
class Slice:
    """The objects of one part of a root (say, one replica). Compared by identity: unchanged parts stay the same object."""

    objects: Mapping[ResourceId, Live]
    by_kind: Mapping[str, tuple[Live, ...]] = field(default_factory=dict)
    _indices: dict[str, Any] = field(default_factory=dict)

    def of(self, kind: str) -> tuple[Live, ...]:
        """The objects of that kind, ordered by name."""
        return self.by_kind.get(kind, ())

    def index(self, name: str, make: Callable[["Slice"], T]) -> T:
        """What can be said of these objects as a whole, computed when it is first intended for."""
        if name not in self._indices:
            self._indices[name] = make(self)
        return cast(T, self._indices[name])


def slice_of(lives: Iterable[Live]) -> Slice:
    """A slice of these objects, whatever order they come in."""
    objects = {live.id: live for live in sorted(lives, key=lambda live: live.id)}
    by_kind: dict[str, list[Live]] = {}
    for live in objects.values():
        by_kind.setdefault(live.id.kind, []).append(live)
    return Slice(objects, {kind: tuple(lives) for kind, lives in by_kind.items()})


EMPTY = Slice({})


@dataclass(frozen=True, slots=True, eq=False)
class Observed:
    """All that a root's plan may depend on: the root, its objects in slices, and references to look at but never touch."""

    root: Live
    """The root as it is; with an empty uid when it exists only as a proposal so far."""
    slices: Mapping[str, Slice]
    proposal: Body | None = None
    """The root as a manifest asks for it, when a plan is made as if that manifest were applied."""
    foreign: Mapping[ResourceId, Live] = field(default_factory=dict)
    """Objects that bear the root's labels and are not its own: their names are taken."""
    incomplete: frozenset[str] = frozenset()
    """Kinds whose listing failed or was cut: what was not seen may still be there, so nothing of them is deleted."""
    references: Slice = EMPTY
    """Objects that roots may refer to, whosever they are: the same for all roots of a world."""
    unserved: frozenset[str] = frozenset()
    """Kinds that the cluster does not have: there is none of them, and none can be made."""
    failed_calls: tuple[FailedCall, ...] | None = None
    """What failed when it was last tried; None where nobody remembers having tried anything."""

    def slice(self, key: str) -> Slice:
        """That part, or an empty one."""
        return self.slices.get(key, EMPTY)

    def find(self, id: ResourceId) -> Live | None:
        """The object of that identity, in whichever slice."""
        return next((found for part in self.slices.values() if (found := part.objects.get(id))), None)

    def lives(self) -> Iterator[Live]:
        """The root, its objects and its references."""
        yield self.root
        for part in self.slices.values():
            yield from part.objects.values()
        yield from self.foreign.values()

    def count(self) -> int:
        """How many objects there are, the root not counted."""
        return sum(len(part.objects) for part in self.slices.values())


@dataclass(frozen=True, slots=True, eq=False)
class World:
    """Everything in scope: each root with what is its own, what has lost its root, and what could not be seen."""

    roots: tuple[Observed, ...]
    orphans: tuple[Live, ...] = ()
    incomplete: Mapping[str, str] = field(default_factory=dict)
    """Kind -> why its listing is not complete."""
    references: Slice = EMPTY
    """Objects that roots may refer to, whosever they are."""
    unserved: frozenset[str] = frozenset()
    """Kinds that the cluster does not have."""
