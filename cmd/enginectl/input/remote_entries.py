"""Remote entries: what kustomize would fetch over the network for a kustomization, with those that it includes."""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from engine.report.printable import clipped, printable
from enginectl.base.files import KUSTOMIZATIONS, is_kustomization, read_bytes
from providers.documents import Document, read_documents

DIRECTORIES: Final = ("bases", "components", "resources")
"""The fields whose entries are files or directories with manifests, or repositories."""
PLUG_INS: Final = ("generators", "transformers", "validators")
"""The same, of files that configure plug-ins; an entry may also be the configuration itself."""
FILES: Final = ("configurations", "crds", "patches", "patchesjson6902", "patchesstrategicmerge", "replacements")
"""The fields whose entries are files, some of them in a field `path`; or the contents itself."""
SOURCES: Final = ("configmapgenerator", "secretgenerator")
"""The fields whose entries have lists of files, each with an optional key before it."""
CHARTS: Final = ("helmcharts", "helmchartinflationgenerator")
"""The fields whose entries are charts: a program fetches them."""
ANYWHERE: Final = re.compile(r"[a-z][a-z0-9+.-]*://|git::", re.IGNORECASE)
"""The beginning of a URL in a configuration of a plug-in, whose fields are its own."""
GITHUB: Final = "github.com"
MAX_ENTRY: Final = 200
"""Characters of an entry in a message."""


def remote_entries(directory: Path) -> Iterator[str]:
    """A line for each entry that is not a local file or directory, with file, line and field. Raises `InputError` if a file is no YAML.

    Only what kustomize would read is followed, and each directory once.
    """
    seen: set[tuple[Path, bool]] = set()
    rest = [(directory, False)]
    while rest:
        place, configures = rest.pop(0)
        key = (place.resolve(), configures)
        if key in seen:
            continue
        seen.add(key)
        if not is_kustomization(place):
            if configures and place.is_file():
                yield from _in_plug_ins(place)
            continue
        for document in _documents(place):
            for field, value in _fields(document.value):
                yield from _remote_in(document, field, value)
                rest += [(place / entry, configures or field.casefold() in PLUG_INS) for entry in _local_entries(field, value)]


def is_inline(entry: str) -> bool:
    """Whether an entry is the contents itself, in place of the name of a file."""
    return "\n" in entry.strip() or entry.lstrip().startswith("{")


def is_remote(entry: str) -> bool:
    """Whether kustomize fetches an entry: a URL, a repository with a user or a host before a colon, or one of GitHub without a scheme."""
    first = entry.strip().partition("/")[0]
    return ":" in first or "@" in first or first.casefold().endswith(GITHUB)


def _documents(directory: Path) -> Iterator[Document]:
    """The documents of the kustomization in a directory, whichever of its names it has."""
    for file in (directory / name for name in KUSTOMIZATIONS):
        if file.is_file():
            yield from _read(file)


def _read(file: Path) -> Iterator[Document]:
    for document in read_documents(read_bytes(file), str(file)):
        if isinstance(document.value, Mapping):
            yield document


def _fields(body: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """The fields with something in them. kustomize does not distinguish capital letters."""
    return ((str(field), value) for field, value in body.items() if value)


def _remote_in(document: Document, field: str, value: Any) -> Iterator[str]:
    """A line for each remote entry of one field."""
    name = field.casefold()
    if name in CHARTS:
        for index, chart in _entries(value):
            shown = chart.get("name") or chart.get("chartName") or chart.get("repo") if isinstance(chart, Mapping) else chart
            yield _line(document, (field, index), f"the chart {clipped(str(shown), MAX_ENTRY)}")
        return
    for path, entry in _named(name, (field,), value):
        if is_remote(entry):
            yield _line(document, path, clipped(entry, MAX_ENTRY))
    if name in PLUG_INS:
        for index, entry in _entries(value):
            if isinstance(entry, str) and is_inline(entry) and ANYWHERE.search(entry):
                yield _line(document, (field, index), "a URL in a plug-in")


def _named(name: str, path: tuple[str | int, ...], value: Any) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """Each file, directory or repository that a field names, with its place. What is written in the kustomization itself is none."""
    if name == "openapi":
        value = [value]
    elif name not in (*DIRECTORIES, *PLUG_INS, *FILES, *SOURCES):
        return
    for index, entry in _entries(value):
        place = path if name == "openapi" else (*path, index)
        if isinstance(entry, str) and not (is_inline(entry) and name not in DIRECTORIES):
            yield place, entry
        if isinstance(entry, Mapping):
            yield from _in_entry(place, entry, has_sources=name in SOURCES)


def _in_entry(place: tuple[str | int, ...], entry: Mapping[str, Any], *, has_sources: bool) -> Iterator[tuple[tuple[str | int, ...], str]]:
    for field, value in _fields(entry):
        if has_sources and field.casefold() in ("files", "envs", "env"):
            for index, file in _entries(value):
                # `key=path`: a key has no slash; a path and a URL may have an equals sign behind one.
                text = str(file)
                yield (*place, field, index), text.partition("=")[2] if "=" in text.partition("/")[0] else text
        elif not has_sources and field.casefold() == "path" and isinstance(value, str):
            yield (*place, field), value


def _local_entries(field: str, value: Any) -> Iterator[str]:
    """The entries that may lead to further kustomizations or configurations of plug-ins."""
    if field.casefold() in (*DIRECTORIES, *PLUG_INS):
        yield from (entry for _, entry in _entries(value) if isinstance(entry, str) and not is_inline(entry) and not is_remote(entry))


def _in_plug_ins(file: Path) -> Iterator[str]:
    """A line for each configuration of a plug-in in a file that has a URL anywhere, or is a chart."""
    for document in _read(file):
        charts = "helm" in str(document.value.get("kind")).casefold()
        if charts or any(ANYWHERE.search(text) for text in _texts(document.value)):
            yield _line(document, (), "a chart" if charts else "a URL in a plug-in")


def _texts(value: Any) -> Iterator[str]:
    """Every text in a value. Documents are not deeper than their reader allows."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for each in value.values():
            yield from _texts(each)
    elif isinstance(value, Sequence):
        for each in value:
            yield from _texts(each)


def _entries(value: Any) -> Iterator[tuple[int, Any]]:
    return enumerate(value if isinstance(value, Sequence) and not isinstance(value, str) else [value])


def _line(document: Document, path: tuple[str | int, ...], entry: str) -> str:
    place = printable(document.place(tuple(map(str, path))))
    field = "".join(f"[{part}]" if isinstance(part, int) else f".{clipped(part, MAX_ENTRY)}" for part in path).lstrip(".")
    return f"{place}: {field}{': ' if field else ''}{entry} is fetched over the network: allow it with --enable-remote"
