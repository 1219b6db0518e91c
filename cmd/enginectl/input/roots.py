"""Roots: the objects of our root kinds among a user's manifests, checked and placed in a namespace."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from functools import partial
from pathlib import Path
from typing import Any, Final

from msgspec import Struct, field
from msgspec.structs import replace

from engine.errors import InputError
from engine.focus import ANY, EVERYTHING, Focus
from engine.ids import Kind, ResourceId
from engine.memo import Memo, blueprint_memo
from engine.report.printable import clipped, printable
from engine.resource import Body
from enginectl.base import terminal
from enginectl.base.files import STDIN, has_unread_input
from enginectl.input.manifest_files import IS_TEMPLATE, Manifest, missing, read_manifests, refuse
from enginectl.input.pod_findings import further_faults, manifest_faults
from enginectl.wiring.cluster import EMPTY, LIVE
from enginectl.wiring.configuration import DEFAULT_NAMESPACE, Wiring, default_namespace
from enginectl.wiring.scope import ROOTS, Selection, select
from resources.base.kinds import (
    DEFINED,
    DYNAMO_GRAPH,
    GROVE_GROUP,
    NEWER,
    PODCLIQUESET,
    PODGANG_MAP,
    SCALING_ADAPTER,
    SCHEDULER_GROUP,
    TOPOLOGY_BINDING,
)
from resources.schema.issues import ErrorType, Issue, shown

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
SIMILARITY: Final = 0.8
"""How alike two names are of which one is a typing error of the other, from 0 to 1."""
WIDTH: Final = 80
MAX_FILES = 6
"""Files that an error message names."""
NAME = re.compile(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?")
VALID: Final = "lowercase letters, digits, - and . only, at both ends a letter or a digit"


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


def api_versions(kind: Kind) -> tuple[str, ...]:
    """The versions in which a kind is read, the first one first."""
    return (kind.api_version, *(newer.api_version for newer in NEWER.get(kind, ())))


def mistyped(group: str, kind: str, api_version: str) -> str:
    """What is wrong with a kind that does not exist, if group and kind are ours but for typing errors: which one is nearest. Else empty."""
    if len(group) > WIDTH or len(kind) > WIDTH:
        return ""
    near: list[tuple[float, str]] = []
    for own_group, own_kind, version in KNOWN:
        is_ours = kind == own_kind and own_kind in ROOT_KINDS
        if is_ours or (likeness(group, own_group) and likeness(kind, own_kind)):
            near.append((likeness(kind, own_kind), f"{own_kind} in {version}"))
    if not near:
        return ""
    meant = max(near, key=lambda each: each[0])[1]
    return f"there is no kind {clipped(kind, WIDTH)} in {clipped(api_version, WIDTH)}; did you mean {meant}?"


def likeness(written: str, known: str) -> float:
    """How alike two names are, from `SIMILARITY` to 1; 0 if one is no typing error of the other."""
    matcher = SequenceMatcher(None, written.lower(), known.lower(), autojunk=False)
    ratio = matcher.ratio() if matcher.real_quick_ratio() >= SIMILARITY else 0.0
    return ratio if ratio >= SIMILARITY else 0.0


def adapter_fault(manifest: Manifest) -> str:
    """Why a scaling adapter that a user has written is not applied; empty for other kinds, and for one that was read from a cluster, which
    is the graph's own."""
    body = manifest.body
    metadata = body.get("metadata")
    if manifest.group_kind != (SCALING_ADAPTER.group, SCALING_ADAPTER.name) or not isinstance(metadata, Mapping):
        return ""
    if metadata.get("uid") or metadata.get("ownerReferences"):
        return ""
    name = printable(str(metadata.get("name") or "NAME"))
    return (
        f"{SCALING_ADAPTER.name} {name} is not taken from files, which would undo on every sync what an autoscaler has set: "
        "the engine makes it for a service with scalingAdapter; put the first number into replicas of the service, scale it later by "
        f"`kubectl scale dgdsa/{name} --replicas=N`, and remove it from the files"
    )


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
    manifests = list(read)
    namespace = options.namespace or (default_namespace(wiring) if against == LIVE and manifests else DEFAULT_NAMESPACE)
    further = partial(further_faults, wiring=wiring, is_creation=against == EMPTY)
    roots = select_roots(
        manifests,
        ROOTS,
        manifest_faults,
        further,
        namespace=namespace,
        forced=bool(options.namespace),
        refused=adapter_fault,
        unread=unread,
    )
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
    refused: Callable[[Manifest], str] = lambda manifest: "",
    unread: Sequence[str] = (),
) -> Roots:
    """The manifests of these kinds. One without a namespace gets `namespace`, if its kind is namespaced; `forced` allows no other.

    Raises `InputError` with a line for every fault; then with those that `further` finds in the same manifests, too. `refused`: why a
    manifest of another kind is a fault, and not ignored; empty if it is ignored. `unread`: what is wrong with files that are no manifests.
    """
    handled = {(kind.group, kind.name): kind for kind in kinds}
    *others, last = (f"{kind.name}s" for kind in kinds)
    taken = f"{', '.join(others)} and {last}" if others else last
    selected: list[tuple[Manifest, Body]] = []
    notes: list[str] = []
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
        elif fault := refused(manifest):
            results.append(f"{manifest.place('kind')}: {fault}")
        else:
            notes.append(f"{manifest.place()}: {clipped(str(manifest.body['kind']), 80)} is ignored: the engine takes {taken} only")
    is_wrong = any(isinstance(each, str) or each.issues for each in results)
    refuse([*(_all_faults(results, further) if is_wrong else ()), *duplicates(selected)])
    return Roots(tuple(body for _, body in selected), tuple(manifest for manifest, _ in selected), tuple(notes), memo=memo)


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
