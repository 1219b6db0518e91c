"""Snapshot: the objects of a cluster as a stream of YAML documents without secret data. The output of `kubectl get -o yaml` is one too."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from engine.errors import Forbidden, InputError
from engine.event import Event
from engine.ids import Kind, ResourceId
from engine.mask import masked
from engine.observed import NOTHING_UNLISTED, Live, Unlisted, live, unlisted_texts
from engine.operation import Operation
from engine.ownership import MANAGER
from engine.report.printable import clipped, printable
from engine.resource import Body
from engine.runtime.provider import Observation, Scope, TakenNames
from providers.documents import Document, plain_value, read_documents
from resources.base.fields import mapping
from resources.base.kinds import unread

MAX_BYTES = 1 << 30
"""The largest snapshot that is read: one of a hundred thousand pods is smaller."""
RECORD = ("engine.grove.io/v1", "Snapshot")
"""API version and kind of the document that says which kinds the cluster did not serve, or which could not be listed. It is no object."""
HEAD = "# A snapshot of {count} objects. Secret data is masked; of field ownership only that of the engine is kept.\n"


class Target(NamedTuple):
    """One list: a kind, in one namespace or (empty) in all, with a label selector or (empty) without."""

    kind: Kind
    namespace: str
    labels: str
    finalizers: tuple[str, ...] = ()
    """Objects with one of these are in the list as well, whatever their labels are."""

    @property
    def sent(self) -> str:
        """The label selector that the server is asked with."""
        return "" if self.finalizers else self.labels

    def contains(self, live: Live) -> bool:
        """Whether an object of this kind and namespace is in the list."""
        return is_labelled(live, self.labels) or has_finalizer(live, self.finalizers)


def targets(scope: Scope) -> Iterator[Target]:
    """The lists that cover a scope. A kind that is a child and a reference is listed once, without a selector."""
    for kind in scope.children:
        if kind not in scope.references:
            finalizers = scope.finalizers.get(kind, ())
            yield from (Target(kind, namespace, scope.selector, finalizers) for namespace in places(kind, scope))
    for kind in dict.fromkeys((*scope.references, *scope.roots)):
        yield from (Target(kind, namespace, "") for namespace in places(kind, scope))


def places(kind: Kind, scope: Scope) -> tuple[str, ...]:
    """The namespaces in which a kind is listed, an empty one for one list of everything. A shard has only its own, if they are named."""
    if not kind.namespaced or not scope.namespaces:
        return ("",)
    return tuple(name for name in scope.namespaces if scope.shard is None or scope.shard.contains(name))


def observation(
    scope: Scope,
    listed: Iterable[tuple[Kind, Iterable[Live]]],
    incomplete: Mapping[str, Unlisted] = NOTHING_UNLISTED,
    unserved: Iterable[str] = (),
) -> Observation:
    """The observation that these lists make up. Of a shard: lists of namespaced kinds must have been limited to it (`in_scope`)."""
    roots: list[Live] = []
    children: list[Live] = []
    references: list[Live] = []
    for kind, objects in listed:
        lives = list(objects)
        if kind in scope.references:
            references += lives
        if is_left_to_others(kind, scope):
            continue
        if kind in scope.roots:
            roots += lives
        if kind in scope.children:
            children += lives if kind not in scope.references else children_among(lives, scope)
    return Observation(roots, children, dict(sorted(incomplete.items())), references, frozenset(unserved))


def is_left_to_others(kind: Kind, scope: Scope) -> bool:
    """Whether roots and children of the kind belong to another shard."""
    return scope.shard is not None and not kind.namespaced and not scope.shard.contains("")


def in_scope(kind: Kind, lives: Sequence[Live], scope: Scope) -> Sequence[Live]:
    """The objects of a namespaced kind that are in the scope's shard; of any other kind, and without a shard, all of them."""
    if scope.shard is None or not kind.namespaced:
        return lives
    return [live for live in lives if scope.shard.contains(live.id.namespace)]


def is_of(live: Live, kinds: Sequence[Kind]) -> bool:
    """Whether the object is of one of the kinds."""
    return any((kind.group, kind.name) == (live.id.group, live.id.kind) for kind in kinds)


def children_among(lives: Iterable[Live], scope: Scope) -> tuple[Live, ...]:
    """The objects that are of a kind of children and carry our children's labels, or one of our finalizers on a kind that is ours."""
    ours = {(kind.group, kind.name): finalizers for kind, finalizers in scope.finalizers.items()}
    return tuple(
        live
        for live in lives
        if is_of(live, scope.children)
        and (is_labelled(live, scope.selector) or has_finalizer(live, ours.get((live.id.group, live.id.kind), ())))
    )


def has_finalizer(live: Live, finalizers: Collection[str]) -> bool:
    """Whether the object has one of these finalizers."""
    return bool(finalizers) and not set(finalizers).isdisjoint(live.body["metadata"].get("finalizers") or ())


def is_labelled(live: Live, selector: str) -> bool:
    """Whether the selector, `key=value` or `key in (value,…)`, selects the object; an empty one selects everything."""
    key, values = _requirement(selector)
    return not key or live.labels.get(key) in values


@lru_cache(maxsize=16)
def _requirement(selector: str) -> tuple[str, frozenset[str]]:
    """The key and the values of a selector."""
    key, separator, values = selector.partition(" in ")
    if not separator:
        key, _, values = selector.partition("=")
    return key, frozenset(value.strip() for value in values.strip("()").split(","))


def snapshot_documents(
    lives: Iterable[Live], unserved: Collection[str] = (), incomplete: Mapping[str, Unlisted] = NOTHING_UNLISTED
) -> Iterator[str]:
    """The objects as YAML documents, ordered by identity, without secret data and the field ownership of others.

    `unserved` are the keys of the kinds that the cluster does not serve, `incomplete` those that could not be listed completely, with the
    reasons; if there are any, the first document names them.
    """
    ordered = sorted(lives, key=lambda live: live.id)
    yield HEAD.format(count=len(ordered))
    if unserved or incomplete:
        api_version, kind = RECORD
        record = {"apiVersion": api_version, "kind": kind, "metadata": {"name": "snapshot", "uid": ""}}
        record |= {"unserved": sorted(unserved)} if unserved else {}
        record |= {"incomplete": unlisted_texts(incomplete)} if incomplete else {}
        record |= {"forbidden": sorted(kind for kind, each in incomplete.items() if each.is_forbidden)} if incomplete else {}
        yield f"---\n{as_yaml(record)}"
    for item in ordered:
        yield f"---\n{as_yaml(scrubbed(item.body))}"


def as_yaml(body: Body) -> str:
    """One object as YAML with sorted keys and only ASCII characters: equal objects give equal bytes."""
    text: str = yaml.dump(body, Dumper=_Dumper, default_flow_style=False, sort_keys=True, width=1000)
    return text


class _Dumper(yaml.CSafeDumper):
    """A YAML dumper without anchors and aliases, that quotes strings which kubectl would read as another type."""

    def ignore_aliases(self, data: Any) -> bool:
        """Write a shared value in full wherever it occurs."""
        return True

    def text(self, data: str) -> yaml.ScalarNode:
        """A string, quoted if kubectl (and we) would read it as another type without quotes: `1e3`, `0o7`, `y`."""
        return self.represent_scalar("tag:yaml.org,2002:str", data, style="'" if is_ambiguous(data) else None)


_Dumper.add_representer(str, _Dumper.text)


def is_ambiguous(text: str) -> bool:
    """Whether the text without quotes is read as something else than this string."""
    try:
        return bool(plain_value(text) != text)
    except ValueError:
        return True


def scrubbed(body: Body) -> Body:
    """The object without secret data, and with only our entry in `managedFields`."""
    metadata = body["metadata"]
    if "managedFields" in metadata:
        entries = [entry for entry in metadata["managedFields"] if entry.get("manager") == MANAGER]
        others = {key: value for key, value in metadata.items() if key != "managedFields"}
        body = {**body, "metadata": others | ({"managedFields": entries} if entries else {})}
    return masked(body)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The objects of a file as a read-only `Provider`."""

    lives: Sequence[Live] = ()
    recorded_at: str = field(default="", kw_only=True)
    """The file."""
    unserved: frozenset[str] = field(default=frozenset(), kw_only=True)
    """Keys of the kinds that the cluster did not serve, or not in their own version (`unread`), as far as the file says so."""
    incomplete: Mapping[str, Unlisted] = field(default_factory=dict, kw_only=True)
    """Keys of the kinds that could not be listed completely -> why, as far as the file says so."""

    async def observe(self, scope: Scope) -> Observation:
        """What listing the cluster returned when the snapshot was taken, as far as the file contains it."""
        kinds = (*scope.roots, *scope.children, *scope.references)
        in_scope = {kind.key for kind in kinds} | {unread(kind) for kind in kinds}
        selected = [live for live in self.lives if not scope.namespaces or live.id.namespace in ("", *scope.namespaces)]
        return Observation(
            tuple(live for live in selected if is_of(live, scope.roots)),
            children_among(selected, scope),
            {kind: why for kind, why in self.incomplete.items() if kind in in_scope},
            references=tuple(live for live in selected if is_of(live, scope.references)),
            unserved=self.unserved & in_scope,
        )

    async def get(self, id: ResourceId) -> Live | None:
        """The object; None if the file does not contain it."""
        return next((live for live in self.lives if live.id == id), None)

    async def taken(self, ids: Collection[ResourceId]) -> TakenNames:
        """Which of the objects the file contains."""
        return TakenNames(frozenset(ids).intersection(live.id for live in self.lives))

    async def execute(self, operation: Operation, uids: Mapping[ResourceId, str]) -> Mapping[str, Any] | None:
        """Raise `Forbidden`."""
        raise Forbidden(f"a snapshot is read-only ({operation.key})")

    async def record(self, event: Event) -> None:
        """Drop the event."""

    async def serves(self, kind: Kind) -> bool:
        """Whether the file does not say that the cluster did not serve the kind."""
        return kind.key not in self.unserved


EMPTY = Snapshot()
"""An empty cluster."""


def read(path: Path) -> Snapshot:
    """The snapshot in a file. Raises `InputError` with file, line and reason."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise InputError(f"{printable(str(path))}: {(error.strerror or 'cannot be read').lower()}") from None
    lives = tuple(unique(objects(read_documents(data, printable(str(path)), limit=MAX_BYTES))))
    records = [live for live in lives if is_record(live)]
    return Snapshot(
        tuple(live for live in lives if not is_record(live)),
        recorded_at=str(path),
        unserved=frozenset(unserved_kinds(records)),
        incomplete=dict(incomplete_kinds(records)),
    )


def is_record(live: Live) -> bool:
    """Whether it is the document of a snapshot that is no object of the cluster."""
    return (live.body["apiVersion"], live.id.kind) == RECORD


def unserved_kinds(records: Iterable[Live]) -> Iterator[str]:
    """The keys of the kinds that the records name as not served. Entries that are no text are ignored."""
    for record in records:
        names = record.body.get("unserved")
        yield from (name for name in names if isinstance(name, str)) if isinstance(names, list) else ()


def incomplete_kinds(records: Iterable[Live]) -> Iterator[tuple[str, Unlisted]]:
    """The keys of the kinds that the records name as not listed completely, with the reasons. Entries that are no text are ignored."""
    for record in records:
        forbidden = record.body.get("forbidden")
        for kind, why in mapping(record.body.get("incomplete")).items():
            if isinstance(why, str):
                yield kind, Unlisted(why, isinstance(forbidden, list) and kind in forbidden)


def objects(documents: Iterable[Document]) -> Iterator[tuple[Live, str]]:
    """Every object in the documents with its file and line. A List yields its items."""
    for document in documents:
        items = document.value.get("items") if isinstance(document.value, dict) else None
        if isinstance(items, list):
            for index, item in enumerate(items):
                yield live_at(item, document.place(("items", str(index))))
        else:
            yield live_at(document.value, document.place())


def live_at(value: Any, place: str) -> tuple[Live, str]:
    """One object and its place. Raises `InputError` if it lacks a field that every stored object has."""
    metadata = value.get("metadata") if isinstance(value, dict) else None
    if not isinstance(metadata, dict) or not all(isinstance(value.get(key), str) for key in ("apiVersion", "kind")):
        raise InputError(f"{place}: not a Kubernetes object: it must have apiVersion, kind and metadata")
    if not isinstance(metadata.get("name"), str) or not isinstance(metadata.get("uid"), str):
        raise InputError(
            f"{place}: {clipped(value['kind'], 80)} has no name or no uid: a snapshot must contain objects as the API server returns them"
        )
    try:
        return live(value), place
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InputError(f"{place}: {clipped(value['kind'], 80)} {clipped(metadata['name'], 80)}: malformed metadata: {error}") from None


def unique(objects: Iterable[tuple[Live, str]]) -> Iterator[Live]:
    """The objects. Raises `InputError` if two have the same identity."""
    places: dict[Any, str] = {}
    for item, place in objects:
        if item.id in places:
            raise InputError(f"{place}: {printable(str(item.id))} appears twice, first at {places[item.id]}")
        places[item.id] = place
        yield item
