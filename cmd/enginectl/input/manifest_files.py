"""Manifest files: every object in the files that a user names, with its file and line."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

from engine.errors import InputError
from engine.ids import Kind, ResourceId
from engine.report.printable import printable
from engine.resource import Body
from enginectl.base.exit_codes import UsageError
from enginectl.base.files import KUSTOMIZATIONS, STDIN, is_kustomization, read_bytes
from providers.documents import Document, read_documents
from resources.base.kinds import newer
from resources.schema.issues import Issue, shown

SUFFIXES = frozenset({".yaml", ".yml", ".json"})
CHART = "Chart.yaml"
RENDER_FIRST = "render it first (helm template … | engine diff -f -)"
IS_TEMPLATE = f"this looks like a Helm template: {RENDER_FIRST}"
ACTION = re.compile(rb"\{\{-?\s*(?:/\*|\$|\.[A-Z]|(?:include|template|define|if|else|end|range|with|block|toYaml|tpl|required|quote)\b)")
"""The beginning of an action of a Helm template."""
URL = re.compile(r"(https?):/+")
"""The beginning of a URL, of which a path has one slash only."""
NAME = re.compile(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?")
VALID: Final = "lowercase letters, digits, - and . only, at both ends a letter or a digit"
OURS: Final = "engine.grove.io"
KUSTOMIZE: Final = "kustomize.config.k8s.io"
OTHER_FILES: Final[Mapping[str, str]] = {
    "SavedPlan": "this is a saved plan: engine sync --plan applies it, engine show shows it",
    "Snapshot": "this is a snapshot: --against takes it",
    "Diff": "this is a report of engine diff; --out saves a plan",
}
"""Kind of a document that the engine writes -> what it is good for."""
MAX_FAULTS = 20
"""Faults listed in one error message; of the others the number is given."""


class Manifest(Struct, frozen=True, eq=False):
    """One object in a file."""

    body: Body
    document: Document
    base: tuple[str, ...] = ()
    """Path of the object in its document; not empty for an item of a List."""

    def place(self, *path: str | int) -> str:
        """`file:line` of a field of the object, or of its nearest parent that has a line."""
        return printable(self.document.place((*self.base, *map(str, path))))

    def line(self, *path: str | int) -> int:
        """The line of a field of the object, or of its nearest parent that has a line."""
        return self.document.line((*self.base, *map(str, path)))

    @property
    def group_kind(self) -> tuple[str, str]:
        """Group and kind of the object."""
        group, _, _ = self.body["apiVersion"].rpartition("/")
        return group, self.body["kind"]


def read_manifests(
    paths: Iterable[Path],
    *,
    recursive: bool = False,
    kustomizations: Iterable[Path] = (),
    may_be_empty: bool = False,
    remote: bool = False,
    faults: list[str] | None = None,
) -> Iterator[Manifest]:
    """Every object in the files, in the order of the paths, then those that kustomize builds from the other directories.

    Files of a directory come in the order of their names; a directory with a kustomization is built instead. `recursive`: also those
    of the directories in it. Raises `UsageError` for a file that does not exist, and `InputError` with what is wrong with those that are
    no manifests, after the objects of all others; with `faults` it is added there instead. `may_be_empty`: a directory without manifest
    files is no error. `remote`: kustomize may use the network.
    """
    unread: list[str] = [] if faults is None else faults
    named = [path for pattern in paths for path in paths_of(pattern)]
    given = {*named, *kustomizations}
    files = (file for path in named for file in manifest_files(path, recursive=recursive, may_be_empty=may_be_empty))
    sources = ((file, is_kustomization(file)) for file in files)
    for source, is_built in chain(sources, ((directory, True) for directory in kustomizations)):
        try:
            yield from built_manifests(source, remote=remote) if is_built else file_manifests(source)
        except UsageError as error:
            if source in given:
                raise
            unread.append(str(error))  # A link in a directory that leads nowhere.
        except InputError as error:
            unread += str(error).splitlines()
    if faults is None:
        refuse(unread)


def paths_of(pattern: Path) -> list[Path]:
    """The paths that match, sorted, as kubectl expands a pattern; the pattern itself if it names a file or matches nothing."""
    text = str(pattern)
    if not any(character in text for character in "*?[") or pattern.exists():
        return [pattern]
    from glob import glob  # Shells expand most patterns.

    return sorted(map(Path, glob(text))) or [pattern]


def file_manifests(file: Path) -> Iterator[Manifest]:
    """Every object in one file, or in standard input."""
    yield from objects_in(read_bytes(file), "<stdin>" if file == STDIN else str(file))


def built_manifests(directory: Path, *, remote: bool = False) -> Iterator[Manifest]:
    """Every object that kustomize builds from a directory. Raises `InputError` if that needs the network, unless `remote`."""
    if not is_kustomization(directory):
        hint = f"; name the directory: -k {printable(str(directory.parent))}" if directory.name in KUSTOMIZATIONS else ""
        raise UsageError(f"{printable(str(directory))}: no directory with a {KUSTOMIZATIONS[0]}{hint}")
    from enginectl.input.kustomize import build
    from enginectl.input.remote_entries import remote_entries

    if not remote:
        refuse(list(remote_entries(directory)))
    yield from objects_in(build(directory, remote=remote), f"{directory} (built by kustomize)")


def objects_in(data: bytes, source: str) -> Iterator[Manifest]:
    """Every object in a stream of documents. Raises `InputError`; if the text is a Helm template, the message says so."""
    try:
        for document in read_documents(data, source):
            yield from flatten(document, document.value, ())
    except InputError as error:
        if line := template_line(data):
            raise InputError(f"{printable(source)}:{line}: {IS_TEMPLATE}") from error
        raise


def template_line(data: bytes) -> int | None:
    """The line of the first action of a Helm template in a text; None if there is none."""
    match = ACTION.search(data)
    return data.count(b"\n", 0, match.start()) + 1 if match else None


def manifest_files(path: Path, *, recursive: bool = False, may_be_empty: bool = False) -> list[Path]:
    """The file itself; or the manifest files directly in the directory, by name, and with `recursive` those in its directories.

    A directory with a kustomization stands for what is built from it. Raises `UsageError`.
    """
    if url := URL.match(str(path)):
        text = f"{url[1]}://{str(path)[url.end() :]}"
        raise UsageError(f"{printable(text)}: a URL is not read: curl -fsSL URL | engine diff -f -")
    if not path.is_dir() or is_kustomization(path):
        return [path]
    files = list(files_in(path, recursive))
    if not files and not may_be_empty:
        where = "in this directory or below" if recursive else "in this directory"
        hint = "; -R reads those of the directories in it" if not recursive and any(files_in(path, recursive=True)) else ""
        raise UsageError(f"{printable(str(path))}: no .yaml, .yml or .json file {where}{hint}")
    return files


def files_in(directory: Path, recursive: bool) -> Iterator[Path]:
    """The manifest files of a directory, those of its directories after its own. Links to directories are not followed; one that leads
    nowhere is a file that cannot be read."""
    if (directory / CHART).is_file():
        raise UsageError(f"{printable(str(directory))}: this is a Helm chart: {RENDER_FIRST}")
    entries = sorted(directory.iterdir())
    yield from (entry for entry in entries if entry.suffix in SUFFIXES and (entry.is_file() or is_broken_link(entry)))
    for entry in entries:
        if recursive and entry.is_dir() and not entry.is_symlink() and not entry.name.startswith("."):
            yield from [entry] if is_kustomization(entry) else files_in(entry, recursive)


def is_broken_link(path: Path) -> bool:
    """Whether a path is a link to something that does not exist; without the lock `.#NAME` of a file that is open in an editor."""
    return path.is_symlink() and not path.exists() and not path.name.startswith(".#")


def flatten(document: Document, value: Any, base: tuple[str, ...]) -> Iterator[Manifest]:
    """The object at this path of a document, or each object in it if it is a List. Raises `InputError` if it has no apiVersion or kind.

    Those of a list of one kind, such as a PodCliqueSetList, may leave both out.
    """
    manifest = Manifest(value, document, base)
    if not isinstance(value, Mapping):
        raise InputError(f"{manifest.place()}: a manifest must be a map with apiVersion and kind")
    if fault := not_a_manifest(document.source, value):
        raise InputError(f"{manifest.place()}: {fault}")
    for key in ("apiVersion", "kind")[value.get("kind") == "List" :]:
        if not isinstance(value.get(key), str) or not value[key]:
            raise InputError(missing(manifest, value, (key,), "is missing or not a string"))
    if value["kind"] == "List" and not isinstance(value.get("items"), list | None):
        raise InputError(f"{manifest.place('items')}: items: must be a list")
    if value["kind"] == "List" or (value["kind"].endswith("List") and isinstance(value.get("items"), list)):
        of = {} if value["kind"] == "List" else {"apiVersion": value["apiVersion"], "kind": value["kind"].removesuffix("List")}
        for index, item in enumerate(value.get("items") or ()):
            yield from flatten(document, {**of, **item} if isinstance(item, Mapping) else item, (*base, "items", str(index)))
    else:
        yield manifest


def not_a_manifest(source: str, value: Body) -> str:
    """What an object is that is no manifest, but something else that commands read or write; empty for others."""
    group, path = str(value.get("apiVersion", OURS)).partition("/")[0], Path(source)
    if path.name in KUSTOMIZATIONS and group in (OURS, KUSTOMIZE):
        return f"this is a kustomization: -k {printable(str(path.parent))} builds it"
    return OTHER_FILES.get(str(value.get("kind")), "") if group == OURS else ""


def missing(manifest: Manifest, holder: Body, path: tuple[str, ...], fault: str) -> str:
    """The place of a field that `holder` has to have, and what is wrong with it: a misspelt name in its place, or else `fault`."""
    *parents, key = path
    if key not in holder:
        from resources.schema.unknown_fields import nearest_name  # Few files have faults.

        for other in (name for name in holder if name != "namespace"):
            if nearest_name(other, (key,)):
                return f"{manifest.place(*parents, other)}: {'.'.join((*parents, printable(other)))}: unknown field: did you mean {key}?"
    return f"{manifest.place(*path)}: {'.'.join(path)} {fault}"


def refuse(faults: Sequence[str]) -> None:
    """Raise `InputError` with a line for each fault, if there are any."""
    if faults:
        rest = [f"and {len(faults) - MAX_FAULTS} more faults"] if len(faults) > MAX_FAULTS else []
        raise InputError("\n".join([*faults[:MAX_FAULTS], *rest]))


def api_versions(kind: Kind) -> tuple[str, ...]:
    """The versions in which a kind is read, the first one first."""
    return (kind.api_version, *(each.api_version for each in newer(kind)))


def faults_by_line(manifest: Manifest, issues: Iterable[Issue]) -> list[str]:
    """What is wrong with a manifest, each with its place, from the first line to the last."""
    return [f"{manifest.place(*issue.path)}: {issue}" for issue in sorted(issues, key=lambda issue: manifest.line(*issue.path))]


def with_namespace(manifest: Manifest, kind: Kind, namespace: str, forced: bool) -> Body:
    """The manifest with its namespace. Raises `InputError` if its version, name or namespace cannot be used."""
    body = manifest.body
    if body["apiVersion"] not in api_versions(kind):
        raise InputError(f"{manifest.place('apiVersion')}: {kind.name} is supported as {' and '.join(api_versions(kind))} only")
    metadata = body.get("metadata")
    if not isinstance(metadata, Mapping):
        raise InputError(missing(manifest, body, ("metadata",), "is missing or not a map"))
    for key in ("name", "namespace"):
        value = metadata.get(key, "" if key == "namespace" else None)
        if not isinstance(value, str) or (value and not NAME.fullmatch(value)) or (key == "name" and not value):
            fault = name_fault(value) if key in metadata else "is missing"
            raise InputError(missing(manifest, metadata, ("metadata", key), fault))
    if not kind.namespaced:
        return {**body, "metadata": {key: value for key, value in metadata.items() if key != "namespace"}}
    own = metadata.get("namespace") or namespace
    if forced and own != namespace:
        raise InputError(f"{manifest.place('metadata', 'namespace')}: the namespace is {own}, but --namespace is {printable(namespace)}")
    return {**body, "metadata": {**metadata, "namespace": own}}


def name_fault(value: Any) -> str:
    """Why a value is no name, and what to write instead."""
    if isinstance(value, str):
        remedy = IS_TEMPLATE if "{{" in value else VALID
    else:
        remedy = "quote it" if isinstance(value, int | float) else ""
    return ": ".join(filter(None, (f"must be a valid name, got {shown(value)}", remedy)))


def id_of(group_kind: tuple[str, str], body: Body) -> ResourceId:
    """The identity of a manifest that has its namespace."""
    return ResourceId(*group_kind, body["metadata"].get("namespace", ""), body["metadata"]["name"])


def duplicates(pairs: Iterable[tuple[Manifest, Body]]) -> Iterator[str]:
    """What is wrong with manifests that have the kind, namespace and name of an earlier one."""
    first: dict[ResourceId, Manifest] = {}
    for manifest, body in pairs:
        id = id_of(manifest.group_kind, body)
        if id in first:
            yield f"{manifest.place()}: {printable(str(id))} appears twice, first at {first[id].place()}"
        else:
            first[id] = manifest
