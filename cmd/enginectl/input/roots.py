"""Roots: the objects of our root kinds among a user's manifests, checked and placed in a namespace."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from engine.errors import InputError
from engine.ids import Kind, ResourceId
from engine.report.printable import clipped, printable
from engine.resource import Body
from enginectl.base import terminal
from enginectl.input.manifest_files import Manifest, read_manifests, refuse
from enginectl.wiring.cluster import LIVE
from enginectl.wiring.configuration import DEFAULT_NAMESPACE, Wiring, default_namespace
from enginectl.wiring.scope import ROOTS, Selection, select
from resources.schema.issues import Issue, shown
from resources.schema.parse import faults

NAME = re.compile(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?")

Check = Callable[[Kind, Body], Sequence[Issue]]
"""Returns what is wrong with a manifest of that kind."""


@dataclass(frozen=True, slots=True, eq=False)
class Roots:
    """The roots in a user's manifests."""

    bodies: tuple[Body, ...] = ()
    manifests: tuple[Manifest, ...] = ()
    """Where each root was read from, in the same order."""
    notes: tuple[str, ...] = ()
    """About manifests of kinds that are not roots: they are ignored."""

    @property
    def namespaces(self) -> tuple[str, ...]:
        """The namespaces of the roots, sorted."""
        return tuple(sorted({namespace for body in self.bodies if (namespace := body["metadata"].get("namespace"))}))

    @property
    def kinds(self) -> frozenset[str]:
        """The kinds of the roots."""
        return frozenset(body["kind"] for body in self.bodies)


NO_ROOTS = Roots()


def load_roots(wiring: Wiring, files: Sequence[Path], *, against: str = LIVE, may_be_empty: bool = False) -> Roots:
    """The roots in the files. Other objects in them are named on stderr. Raises `InputError` with every fault, and `UsageError`.

    `may_be_empty`: a directory without manifests is no error.
    """
    options = wiring.options
    manifests = list(read_manifests(files, may_be_empty=may_be_empty))
    namespace = options.namespace or (default_namespace(wiring) if against == LIVE and manifests else DEFAULT_NAMESPACE)
    roots = select_roots(manifests, ROOTS, faults, namespace=namespace, forced=bool(options.namespace))
    for note in roots.notes:
        terminal.note(note)
    return roots


def select_for(wiring: Wiring, roots: Roots, default: Iterable[str] = ()) -> Selection:
    """What to read for these roots: their namespaces and kinds, unless the options name others."""
    return select(wiring, namespaces=roots.namespaces, kinds=roots.kinds, default=default)


def select_roots(manifests: Iterable[Manifest], kinds: Sequence[Kind], check: Check, *, namespace: str, forced: bool = False) -> Roots:
    """The manifests of these kinds. One without a namespace gets `namespace`, if its kind is namespaced; `forced` allows no other.

    Raises `InputError` with a line for every fault.
    """
    handled = {(kind.group, kind.name): kind for kind in kinds}
    *others, last = (f"{kind.name}s" for kind in kinds)
    taken = f"{', '.join(others)} and {last}" if others else last
    pairs: list[tuple[Manifest, Kind]] = []
    notes: list[str] = []
    for manifest in manifests:
        kind = handled.get(manifest.group_kind)
        if kind:
            pairs.append((manifest, kind))
        else:
            notes.append(f"{manifest.place()}: {clipped(str(manifest.body['kind']), 80)} is ignored: the engine takes {taken} only")
    bodies = tuple(with_namespace(manifest, kind, namespace, forced) for manifest, kind in pairs)
    selected = tuple(manifest for manifest, _ in pairs)
    refuse_duplicates(zip(selected, bodies, strict=True))
    refuse([fault for manifest, kind in pairs for fault in faults_by_line(manifest, check(kind, manifest.body))])
    return Roots(bodies, selected, tuple(notes))


def faults_by_line(manifest: Manifest, issues: Iterable[Issue]) -> list[str]:
    """What is wrong with a manifest, each with its place, from the first line to the last."""
    return [f"{manifest.place(*issue.path)}: {issue}" for issue in sorted(issues, key=lambda issue: manifest.line(*issue.path))]


def with_namespace(manifest: Manifest, kind: Kind, namespace: str, forced: bool) -> Body:
    """The manifest with its namespace. Raises `InputError` if its version, name or namespace cannot be used."""
    body = manifest.body
    if body["apiVersion"] != kind.api_version:
        raise InputError(f"{manifest.place('apiVersion')}: {kind.name} is supported as {kind.api_version} only")
    metadata = body.get("metadata")
    if not isinstance(metadata, Mapping):
        raise InputError(f"{manifest.place('metadata')}: metadata is missing or not a map")
    for key in ("name", "namespace"):
        value = metadata.get(key, "" if key == "namespace" else None)
        if not isinstance(value, str) or (value and not NAME.fullmatch(value)) or (key == "name" and not value):
            fault = f"must be a valid name, got {shown(value)}" if key in metadata else "is missing"
            raise InputError(f"{manifest.place('metadata', key)}: metadata.{key} {fault}")
    if not kind.namespaced:
        return {**body, "metadata": {key: value for key, value in metadata.items() if key != "namespace"}}
    own = metadata.get("namespace") or namespace
    if forced and own != namespace:
        raise InputError(f"{manifest.place('metadata', 'namespace')}: the namespace is {own}, but --namespace is {printable(namespace)}")
    return {**body, "metadata": {**metadata, "namespace": own}}


def refuse_duplicates(pairs: Iterable[tuple[Manifest, Body]]) -> None:
    """Raise `InputError` if two manifests have the same kind, namespace and name."""
    first: dict[ResourceId, Manifest] = {}
    for manifest, body in pairs:
        id = ResourceId(*manifest.group_kind, body["metadata"].get("namespace", ""), body["metadata"]["name"])
        if id in first:
            raise InputError(f"{manifest.place()}: {printable(str(id))} appears twice, first at {first[id].place()}")
        first[id] = manifest
