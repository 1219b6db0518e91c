"""Roots: the objects of our root kinds among a user's manifests, checked and placed in a namespace."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from functools import partial
from pathlib import Path
from typing import Final

from msgspec import Struct, field
from msgspec.structs import replace

from engine.errors import InputError
from engine.focus import ANY, EVERYTHING, Focus
from engine.ids import NAMESPACE, Kind, ResourceId
from engine.memo import Memo, blueprint_memo
from engine.report.printable import clipped, printable
from engine.resource import Body
from enginectl.base import terminal
from enginectl.base.files import STDIN, has_unread_input
from enginectl.input.manifest_files import (
    Manifest,
    api_versions,
    duplicates,
    faults_by_line,
    id_of,
    read_manifests,
    refuse,
    with_namespace,
)
from enginectl.input.pod_findings import further_faults, manifest_faults
from enginectl.wiring.cluster import EMPTY, LIVE
from enginectl.wiring.configuration import DEFAULT_NAMESPACE, Wiring, default_namespace
from enginectl.wiring.scope import ROOTS, Selection, select
from resources.base.kinds import (
    DEFINED,
    DEVICE_CLASS,
    DYNAMO_GRAPH,
    GROVE_GROUP,
    PODCLIQUESET,
    PODGANG_MAP,
    SCALING_ADAPTER,
    SCHEDULER_GROUP,
    TOPOLOGY_BINDING,
)
from resources.schema.issues import ErrorType, Issue

UNREAD: Final = "standard input is not read: -f - takes manifests from it"
ENGINE_GROUP: Final = "engine.grove.io"
DYNAMO: Final = (
    "DynamoCheckpoint",
    "DynamoComponent",
    "DynamoComponentDeployment",
    "DynamoGraphDeploymentCandidate",
    "DynamoGraphDeploymentEngineGroup",
    "DynamoGraphDeploymentRequest",
    "DynamoGraphDeploymentRun",
    "DynamoGraphDeploymentScalingAdapter",
    "DynamoGraphPowerBudget",
    "DynamoModel",
    "DynamoWorkerMetadata",
)
"""Dynamo's own kinds, besides its graphs."""
OTHERS: Final = ((ENGINE_GROUP, "PlanPolicy"), *((DYNAMO_GRAPH.group, name) for name in DYNAMO))
"""Group and kind of what exists besides the kinds that the engine defines. Their versions are not checked."""
GROUPS: Final = (GROVE_GROUP, SCHEDULER_GROUP, ENGINE_GROUP)
"""The groups in which every kind is known."""
WRITTEN_BY_GROVE: Final = ((PODGANG_MAP.group, PODGANG_MAP.name),)
"""Group and kind of what Grove's operator writes for itself: it exists, and no user writes it."""
RENAMED: Final = {(GROVE_GROUP, "ClusterTopology"): TOPOLOGY_BINDING}
"""Group and kind of older releases of Grove -> the kind that took its place."""
PREFIXES: Final[Mapping[str, str]] = {DYNAMO_GRAPH.group: "Dynamo"}
"""A group that others use as well -> how the names of the known kinds in it begin."""
ROOT_KINDS: Final = frozenset({PODCLIQUESET.name, DYNAMO_GRAPH.name})
"""The kinds of workloads: a kind of such a name in another group is a mistake."""
KNOWN: Final = (
    *((kind.group, kind.name, kind.api_version) for kind in DEFINED),
    *((group, name, group) for group, name in OTHERS),
)
"""Group, name, and group with version as far as it is known, of every kind of ours."""
SPELLED: Final = (*KNOWN, *((kind.group, kind.name, version) for kind in DEFINED for version in api_versions(kind)[1:]))
"""The same, and each in its other versions."""
SIMILARITY: Final = 0.8
"""How alike two names are of which one is a typing error of the other, from 0 to 1."""
UNSCOPED: Final = (NAMESPACE.name, DEVICE_CLASS.name)
"""The kinds without a namespace that workloads may wait for."""
WIDTH: Final = 80
MAX_FILES = 6
"""Files that an error message names."""


def unknown_kind(group: str, kind: str, api_version: str) -> str:
    """What is wrong with a kind in one of our groups, or in a group whose name is a typing error of one: it does not exist, or not in this
    version. Empty for kinds that exist, and those of other groups."""
    if group not in GROUPS and not (group in PREFIXES and kind.startswith(PREFIXES[group])):
        return mistyped(group, kind, api_version)
    versions = {version for defined in DEFINED if (defined.group, defined.name) == (group, kind) for version in api_versions(defined)}
    if (group, kind) in (*OTHERS, *WRITTEN_BY_GROVE) or api_version in versions:
        return ""
    if versions:
        return f"{kind} is supported as {', '.join(sorted(versions))} only"
    if now := RENAMED.get((group, kind)):
        return f"{kind} has been replaced by {now.name} in {now.api_version}, with other fields"
    known = sorted({own_kind for own_group, own_kind, _ in KNOWN if own_group == group})
    there_are = f"there is no kind {clipped(kind, WIDTH)} in {clipped(api_version, WIDTH)}; there are {', '.join(known)}"
    return mistyped(group, kind, api_version) or there_are


def mistyped(group: str, kind: str, api_version: str) -> str:
    """What is wrong with a kind that does not exist, if group and kind are ours but for typing errors: which one is nearest. Else empty."""
    if len(group) > WIDTH or len(kind) > WIDTH:
        return ""
    near: list[tuple[float, bool, str]] = []
    for own_group, own_kind, version in SPELLED:
        is_ours = kind == own_kind and own_kind in ROOT_KINDS
        if is_ours or (likeness(group, own_group) and likeness(kind, own_kind)):
            near.append((likeness(kind, own_kind), version == api_version, f"{own_kind} in {version}"))
    if not near:
        return ""
    meant = max(near, key=lambda each: each[:2])[2]
    return f"there is no kind {clipped(kind, WIDTH)} in {clipped(api_version, WIDTH)}; did you mean {meant}?"


def likeness(written: str, known: str) -> float:
    """How alike two names are, from `SIMILARITY` to 1; 0 if one is no typing error of the other."""
    matcher = SequenceMatcher(None, written.lower(), known.lower(), autojunk=False)
    ratio = matcher.ratio() if matcher.real_quick_ratio() >= SIMILARITY else 0.0
    return ratio if ratio >= SIMILARITY else 0.0


Check = Callable[[Kind, Body, Memo], Sequence[Issue]]
"""Returns what is wrong with a manifest of that kind, and remembers what it has read."""


class Roots(Struct, frozen=True, eq=False):
    """The roots in a user's manifests."""

    bodies: tuple[Body, ...] = ()
    manifests: tuple[Manifest, ...] = ()
    """Where each root was read from, in the same order."""
    notes: tuple[str, ...] = ()
    """About manifests of kinds that are not roots: they are ignored."""
    given: bool = False
    """Whether the user named files, whatever is in them."""
    also_in: tuple[str, ...] = ()
    """Namespaces to read besides those of the roots."""
    memo: Memo = field(default_factory=Memo)
    """What has been read from the roots: admission and the first pass need not read it again."""
    replicas: Mapping[ResourceId, Mapping[str, int]] = field(default_factory=dict)
    """Graph -> service -> the replicas that its scaling adapter in the files asks for."""
    beside: Mapping[ResourceId, str] = field(default_factory=dict)
    """The objects of other kinds in the files, which are not applied -> where each stands."""

    @property
    def namespaces(self) -> tuple[str, ...]:
        """The namespaces of the roots and `also_in`, sorted."""
        return tuple(sorted({*self.also_in, *(namespace for body in self.bodies if (namespace := body["metadata"].get("namespace")))}))

    @property
    def kinds(self) -> frozenset[str]:
        """The kinds of the roots."""
        return frozenset(body["kind"] for body in self.bodies)


NO_ROOTS = Roots()


class ManifestSources(Struct, frozen=True):
    """Where manifests are read from, as the options of a command say."""

    files: Sequence[Path] = ()
    kustomizations: Sequence[Path] = ()
    """What kustomize builds."""
    recursive: bool = False
    """Whether folders are read with those in them."""
    remote: bool = False
    """Whether kustomize may read over the network."""

    @property
    def paths(self) -> tuple[Path, ...]:
        """All of them."""
        return (*self.files, *self.kustomizations)


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
    manifests, adapters = _apart(read)
    is_named = against == LIVE and (manifests or adapters)
    namespace = options.namespace or (default_namespace(wiring) if is_named else DEFAULT_NAMESPACE)
    forced = bool(options.namespace)
    further = partial(further_faults, wiring=wiring, is_creation=against == EMPTY)
    if adapters:
        from enginectl.input.adapters import asked_replicas, read_adapters  # Few files have any.

        asking = read_adapters(adapters, namespace=namespace, forced=forced, faults=unread)
    roots = select_roots(manifests, ROOTS, manifest_faults, further, namespace=namespace, forced=forced, unread=unread)
    if adapters:
        roots = replace(roots, replicas=asked_replicas(asking, roots.bodies))
    for note in roots.notes:
        terminal.note(note)
    if sources.paths and not roots.bodies and not allow_empty:
        raise InputError(f"no objects passed: there is no {_either(ROOTS)} in {_named(sources.paths)}")
    return replace(roots, given=bool(sources.paths))


def _apart(manifests: Iterable[Manifest]) -> tuple[list[Manifest], list[Manifest]]:
    """The manifests without the scaling adapters, and these."""
    others: list[Manifest] = []
    adapters: list[Manifest] = []
    for manifest in manifests:
        is_adapter = manifest.group_kind == (SCALING_ADAPTER.group, SCALING_ADAPTER.name)
        (adapters if is_adapter else others).append(manifest)
    return others, adapters


def _either(kinds: Sequence[Kind]) -> str:
    """`A, B or C`."""
    *others, last = (kind.name for kind in kinds)
    return f"{', '.join(others)} or {last}" if others else last


def _named(paths: Sequence[Path]) -> str:
    """At most `MAX_FILES` of the paths, and how many more there are."""
    names = [printable("standard input" if path == STDIN else str(path)) for path in paths]
    more = f" and {len(names) - MAX_FILES} more" if len(names) > MAX_FILES else ""
    return f"{', '.join(names[:MAX_FILES])}{more}"


def select_for(wiring: Wiring, roots: Roots, default: Iterable[str] = (), focus: Focus = EVERYTHING) -> Selection:
    """What to read for these roots and this focus: their namespaces and kinds, unless the options name others.

    Without roots: the namespaces that the targets of the focus name, and `default` unless every target names one.
    """
    named = {target.namespace for target in focus.targets if ANY not in target.namespace} - {""}
    is_named = bool(named) and all(target.namespace in named for target in focus.targets)
    kinds = roots.kinds | {target.kind for target in focus.targets}
    usual = tuple(default)
    wider = tuple(sorted(named)) if is_named else (*usual, *sorted(named - set(usual))) if usual else ()
    return select(wiring, namespaces=roots.namespaces, kinds=kinds, default=wider)


def no_faults(kind: Kind, body: Body, memo: Memo) -> tuple[Issue, ...]:
    """Nothing: whatever the manifest says."""
    return ()


def select_roots(
    manifests: Iterable[Manifest],
    kinds: Sequence[Kind],
    check: Check,
    further: Check = no_faults,
    *,
    namespace: str,
    forced: bool = False,
    unread: Sequence[str] = (),
) -> Roots:
    """The manifests of these kinds. One without a namespace gets `namespace`, if its kind is namespaced; `forced` allows no other.

    Raises `InputError` with a line for every fault; then with those that `further` finds in the same manifests, too.
    `unread`: what is wrong with files that are no manifests.
    """
    handled = {(kind.group, kind.name): kind for kind in kinds}
    *others, last = (f"{kind.name}s" for kind in kinds)
    taken = f"{', '.join(others)} and {last}" if others else last
    selected: list[tuple[Manifest, Body]] = []
    ignored: list[Manifest] = []
    results: list[str | _Checked] = [*unread]
    memo = Memo()
    for manifest in manifests:
        kind = handled.get(manifest.group_kind)
        if kind:
            try:
                body = with_namespace(manifest, kind, namespace, forced)
            except InputError as error:
                results.append(str(error))
            else:
                selected.append((manifest, body))
                of_root = blueprint_memo(memo, id_of(manifest.group_kind, body))
                results.append(_Checked(manifest, kind, body, of_root, tuple(check(kind, body, of_root))))
        elif fault := unknown_kind(*manifest.group_kind, manifest.body["apiVersion"]):
            results.append(f"{manifest.place('kind')}: {fault}")
        else:
            ignored.append(manifest)
    is_wrong = any(isinstance(each, str) or each.issues for each in results)
    refuse([*(_all_faults(results, further) if is_wrong else ()), *duplicates(selected)])
    bodies, read = tuple(body for _, body in selected), tuple(manifest for manifest, _ in selected)
    return Roots(bodies, read, tuple(_ignored_notes(ignored, taken)), memo=memo, beside=dict(_places(ignored, namespace)))


def _ignored_notes(ignored: Sequence[Manifest], taken: str) -> Iterator[str]:
    """One note that names the first ones of these manifests, if there are any. `taken`: the kinds that are not ignored."""
    first, *others = (f"{manifest.place()}: {_object_name(manifest)}" for manifest in ignored[:MAX_FILES]) if ignored else ("",)
    if first:
        more = f" and {len(ignored) - MAX_FILES} more" if len(ignored) > MAX_FILES else ""
        rest = f"; so {'are' if len(ignored) > 2 else 'is'} {', '.join(others)}{more}" if others else ""
        yield f"{first} is ignored: the engine takes {taken} only{rest}"


def _object_name(manifest: Manifest) -> str:
    """Kind and name of an object, of which nothing is known."""
    metadata = manifest.body.get("metadata")
    name = metadata.get("name") if isinstance(metadata, Mapping) else None
    return " ".join(clipped(text, WIDTH) for text in (manifest.body["kind"], name) if isinstance(text, str) and text)


def _places(ignored: Iterable[Manifest], namespace: str) -> Iterator[tuple[ResourceId, str]]:
    """Each of these objects with its place; without a namespace it is in `namespace`, unless its kind is known to have none."""
    for manifest in ignored:
        metadata = manifest.body.get("metadata")
        name, own = (metadata.get(key) for key in ("name", "namespace")) if isinstance(metadata, Mapping) else (None, None)
        if isinstance(name, str) and isinstance(own, str | None):
            group, kind = manifest.group_kind
            yield ResourceId(group, kind, "" if kind in UNSCOPED else own or namespace, name), manifest.place()


class _Checked(Struct, frozen=True, eq=False):
    """A manifest and what is wrong with it."""

    manifest: Manifest
    kind: Kind
    body: Body
    memo: Memo
    issues: tuple[Issue, ...]


def _all_faults(results: Iterable[str | _Checked], further: Check) -> Iterator[str]:
    """The lines that were found, and for each manifest its issues with those that `further` finds besides, a wrong type once."""
    for each in results:
        if isinstance(each, str):
            yield each
            continue
        known = {(issue.path, issue.type) for issue in each.issues}
        more = [issue for issue in further(each.kind, each.body, each.memo) if (issue.path, issue.type) not in known]
        places = {issue.path for issue in more}
        issues = (issue for issue in each.issues if issue.type is not ErrorType.MALFORMED or issue.path not in places)
        yield from faults_by_line(each.manifest, (*issues, *more))
