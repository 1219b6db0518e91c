"""Manifest files: the roots that a user's files ask for, each with the place it was read from."""

import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine.errors import InputError
from engine.ids import Kind, ResourceId
from engine.report.printable import clipped, printable
from engine.resource import Body
from enginectl.running import Misuse
from providers.documents import Document, read_documents
from resources.schema.issues import Issue, shown

SUFFIXES = frozenset({".yaml", ".yml", ".json"})
NAME = re.compile(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?")
TOLD = 20
"""Faults told of one call; where there are more, that is told."""

Check = Callable[[Kind, Body], Sequence[Issue]]
"""What is wrong with a manifest."""


@dataclass(frozen=True, slots=True, eq=False)
class Manifest:
    """One object that a file asks for."""

    body: Body
    document: Document
    base: tuple[str, ...] = ()
    """Where in the document it stands: an entry of a List lies deeper."""

    def place(self, *path: str | int) -> str:
        """`file:line` of a field, or of what is nearest above it."""
        return printable(self.document.place((*self.base, *map(str, path))))


@dataclass(frozen=True, slots=True, eq=False)
class Wanted:
    """All that the files ask for: the roots, and notes about what is not ours to handle."""

    roots: tuple[Body, ...]
    notes: tuple[str, ...]
    manifests: tuple[Manifest, ...] = ()
    """Where each root was read from."""

    @property
    def namespaces(self) -> tuple[str, ...]:
        """The namespaces of the roots that are in one."""
        return tuple(sorted({namespace for root in self.roots if (namespace := root["metadata"].get("namespace"))}))

    @property
    def kinds(self) -> frozenset[str]:
        """The kinds of the roots."""
        return frozenset(root["kind"] for root in self.roots)


NO_FILES = Wanted((), ())


def wanted(found: Iterable[Manifest], kinds: Sequence[Kind], check: Check, *, namespace: str, forced: bool = False) -> Wanted:
    """The roots of these kinds among the manifests. One without a namespace goes to `namespace`, if its kind is in one at all;
    `forced` allows no other.

    Raises `InputError` with a line for every fault in what they say.
    """
    handled = {(kind.group, kind.name): kind for kind in kinds}
    roots: list[tuple[Manifest, Kind]] = []
    notes: list[str] = []
    for manifest in found:
        kind = handled.get(identity(manifest))
        if kind:
            roots.append((manifest, kind))
        else:
            notes.append(f"{manifest.place()}: {clipped(str(manifest.body['kind']), 80)} is not handled here and left alone")
    bodies = [placed(manifest, kind, namespace, forced) for manifest, kind in roots]
    refuse_twins(zip((manifest for manifest, _ in roots), bodies, strict=True))
    refuse_faults(roots, check)
    return Wanted(tuple(bodies), tuple(notes), tuple(manifest for manifest, _ in roots))


def manifests(paths: Iterable[Path]) -> Iterator[Manifest]:
    """Every object in the files, in the order of the files and of their names in a directory.

    Raises `Misuse` for a file that is not there, and `InputError` for one that is no manifest.
    """
    for path in paths:
        for file in files(path):
            source = "<stdin>" if file == Path("-") else str(file)
            for document in read_documents(content(file), source):
                yield from flattened(document, document.value, ())


def files(path: Path) -> list[Path]:
    """The file, or the manifests that lie right in the directory."""
    if not path.is_dir():
        return [path]
    found = sorted(entry for entry in path.iterdir() if entry.suffix in SUFFIXES and entry.is_file())
    if not found:
        raise Misuse(f"{printable(str(path))}: no .yaml, .yml or .json file in this directory")
    return found


def content(file: Path) -> bytes:
    """The bytes of a file, or of standard input for `-`."""
    if file == Path("-"):
        return sys.stdin.buffer.read()
    try:
        return file.read_bytes()
    except FileNotFoundError:
        raise Misuse(f"{printable(str(file))}: no such file or directory") from None
    except OSError as error:
        raise Misuse(f"{printable(str(file))}: {(error.strerror or 'cannot be read').lower()}") from None


def flattened(document: Document, value: Any, base: tuple[str, ...]) -> Iterator[Manifest]:
    """The object, or each of the objects in a List."""
    manifest = Manifest(value, document, base)
    if not isinstance(value, Mapping):
        raise InputError(f"{manifest.place()}: a manifest is a map with apiVersion and kind")
    for key in ("apiVersion", "kind"):
        if not isinstance(value.get(key), str) or not value[key]:
            raise InputError(f"{manifest.place(key)}: {key} is missing or not text")
    if value["kind"].endswith("List") and isinstance(value.get("items"), list):
        for index, item in enumerate(value["items"]):
            yield from flattened(document, item, (*base, "items", str(index)))
    else:
        yield manifest


def identity(manifest: Manifest) -> tuple[str, str]:
    """Group and kind."""
    group, _, _ = manifest.body["apiVersion"].rpartition("/")
    return group, manifest.body["kind"]


def placed(manifest: Manifest, kind: Kind, namespace: str, forced: bool) -> Body:
    """The manifest in its namespace. Raises `InputError` when it is of another version, has no name, or belongs elsewhere."""
    body = manifest.body
    if body["apiVersion"] != kind.api_version:
        raise InputError(f"{manifest.place('apiVersion')}: {kind.name} is handled as {kind.api_version} only")
    metadata = body.get("metadata")
    if not isinstance(metadata, Mapping):
        raise InputError(f"{manifest.place('metadata')}: metadata is missing or not a map")
    for key in ("name", "namespace"):
        value = metadata.get(key, "" if key == "namespace" else None)
        if not isinstance(value, str) or (value and not NAME.fullmatch(value)) or (key == "name" and not value):
            told = f"must be a valid name, got {shown(value)}" if key in metadata else "is missing"
            raise InputError(f"{manifest.place('metadata', key)}: metadata.{key} {told}")
    if not kind.namespaced:
        return {**body, "metadata": {key: value for key, value in metadata.items() if key != "namespace"}}
    own = metadata.get("namespace") or namespace
    if forced and own != namespace:
        raise InputError(f"{manifest.place('metadata', 'namespace')}: the namespace is {own}, but --namespace says {printable(namespace)}")
    return {**body, "metadata": {**metadata, "namespace": own}}


def refuse_twins(found: Iterable[tuple[Manifest, Body]]) -> None:
    """Two manifests of one name are a contradiction that only their author can resolve."""
    seen: dict[ResourceId, Manifest] = {}
    for manifest, body in found:
        id = ResourceId(*identity(manifest), body["metadata"].get("namespace", ""), body["metadata"]["name"])
        if id in seen:
            raise InputError(f"{manifest.place()}: {printable(str(id))} is asked for twice, first at {seen[id].place()}")
        seen[id] = manifest


def refuse_faults(roots: Iterable[tuple[Manifest, Kind]], check: Check) -> None:
    """Raise `InputError` with every fault of every manifest, each with the line of its field."""
    refuse([f"{manifest.place(*issue.path)}: {issue}" for manifest, kind in roots for issue in check(kind, manifest.body)])


def refuse(faults: Sequence[str]) -> None:
    """Raise `InputError` with the faults, if there are any."""
    if faults:
        rest = [f"and {len(faults) - TOLD} more faults"] if len(faults) > TOLD else []
        raise InputError("\n".join([*faults[:TOLD], *rest]))
