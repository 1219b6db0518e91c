"""Deletion: the workloads that `engine delete` names, by name, by manifest or by label."""

import os.path
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

from msgspec import Struct

from engine.errors import InputError
from engine.focus import LabelSelector, parse_selector
from engine.ids import ResourceId
from engine.intent import Removal, RootRemovals
from engine.observed import Live
from engine.proposal import proposed_root
from engine.report.printable import clipped, printable
from engine.runtime.provider import Provider
from enginectl.base import terminal
from enginectl.base.exit_codes import UsageError
from enginectl.input.manifest_files import NAME, SUFFIXES, read_manifests
from enginectl.input.removals import RemovalScope, roots_in, widened
from enginectl.input.roots import no_faults, select_roots
from enginectl.input.targets import NO_NAMESPACE, ambiguous, is_missing, kinds_by_word, listed
from enginectl.wiring.configuration import Wiring, default_namespace
from enginectl.wiring.scope import ROOTS, Selection
from resources.blueprints.pruning import removal_objections

WHY: Final = "asked for by engine delete"
LISTED: Final = 10
"""The most files in an error message."""


class Wanted(Struct, frozen=True):
    """A workload that a user names."""

    text: str
    """As the user wrote it."""
    kind: str
    """Empty: whichever kind has a workload of this name."""
    namespace: str
    name: str

    def matches(self, id: ResourceId) -> bool:
        """Whether it names this root. A root without a namespace is only named together with its kind."""
        is_placed = id.namespace == self.namespace or (bool(self.kind) and not id.namespace)
        return id.name == self.name and self.kind in ("", id.kind) and is_placed


class Deletion(Struct, frozen=True, eq=False):
    """The `enginectl.input.removals.Removing` of `engine delete`."""

    wanted: tuple[Wanted, ...] = ()
    selector: LabelSelector | None = None
    ignore_missing: bool = False

    async def find(self, wiring: Wiring, provider: Provider, selection: Selection) -> RemovalScope:
        """The workloads that are named. Raises `InputError`, which names those that exist, if one does not, and `UsageError`."""
        wide = widened(selection, {each.namespace for each in self.wanted}, {each.kind for each in self.wanted})
        kinds = {each.kind for each in self.wanted}
        is_open = self.selector is not None or "" in kinds
        unnamed = next((each.name for each in self.wanted if not each.kind), "")
        hint = f"; name the kind as well, e.g. pcs/{printable(unnamed)}" if unnamed and self.selector is None else ""
        roots = (await roots_in(wiring, provider, wide, frozenset() if is_open else kinds, hint)).roots
        empty = () if self.ignore_missing else {*wide.namespaces} - {live.id.namespace for live in roots}
        missing = {namespace for namespace in empty if await is_missing(namespace, provider)}
        chosen = {live.id: live for each in self.wanted for live in self._named(each, roots, missing)}
        if self.selector is not None:
            chosen |= {live.id: live for live in self._selected(self.selector, roots, missing)}
        removals = {id: Removal(live.uid, WHY) for id, live in sorted(chosen.items())}
        return RemovalScope(wide, RootRemovals(removals, tuple(removal_objections(chosen.values()))))

    def _named(self, wanted: Wanted, roots: Sequence[Live], missing: Collection[str]) -> Iterator[Live]:
        """The root of that name. One that a user has made comes before one of the same name that is a part of it."""
        matches = [live for live in roots if wanted.matches(live.id)]
        matches = [live for live in matches if not live.owners] or matches
        if len(matches) > 1:
            raise ambiguous(wanted.text, [live.id for live in matches])
        if not matches and not self.ignore_missing:
            is_nowhere = wanted.namespace in missing
            instead = f" in {wanted.namespace}{NO_NAMESPACE}" if is_nowhere else listed([live.id for live in roots], wanted.name)
            raise InputError(f"{printable(wanted.text)} does not exist{instead}")
        yield from matches

    def _selected(self, selector: LabelSelector, roots: Sequence[Live], missing: Collection[str]) -> list[Live]:
        """The roots with these labels, without those that are parts of other roots."""
        uids = {live.uid for live in roots}
        whole = [live for live in roots if not any(owner.uid in uids for owner in live.owners)]
        selected = [live for live in whole if selector.matches(live.labels)]
        if not selected and not self.ignore_missing:
            instead = f" in {', '.join(sorted(missing))}{NO_NAMESPACE}" if missing else listed([live.id for live in whole])
            raise InputError(f"no workload has the labels {printable(selector.text)}{instead}")
        return selected


def deletion_of(
    wiring: Wiring, names: Sequence[str], files: Sequence[Path], selector: str, *, ignore_missing: bool, remote: bool = False
) -> Deletion:
    """What the arguments of `engine delete` name. Raises `UsageError` if they name nothing, or cannot be understood."""
    if not (names or files or selector):
        raise UsageError("name the workloads to delete: [KIND/]NAME, -f FILE or -l SELECTOR")
    if names and wiring.options.all_namespaces:
        raise UsageError("a name is in one namespace: leave out -A, or select by label with -l")
    namespace = wiring.options.namespace or default_namespace(wiring)
    wanted = (*(wanted_by(name, namespace) for name in names), *_wanted_in(files, wiring, namespace, remote))
    return Deletion(wanted, _selector(selector), ignore_missing)


def wanted_by(text: str, namespace: str) -> Wanted:
    """The workload that `[KIND/]NAME` names. Raises `UsageError`."""
    word, separator, name = text.rpartition("/")
    has_kind = word.lower() in kinds_by_word()
    if Path(text).suffix in SUFFIXES and not has_kind and (separator or os.path.exists(text)):
        raise UsageError(f"{clipped(text, 200)}: not a name; name manifests with -f {clipped(text, 200)}")
    if separator and not has_kind:
        raise UsageError(f"{clipped(text, 200)}: {clipped(word, 80)} is none of {', '.join(sorted(set(kinds_by_word().values())))}")
    if not NAME.fullmatch(name):
        raise UsageError(f"{clipped(text, 200)}: not a valid name; expected [KIND/]NAME, e.g. web or pcs/web")
    return Wanted(text, kinds_by_word().get(word.lower(), ""), namespace, name)


def _wanted_in(files: Sequence[Path], wiring: Wiring, namespace: str, remote: bool) -> Iterable[Wanted]:
    """The workloads that manifests name. The rest of the manifests is not looked at."""
    manifests = select_roots(
        read_manifests(files, remote=remote), ROOTS, no_faults, namespace=namespace, forced=bool(wiring.options.namespace)
    )
    for note in manifests.notes:
        terminal.note(note)
    if files and not manifests.bodies:
        raise UsageError(f"there is no workload in {', '.join(printable(str(file)) for file in files[:LISTED])}")
    ids = [proposed_root(body).id for body in manifests.bodies]
    return [Wanted(str(id), id.kind, id.namespace, id.name) for id in ids]


def _selector(text: str) -> LabelSelector | None:
    try:
        return parse_selector(text) if text else None
    except InputError as error:
        raise UsageError(f"--selector: {error}") from None
