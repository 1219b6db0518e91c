"""Snapshot: a cluster as a stream of YAML documents, scrubbed when written; any `kubectl get -o yaml` can be read as one."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from engine.errors import Forbidden, InputError
from engine.event import Event
from engine.ids import Kind, ResourceId
from engine.mask import masked
from engine.observed import Live, live
from engine.operation import Operation
from engine.ownership import MANAGER
from engine.report.printable import clipped, printable
from engine.resource import Body
from engine.runtime.provider import Observation, Scope
from providers.documents import Document, meaning, read_documents
from providers.scoping import children_among, is_of

LARGEST = 1 << 30
"""Bytes of a snapshot that are read: a cluster with a hundred thousand pods has less."""
HEAD = "# A snapshot of {count} objects. Secret data is masked; field ownership is kept where it is ours.\n"


def written(lives: Iterable[Live]) -> Iterator[str]:
    """The objects as YAML documents, ordered by identity, without what is secret or nobody's business here."""
    ordered = sorted(lives, key=lambda one: one.id)
    yield HEAD.format(count=len(ordered))
    for one in ordered:
        yield f"---\n{as_yaml(scrubbed(one.body))}"


def as_yaml(body: Body) -> str:
    """One object in YAML: keys in order, anything but ASCII escaped, so that equal objects are equal bytes."""
    text: str = yaml.dump(body, Dumper=_Dumper, default_flow_style=False, sort_keys=True, width=1000)
    return text


class _Dumper(yaml.CSafeDumper):
    """Writes every object out where it stands: what two objects share is nobody's concern but ours."""

    def ignore_aliases(self, data: Any) -> bool:
        """No aliases."""
        return True

    def text(self, data: str) -> yaml.ScalarNode:
        """Text, in quotes where kubectl (and we) would take it for something else: `1e3`, `0o7` and `y` are no text to them."""
        return self.represent_scalar("tag:yaml.org,2002:str", data, style="'" if is_ambiguous(data) else None)


_Dumper.add_representer(str, _Dumper.text)


def is_ambiguous(text: str) -> bool:
    """Whether the text, without quotes, would mean something else."""
    try:
        return bool(meaning(text) != text)
    except ValueError:
        return True


def scrubbed(body: Body) -> Body:
    """The object without secret data, and with our own entries of its field ownership alone."""
    metadata = body["metadata"]
    if "managedFields" in metadata:
        ours = [entry for entry in metadata["managedFields"] if entry.get("manager") == MANAGER]
        kept = {key: value for key, value in metadata.items() if key != "managedFields"}
        body = {**body, "metadata": kept | ({"managedFields": ours} if ours else {})}
    return masked(body)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The objects of a file, looked at as if they were a cluster. It is a `Provider` to which nothing can be written."""

    lives: Sequence[Live] = ()

    async def observe(self, scope: Scope) -> Observation:
        """What a look at the cluster would have brought."""
        inside = [one for one in self.lives if not scope.namespaces or one.id.namespace in ("", *scope.namespaces)]
        return Observation(
            tuple(one for one in inside if is_of(one, scope.roots)),
            children_among(inside, scope),
            references=tuple(one for one in inside if is_of(one, scope.references)),
        )

    async def look(self, id: ResourceId) -> Live | None:
        """That one object, if it was there."""
        return next((one for one in self.lives if one.id == id), None)

    async def execute(self, operation: Operation, uids: Mapping[ResourceId, str]) -> Mapping[str, Any] | None:
        """Refuse: raises `Forbidden`."""
        raise Forbidden(f"a snapshot cannot be written to ({operation.key})")

    async def record(self, event: Event) -> None:
        """Nothing: nobody reads the events of a file."""

    async def serves(self, kind: Kind) -> bool:
        """Everything: what a cluster that is not there would serve, nobody knows."""
        return True


EMPTY = Snapshot()
"""A cluster with nothing in it."""


def read(path: Path) -> Snapshot:
    """The snapshot in a file. Raises `InputError`."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise InputError(f"{printable(str(path))}: {(error.strerror or 'cannot be read').lower()}") from None
    return Snapshot(tuple(unique(objects(read_documents(data, printable(str(path)), limit=LARGEST)))))


def objects(documents: Iterable[Document]) -> Iterator[tuple[Live, str]]:
    """Every object in the documents with its place, Lists taken apart."""
    for document in documents:
        listed = document.value.get("items") if isinstance(document.value, dict) else None
        if isinstance(listed, list):
            for index, item in enumerate(listed):
                yield typed(item, document.place(("items", str(index))))
        else:
            yield typed(document.value, document.place())


def typed(value: Any, place: str) -> tuple[Live, str]:
    """One object, or an `InputError` that says what it lacks."""
    metadata = value.get("metadata") if isinstance(value, dict) else None
    if not isinstance(metadata, dict) or not all(isinstance(value.get(key), str) for key in ("apiVersion", "kind")):
        raise InputError(f"{place}: not an object of a cluster: it needs apiVersion, kind and metadata")
    if not isinstance(metadata.get("name"), str) or not isinstance(metadata.get("uid"), str):
        raise InputError(f"{place}: {clipped(value['kind'], 80)} has no name or no uid: a snapshot holds objects as a server shows them")
    try:
        return live(value), place
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InputError(f"{place}: {clipped(value['kind'], 80)} {clipped(metadata['name'], 80)}: malformed metadata: {error}") from None


def unique(found: Iterable[tuple[Live, str]]) -> Iterator[Live]:
    """The objects. Raises `InputError` when two have one name."""
    places: dict[Any, str] = {}
    for one, place in found:
        if one.id in places:
            raise InputError(f"{place}: {printable(str(one.id))} is there twice, first at {places[one.id]}")
        places[one.id] = place
        yield one
