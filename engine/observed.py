"""The objects that exist, as one pass observed them: `Live`, `Slice`, `Observed`, `World`."""

import zlib
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from functools import lru_cache
from sys import intern
from types import MappingProxyType
from typing import Any, Final, TypeVar, cast

import orjson
from msgspec import Struct, field

from engine.answer import NOT_MADE, FailedCall, Trials
from engine.errors import ClusterError, Forbidden
from engine.ids import OwnerRef, ResourceId
from engine.memo import Revised, selected
from engine.resource import Body

POOR = 8
"""An object that takes more than this fraction of its size becomes the dictionary of those that follow."""
USES = 32
"""How often a dictionary is used at least. What cannot be compressed is stored as a dictionary, uncompressed, this seldom."""
MAX_DICTIONARIES = 256
"""How many dictionaries are used at a time, the last used ones; a replaced one exists as long as objects that were compressed with it."""
NO_LABELS: Mapping[str, str] = MappingProxyType({})
NO_OBJECTS: Mapping[str, tuple["Live", ...]] = MappingProxyType({})
PARSED = 256
"""How many parsed objects are kept: about those that the passes of an update read again and again. A parsed object takes ten times the
memory of its bytes, so all of them take some MiB."""


class Compressed(Struct, frozen=True, eq=False):
    """Compressed bytes, with the dictionary that they were compressed with."""

    data: bytes
    dictionary: bytes

    def decompress(self) -> bytes:
        """The bytes as they were."""
        return zlib.decompressobj(-zlib.MAX_WBITS, self.dictionary).decompress(self.data)


def compressed(content: bytes, dictionary: bytes) -> Compressed:
    """The bytes, compressed; the more they have in common with the dictionary, the better."""
    compressor = zlib.compressobj(zlib.Z_BEST_SPEED, wbits=-zlib.MAX_WBITS, zdict=dictionary)
    return Compressed(compressor.compress(content) + compressor.flush(), dictionary)


class _Dictionary(Struct):
    content: bytes
    uses: int = 0


class Plain(Struct):
    """How many bytes of objects are still kept as they are, by all compressors that share this."""

    left: int = 0


class Compressor:
    """Compresses objects, each with an earlier object of the same group as the dictionary; as soon as `plain` has no room for one."""

    def __init__(self, plain: Plain | None = None) -> None:
        self._plain = plain or Plain()
        self._dictionaries = OrderedDict[Hashable, _Dictionary]()

    def compress(self, group: Hashable, content: bytes) -> bytes | Compressed:
        """The bytes, compressed; or as they are, if they are to be the dictionary of those that follow in their group."""
        if len(content) <= self._plain.left:
            self._plain.left -= len(content)
            return bytes(memoryview(content))
        dictionary = self._dictionaries.get(group)
        if dictionary is not None:
            dictionary.uses += 1
            self._dictionaries.move_to_end(group)
            result = compressed(content, dictionary.content)
            if len(result.data) * POOR <= len(content) or dictionary.uses < USES:
                return result
        elif len(self._dictionaries) >= MAX_DICTIONARIES:
            self._dictionaries.popitem(last=False)
        exact = bytes(memoryview(content))  # Encoders return bytes whose memory is several times their length.
        self._dictionaries[group] = _Dictionary(exact)
        return exact


T = TypeVar("T")


Source = bytes | Compressed
"""A whole object as JSON."""


class Live(Struct, eq=False):
    """One live object. Compared by identity: a changed object is another `Live`, and only `pack` assigns a field.

    `source` is the whole object, as bytes, compressed bytes, or parsed; `pack` changes that, and nothing that can be seen. Compressed it
    takes a hundredth of the memory of a parsed body.
    """

    id: ResourceId
    uid: str
    revision: str
    generation: int
    created_at: datetime
    deleting_since: datetime | None
    owners: tuple[OwnerRef, ...]
    labels: Mapping[str, str]
    finalizers: tuple[str, ...]
    source: Source | Body

    @property
    def body(self) -> Body:
        """The whole object; bytes are parsed on access, and the results of the last accesses are cached."""
        source = self.source  # Read once: another thread may pack it.
        if type(source) is Compressed or type(source) is bytes:  # The types are recognised much faster than the union.
            return _parsed(self)
        return cast(Body, source)

    @property
    def controller(self) -> OwnerRef | None:
        """The owner that controls it."""
        for owner in self.owners:
            if owner.controller:
                return owner
        return None


def pack(live: Live, source: Source) -> None:
    """Keep the whole object as these bytes in place of its parsed body, of which they must be the JSON."""
    live.source = source


@lru_cache(maxsize=PARSED)
def _parsed(live: Live) -> Body:
    """Cached because planning one root reads the same body several times in a row."""
    source = cast(Source, live.source)
    body: Body = orjson.loads(source.decompress() if isinstance(source, Compressed) else source)
    return body


@lru_cache(maxsize=1024)
def moment(text: str) -> datetime:
    """A Kubernetes timestamp as a datetime in UTC; many objects have the same."""
    return datetime.fromisoformat(text)


def timestamp(moment: datetime) -> str:
    """A datetime in UTC as a Kubernetes timestamp, e.g. `2026-01-01T00:00:00Z`: the inverse of `moment`."""
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def live(body: Body, *, source: Source | None = None) -> Live:
    """An object of the API as a `Live`. It keeps `source`, if given, instead of the parsed body."""
    meta = body["metadata"]
    group, _, _ = body["apiVersion"].rpartition("/")
    deleting = meta.get("deletionTimestamp")
    return Live(
        id=ResourceId(intern(group), body["kind"], shared(meta.get("namespace", "")), shared(meta["name"])),
        uid=shared(meta.get("uid", "")),
        revision=meta.get("resourceVersion", ""),
        generation=meta.get("generation", 0),
        created_at=moment(meta.get("creationTimestamp") or "1970-01-01T00:00:00Z"),
        deleting_since=moment(deleting) if deleting else None,
        owners=tuple(owner_ref(reference) for reference in meta.get("ownerReferences") or ()),
        labels=shared_labels(meta.get("labels")),
        finalizers=shared_finalizers(meta.get("finalizers") or ()),
        source=source if source is not None else body,
    )


def owner_ref(reference: Mapping[str, Any]) -> OwnerRef:
    """One entry of `metadata.ownerReferences`, typed."""
    return shared_owner(reference["kind"], reference["name"], reference["uid"], bool(reference.get("controller")))


@lru_cache(maxsize=1024)
def shared_owner(kind: str, name: str, uid: str, controller: bool) -> OwnerRef:
    """An owner reference; objects with the same owner share it."""
    return OwnerRef(shared(kind), shared(name), shared(uid), controller)


def shared_labels(labels: Mapping[str, str] | None) -> Mapping[str, str]:
    """Labels whose keys and values are shared with those of other objects. Empty for None."""
    return {shared(key): shared(value) for key, value in labels.items()} if labels else NO_LABELS


def shared_finalizers(finalizers: Iterable[str]) -> tuple[str, ...]:
    """The finalizers; objects with the same ones share the texts."""
    return tuple(map(shared, finalizers))


def shared(text: str) -> str:
    """The same text, as the one object that all objects with this text share. What a user wrote instead of a text is returned as it is."""
    return intern(text) if type(text) is str else text


class Slice:
    """The observed objects of one part of a root (for example one replica). Compared by identity: an unchanged slice is the same object.

    Its objects never change. It remembers what has been derived from them, for as long as it exists.
    """

    __slots__ = ("_derived", "by_kind", "objects")

    def __init__(self, objects: Mapping[ResourceId, Live], by_kind: Mapping[str, tuple[Live, ...]] = NO_OBJECTS) -> None:
        self.objects: Final = objects
        self.by_kind: Final = by_kind
        """Kind name -> the objects of that kind, ordered by namespace and name."""
        self._derived: dict[str, Any] = {}

    def of(self, kind: str) -> tuple[Live, ...]:
        """The objects of that kind, ordered by namespace and name; empty if there are none."""
        return self.by_kind.get(kind, ())

    def index(self, name: str, make: Callable[["Slice"], T]) -> T:
        """A value derived from these objects, computed by `make` on first access and kept under that name."""
        if name not in self._derived:
            self._derived[name] = make(self)
        value: T = self._derived[name]
        return value


def slice_of(lives: Iterable[Live]) -> Slice:
    """A slice of these objects, in the order of their ids."""
    objects = {live.id: live for live in sorted(lives, key=lambda live: live.id)}
    by_kind: dict[str, list[Live]] = {}
    for live in objects.values():
        by_kind.setdefault(live.id.kind, []).append(live)
    return Slice(objects, {kind: tuple(lives) for kind, lives in by_kind.items()})


EMPTY = Slice({})


class Unlisted(Struct, frozen=True):
    """Why the objects of a kind could not be listed completely."""

    text: str
    """The reason, as the API server gives it."""
    is_forbidden: bool = False
    """Whether the right to list them is missing; otherwise the server did not answer, or failed."""


NOTHING_UNLISTED: Mapping[str, Unlisted] = MappingProxyType({})


def unlisted(error: ClusterError) -> Unlisted:
    """What a failed list says."""
    return Unlisted(str(error), isinstance(error, Forbidden))


def unlisted_texts(incomplete: Mapping[str, Unlisted]) -> dict[str, str]:
    """Kind -> why it could not be listed completely, for people."""
    return {kind: each.text for kind, each in incomplete.items()}


class NamespacePhase(StrEnum):
    """Why nothing can be created in a namespace."""

    MISSING = "missing"
    TERMINATING = "terminating"


class MemoryAllowance(Struct, frozen=True):
    """What may be created for a root, because the memory of the process has no room for all that is asked for."""

    bytes: int
    """How much memory the created objects may take."""
    most: int
    """How many bytes the objects of all roots together may take."""
    of_light: int
    """How many bytes each created object of a light kind takes."""
    lost: Mapping[ResourceId, int] = field(default_factory=dict)
    """Owner -> how many of its objects of light kinds have existed and are gone: they are created first."""


NONE_MISLABELLED: frozenset[ResourceId] = frozenset()
NO_HOLDS: Mapping[str, str] = MappingProxyType({})
NO_REPLICAS: Mapping[str, int] = MappingProxyType({})


class Observed(Struct, frozen=True, eq=False):
    """Everything that the plan of one root may depend on: the root, its objects in slices, foreign objects and references."""

    root: Live
    """The root; with an empty uid while it exists only as a proposal."""
    slices: Mapping[str, Slice]
    """The root's objects by the key of their part."""
    proposal: Body | None = None
    """The manifest of the root, if the plan is made as if that manifest were applied."""
    foreign: Mapping[ResourceId, Live] = field(default_factory=dict)
    """Objects with the root's labels or with names that it needs, which it does not own. They are never written."""
    mislabelled: frozenset[ResourceId] = NONE_MISLABELLED
    """Objects of the root whose labels do not name it: they were removed or changed."""
    incomplete: frozenset[str] = frozenset()
    """Names of kinds that could not be listed completely: an object that is not listed may exist, so none is created or deleted."""
    references: Slice = EMPTY
    """Objects that roots refer to, of any owner; the same for all roots of a world."""
    unserved: frozenset[str] = frozenset()
    """Kinds that the cluster does not serve: no object of them exists or can be created."""
    failed_calls: tuple[FailedCall, ...] | None = None
    """The calls on this root that failed when they were last made; None if this process has made none yet and objects list some."""
    trials: Trials = NOT_MADE
    """What the API server has said of pods that updates would create."""
    proposer: Live | None = None
    """The root that proposes this one, as a part of itself; None for a root that a user has made."""
    holds: Mapping[str, str] = NO_HOLDS
    """For a nested root: which of its parts must not be created yet, and why; its blueprint knows their names."""
    looked_up: Mapping[ResourceId, Live | None] = field(default_factory=dict)
    """Objects that the root names and that were read one by one; None: it does not exist. Absent: it is not known."""
    nested: Mapping[ResourceId, "Observed"] = field(default_factory=dict)
    """The roots that this root controls, as they are observed, without proposals."""
    namespace_phase: NamespacePhase | None = None
    """Why nothing can be created in the namespace of the root; None: objects can be created, or it is not known."""

    allowance: MemoryAllowance | None = None
    """How many objects may be created for the root, by the memory that they take; None: all that it needs."""
    replicas: Mapping[str, int] = NO_REPLICAS
    """Part of the root -> how many replicas manifests beside its own ask for; its blueprint knows the names. Only with a proposal."""

    def slice(self, key: str) -> Slice:
        """The slice of that key; empty if there is none."""
        return self.slices.get(key, EMPTY)

    def find(self, id: ResourceId) -> Live | None:
        """The root's object of that identity, in whichever slice."""
        return next((live for slice in self.slices.values() if (live := slice.objects.get(id))), None)

    def elsewhere(self, id: ResourceId) -> Live | None:
        """The object of that identity among the references, the objects that were looked up, and the nested roots with theirs."""
        if (live := self.references.objects.get(id)) is not None:
            return live
        if (live := self.looked_up.get(id)) is not None:
            return live
        return next((live for inner in self.nested.values() if (live := inner.root if inner.root.id == id else inner.find(id))), None)

    def lives(self) -> Iterator[Live]:
        """The root, its objects and the foreign ones."""
        yield self.root
        for slice in self.slices.values():
            yield from slice.objects.values()
        yield from self.foreign.values()

    def count(self) -> int:
        """The number of the root's objects, without the root."""
        return sum(len(slice.objects) for slice in self.slices.values())


class World(Struct, frozen=True, eq=False):
    """Everything in scope: each root with its objects, objects without a root, and the kinds that could not be listed."""

    roots: tuple[Observed, ...]
    orphans: tuple[Live, ...] = ()
    """Objects with our labels whose root does not exist."""
    incomplete: Mapping[str, Unlisted] = NOTHING_UNLISTED
    """Key of a kind -> why its list is not complete."""
    references: Slice = EMPTY
    """Objects that roots refer to, of any owner."""
    unserved: frozenset[str] = frozenset()
    """Kinds that the cluster does not serve."""
    closed_namespaces: Mapping[str, NamespacePhase] = field(default_factory=dict)
    """The namespaces in which nothing can be created -> why."""
    record: Live | None = None
    """The object in which the command notes what it works on, if there is one and it exists."""
    sharing: frozenset[str] = frozenset()
    """The uids of the owners of objects that roots own and none controls: these are in no list of a world."""
    unlisted: Mapping[str, Unlisted] = NOTHING_UNLISTED
    """The same as `incomplete`, with the kinds that no plan depends on: an object of one that is not there may exist."""

    def rootless(self) -> Iterator[Live]:
        """The objects with our labels that no root owns: the orphans, and those that are foreign to the root that their labels name."""
        yield from self.orphans
        for observed in selected(self.roots, has_strays):
            yield from observed.foreign.values()


def has_strays(observed: Observed) -> bool:
    """Whether objects have the labels of the root that it does not own, or objects of its own do not have them."""
    return bool(observed.foreign or observed.mislabelled)


def by_root(roots: Sequence[Observed]) -> Revised[Observed]:
    """The roots as a sequence that knows what has changed; the same object if it is one."""
    if isinstance(roots, Revised):
        return roots
    ordered = sorted(roots, key=lambda observed: observed.root.id)
    return Revised([observed.root.id for observed in ordered], ordered)
