"""Loading: the roots in the files that a command names, with the scaling adapters that ask for replicas of their services."""

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from engine.errors import InputError
from engine.ids import Kind
from engine.report.printable import printable
from enginectl.base import terminal
from enginectl.base.files import STDIN, has_unread_input
from enginectl.input.manifest_files import Manifest, read_manifests
from enginectl.input.pod_findings import further_faults, manifest_faults
from enginectl.input.roots import ManifestSources, Roots, select_roots
from enginectl.wiring.cluster import EMPTY, LIVE
from enginectl.wiring.configuration import DEFAULT_NAMESPACE, Wiring, default_namespace
from enginectl.wiring.scope import ROOTS
from resources.base.kinds import SCALING_ADAPTER

UNREAD: Final = "standard input is not read: -f - takes manifests from it"
MAX_FILES: Final = 6
"""Files that an error message names."""


def is_adapter(manifest: Manifest) -> bool:
    """Whether a manifest is a scaling adapter that a user has written; one that was read from a cluster is the graph's own."""
    metadata = manifest.body.get("metadata")
    is_read = isinstance(metadata, Mapping) and (metadata.get("uid") or metadata.get("ownerReferences"))
    return manifest.group_kind == (SCALING_ADAPTER.group, SCALING_ADAPTER.name) and not is_read


def load_roots(wiring: Wiring, sources: ManifestSources, *, against: str = LIVE, allow_empty: bool = False) -> Roots:
    """The roots in the manifests. Other objects in them are named on stderr.

    Raises `InputError` with every fault, also if files are given and have no root, unless `allow_empty`; and `UsageError`.
    """
    options = wiring.options
    unread: list[str] = []
    if not sources.paths and not allow_empty and has_unread_input():
        terminal.note(UNREAD)
    read = read_manifests(
        sources.files,
        recursive=sources.recursive,
        kustomizations=sources.kustomizations,
        may_be_empty=allow_empty,
        remote=sources.remote,
        faults=unread,
    )
    manifests: list[Manifest] = []
    adapters: list[Manifest] = []
    for manifest in read:
        (adapters if is_adapter(manifest) else manifests).append(manifest)
    namespace = options.namespace or (default_namespace(wiring) if against == LIVE and (manifests or adapters) else DEFAULT_NAMESPACE)
    further = partial(further_faults, wiring=wiring, is_creation=against == EMPTY)
    forced = bool(options.namespace)
    if adapters:
        from enginectl.input.adapters import read_adapters, with_adapters  # Few files have any.

        asked = read_adapters(adapters, namespace=namespace, forced=forced, faults=unread)
    roots = select_roots(manifests, ROOTS, manifest_faults, further, namespace=namespace, forced=forced, unread=unread)
    if adapters:
        roots = with_adapters(roots, asked, is_complete=against == EMPTY)
    for note in roots.notes:
        terminal.note(note)
    if sources.paths and not roots.bodies and not allow_empty:
        raise InputError(f"no objects passed: there is no {_either(ROOTS)} in {_named(sources.paths)}")
    return replace(roots, given=bool(sources.paths))


def _either(kinds: Sequence[Kind]) -> str:
    """`A, B or C`."""
    *others, last = (kind.name for kind in kinds)
    return f"{', '.join(others)} or {last}" if others else last


def _named(paths: Sequence[Path]) -> str:
    """At most `MAX_FILES` of the paths, and how many more there are."""
    names = [printable("standard input" if path == STDIN else str(path)) for path in paths]
    more = f" and {len(names) - MAX_FILES} more" if len(names) > MAX_FILES else ""
    return f"{', '.join(names[:MAX_FILES])}{more}"
