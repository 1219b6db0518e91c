"""Manifest files: every object in the files that a user names, with its file and line."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine.errors import InputError
from engine.report.printable import printable
from engine.resource import Body
from enginectl.base.errors import UsageError
from enginectl.base.files import STDIN, read_bytes
from providers.documents import Document, read_documents

SUFFIXES = frozenset({".yaml", ".yml", ".json"})
MAX_FAULTS = 20
"""Faults listed in one error message; of the others the number is given."""


@dataclass(frozen=True, slots=True, eq=False)
class Manifest:
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


def read_manifests(paths: Iterable[Path], *, may_be_empty: bool = False) -> Iterator[Manifest]:
    """Every object in the files, in the order of the paths; files of a directory in the order of their names.

    Raises `UsageError` for a file that does not exist, and for a directory without manifests unless it `may_be_empty`; `InputError` for a
    file that is no manifest.
    """
    for path in paths:
        for file in manifest_files(path, may_be_empty=may_be_empty):
            source = "<stdin>" if file == STDIN else str(file)
            for document in read_documents(read_bytes(file), source):
                yield from flatten(document, document.value, ())


def manifest_files(path: Path, *, may_be_empty: bool = False) -> list[Path]:
    """The file itself, or the manifest files directly in the directory, by name."""
    if not path.is_dir():
        return [path]
    files = sorted(entry for entry in path.iterdir() if entry.suffix in SUFFIXES and entry.is_file())
    if not files and not may_be_empty:
        raise UsageError(f"{printable(str(path))}: no .yaml, .yml or .json file in this directory")
    return files


def flatten(document: Document, value: Any, base: tuple[str, ...]) -> Iterator[Manifest]:
    """The object at this path of a document, or each object in it if it is a List. Raises `InputError` if it has no apiVersion or kind."""
    manifest = Manifest(value, document, base)
    if not isinstance(value, Mapping):
        raise InputError(f"{manifest.place()}: a manifest must be a map with apiVersion and kind")
    for key in ("apiVersion", "kind"):
        if not isinstance(value.get(key), str) or not value[key]:
            raise InputError(f"{manifest.place(key)}: {key} is missing or not a string")
    if value["kind"].endswith("List") and isinstance(value.get("items"), list):
        for index, item in enumerate(value["items"]):
            yield from flatten(document, item, (*base, "items", str(index)))
    else:
        yield manifest


def refuse(faults: Sequence[str]) -> None:
    """Raise `InputError` with a line for each fault, if there are any."""
    if faults:
        rest = [f"and {len(faults) - MAX_FAULTS} more faults"] if len(faults) > MAX_FAULTS else []
        raise InputError("\n".join([*faults[:MAX_FAULTS], *rest]))
