"""Targets: which workloads a command concerns, as its options `--target`, `--selector`, `--exclude` and its manifests say."""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from difflib import SequenceMatcher
from functools import cache
from typing import Final

from msgspec import Struct, field
from msgspec.structs import replace

from engine.errors import ClusterError, InputError
from engine.focus import ANY, EVERYTHING, Focus, RootTarget, parse_selector
from engine.ids import NAMESPACE, ResourceId
from engine.observed import World
from engine.proposal import proposed_root
from engine.report.printable import clipped, printable
from engine.runtime.provider import Provider, RecordedProvider
from enginectl.base import terminal
from enginectl.base.exit_codes import UsageError
from enginectl.input.roots import NO_ROOTS, Roots
from enginectl.wiring.configuration import Wiring
from enginectl.wiring.scope import ROOTS, Selection, scope_of

TEXT = re.compile(r"[a-z0-9.*-]+")
"""A name or a namespace, in which `*` stands for any characters."""
LISTED = 6
"""Workloads that an error message names."""
COMPARED = 1000
"""Workloads whose names are compared with one that does not exist."""
MAX_WORD = 200
NO_NAMESPACE: Final = ": the namespace does not exist"


class Words(Struct, frozen=True):
    """The options of a command that restrict it to some workloads, as the user wrote them."""

    targets: Sequence[str] = ()
    selectors: Sequence[str] = ()
    excluded: Sequence[str] = ()


class Candidates(Struct, frozen=True):
    """The workloads that options may name."""

    labels: Mapping[ResourceId, Mapping[str, str]]
    """Workload -> its labels."""
    wholes: Mapping[ResourceId, ResourceId] = field(default_factory=dict)
    """A root that is a part of a workload -> that workload."""
    where: str = ""
    """Where they are, for messages."""


def parse_target(word: str, option: str = "--target") -> RootTarget:
    """The target that `[KIND/][NAMESPACE/]NAME` means. Raises `UsageError` if it means none.

    The first of two words is a kind if it is a word for one, otherwise a namespace.
    """
    *before, name = word.split("/")
    kinds = kinds_by_word()
    kind = kinds.get(before[0].lower(), "") if before else ""
    if before and (kind or len(before) == 2):
        first = before.pop(0)
        if not kind:
            raise UsageError(
                f"{option} {clipped(word, MAX_WORD)}: {clipped(first, MAX_WORD)} is none of {', '.join(sorted(set(kinds.values())))}"
            )
    namespace = before.pop() if before else None
    if before or not TEXT.fullmatch(name) or (namespace is not None and not TEXT.fullmatch(namespace)):
        raise UsageError(f"{option} {clipped(word, MAX_WORD)}: expected [KIND/][NAMESPACE/]NAME, e.g. web, pcs/web or pcs/prod/web")
    return RootTarget(kind, namespace or "", name)


@cache
def kinds_by_word() -> Mapping[str, str]:
    """A word for a kind of root, in lower case -> the kind."""
    from resources.schema.crds import DEFINITIONS  # All models, of which a command without targets needs few.

    return {
        word.lower(): definition.kind.name
        for definition in DEFINITIONS
        if (kind := definition.kind) in ROOTS
        for word in (kind.name, kind.plural, f"{kind.plural}.{kind.group}", definition.short_name)
    }


def focus_on(roots: Roots, words: Words) -> tuple[Roots, Focus]:
    """The manifests that a command applies, and the workloads that it concerns. Raises `UsageError`.

    With manifests: their workloads, of which targets and selectors choose. `--target '*'` means all workloads in scope, with or without
    manifests; selectors and exclusions apply to them as well. Whether these names exist in the cluster says `require_matches`.
    """
    chosen, _, focus = focus_on_change(roots, NO_ROOTS, words)
    return chosen, focus


def focus_on_change(roots: Roots, base: Roots, words: Words) -> tuple[Roots, Roots, Focus]:
    """The same of manifests that are compared with those of a base: it concerns the workloads of both. The second are those of the base."""
    focus = _focus(words)
    labels = _labels(base) | _labels(roots)
    if (roots.given or labels) and ANY not in words.targets:
        if focus.is_narrowed:
            _require(Candidates(labels, where="among the manifests"), focus)
        chosen, compared = _within(roots, focus), _within(base, focus)
        return chosen, compared, Focus(frozenset(_labels(chosen) | _labels(compared)))
    return replace(_within(roots, focus), also_in=roots.namespaces), base, focus


def _focus(words: Words) -> Focus:
    targets = tuple(parse_target(word) for word in words.targets) if ANY not in words.targets else ()
    excluded = tuple(parse_target(word, "--exclude") for word in words.excluded)
    try:
        selectors = tuple(parse_selector(text) for text in words.selectors)
    except InputError as error:
        raise UsageError(f"--selector: {clipped(str(error), MAX_WORD)}") from None
    return Focus(None, targets, selectors, excluded)


def _labels(roots: Roots) -> dict[ResourceId, Mapping[str, str]]:
    """The workload of each manifest, with its labels."""
    return {root.id: root.labels for root in map(proposed_root, roots.bodies)}


def _within(roots: Roots, focus: Focus) -> Roots:
    """The manifests of the workloads that the focus includes."""
    if focus == EVERYTHING:
        return roots
    ours = [(body, manifest) for body, manifest in zip(roots.bodies, roots.manifests, strict=True) if _includes(focus, body)]
    return replace(roots, bodies=tuple(body for body, _ in ours), manifests=tuple(manifest for _, manifest in ours))


def _includes(focus: Focus, body: Mapping[str, object]) -> bool:
    root = proposed_root(body)
    return focus.includes(root.id, root.labels)


async def require_matches(wiring: Wiring, provider: Provider, selection: Selection, roots: Roots, focus: Focus) -> None:
    """Raise `UsageError` if an option names no workload, neither of the manifests nor in the selection of the cluster.

    What could not be listed completely may match.
    """
    if not focus.is_narrowed:
        return
    observation = await provider.observe(replace(scope_of(wiring.configuration, selection), children=(), references=()))
    if observation.incomplete:
        return
    by_uid = {root.uid: root.id for root in observation.roots}
    parts = {root.id: by_uid[owner.uid] for root in observation.roots if (owner := root.controller) and owner.uid in by_uid}
    labels = {root.id: root.labels for root in observation.roots if root.id not in parts} | _labels(roots)
    _require(Candidates(labels, parts, where_of(selection)), focus)


def where_of(selection: Selection) -> str:
    """The namespaces of a selection, for messages."""
    return f"in {printable(', '.join(selection.namespaces))}" if selection.namespaces else "in any namespace"


def _require(candidates: Candidates, focus: Focus) -> None:
    """Raise `UsageError` if one of the restrictions, or all of them together, match none of the candidates."""
    for target in focus.targets:
        _require_target(candidates, target, "--target")
    for target in focus.excluded:
        if not target.is_pattern:
            _require_target(candidates, target, "--exclude")
    for selector in focus.selectors:
        if not any(selector.matches(labels) for labels in candidates.labels.values()):
            raise UsageError(
                f"-l {clipped(selector.text, MAX_WORD)}: no workload {candidates.where} has such labels{listed(candidates.labels)}"
            )
    chosen = replace(focus, excluded=())
    if chosen.is_narrowed and not any(chosen.includes(id, labels) for id, labels in candidates.labels.items()):
        raise UsageError(f"no workload {candidates.where} matches all of these options together{listed(candidates.labels)}")


def _require_target(candidates: Candidates, target: RootTarget, option: str) -> None:
    if any(target.matches(id) for id in candidates.labels):
        return
    for part, whole in sorted(candidates.wholes.items()):
        if target.matches(part):
            raise UsageError(f"{option} {target}: {printable(str(part))} is a part of {printable(str(whole))}: name that one")
    raise UsageError(f"{option} {target}: no workload {candidates.where} has this name{listed(candidates.labels, target.name)}")


def listed(existing: Collection[ResourceId], name: str = "") -> str:
    """The workloads that exist, those with a name similar to `name` first, as the end of a message."""
    ids = sorted(existing)
    if not ids:
        return "; there are no workloads"
    if name:
        ids = [*_by_similarity(ids[:COMPARED], name), *ids[COMPARED:]]
    more = f" and {len(ids) - LISTED} more" if len(ids) > LISTED else ""
    return f"; there are {', '.join(printable(str(id)) for id in ids[:LISTED])}{more}"


async def instead_of(name: str, world: World, wiring: Wiring, provider: Provider) -> str:
    """The workloads that exist instead of one of that name, or that its namespace does not, as the end of a message."""
    if await is_namespace_missing(world, wiring, provider):
        return NO_NAMESPACE
    return listed([observed.root.id for observed in world.roots if observed.proposer is None], name)


async def is_namespace_missing(world: World, wiring: Wiring, provider: Provider) -> bool:
    """Whether the namespace of `-n` does not exist. It is asked for where it has no workloads, by users with the right to get it."""
    namespace = wiring.options.namespace
    if not namespace or isinstance(provider, RecordedProvider) or any(each.root.id.namespace == namespace for each in world.roots):
        return False
    return await is_missing(namespace, provider)


async def is_missing(namespace: str, provider: Provider) -> bool:
    """Whether a namespace does not exist, for users with the right to get it."""
    with suppress(ClusterError):
        return await provider.get(NAMESPACE.id("", namespace)) is None
    return False


async def note_missing_namespace(world: World, wiring: Wiring, provider: Provider) -> None:
    """Note on stderr that the namespace of `-n` does not exist."""
    if await is_namespace_missing(world, wiring, provider):
        terminal.note(f"{printable(wiring.options.namespace)}{NO_NAMESPACE}")


def ambiguous(text: str, ids: Sequence[ResourceId]) -> UsageError:
    """The error of a name that several objects have."""
    names = ", ".join(printable(str(id)) for id in ids)
    return UsageError(f"{printable(text)} may be any of {names}: name the kind as well, e.g. {ids[0].kind}/{printable(ids[0].name)}")


def _by_similarity(ids: Iterable[ResourceId], name: str) -> Iterator[ResourceId]:
    matcher = SequenceMatcher(b=name)

    def ratio(id: ResourceId) -> float:
        matcher.set_seq1(id.name)
        return matcher.ratio()

    return iter(sorted(ids, key=ratio, reverse=True))
