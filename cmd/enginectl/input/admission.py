"""Admission: what the admission rules decide about the roots in a user's manifests, before anything is planned."""

from collections.abc import Collection, Mapping, Sequence

from msgspec import Struct, field
from msgspec.structs import replace

from engine.blueprint import relevant_incomplete
from engine.errors import ClusterError
from engine.ids import Kind, ResourceId
from engine.memo import blueprint_memo
from engine.observed import Observed, unlisted_texts
from engine.proposal import proposed_root
from engine.report.printable import printable
from engine.resource import Body
from engine.runtime.provider import DescribingProvider, Provider
from engine.world import assemble
from enginectl.base import terminal
from enginectl.base.options import FieldValidation
from enginectl.input.manifest_files import Manifest, faults_by_line, refuse
from enginectl.input.pod_findings import judge_pods
from enginectl.input.roots import Roots
from enginectl.wiring.cluster import EMPTY, LIVE
from enginectl.wiring.configuration import Wiring
from enginectl.wiring.scope import ROOTS, Selection, scope_of
from resources.admission.admit import admit
from resources.admission.request import Act, Decision, Request
from resources.base import kinds, labels, names
from resources.base.fields import annotations_of
from resources.model.domain import specified_in
from resources.model.membership import effective_body
from resources.model.withdrawn import proposed_metadata
from resources.ports.references import KnownReferences, known_references
from resources.registry import BLUEPRINTS
from resources.schema import pod_spec_rules
from resources.schema.issues import ErrorType, Located
from resources.schema.unknown_fields import DOCUMENT, ServedFields, served_fields

NO_REFERENCES = KnownReferences()
"""Nothing has been listed: rules that look up other objects do not apply."""
KINDS = {(kind.group, kind.name): kind for kind in ROOTS}
RECORDS = (kinds.PODCLIQUE, kinds.SCALING_GROUP, kinds.PODGANG)
"""The kinds of objects that record membership, beside domains, which are references."""
NOTHING_RECORDED: Mapping[ResourceId, Body] = {}


async def list_references(
    wiring: Wiring, provider: Provider, against: str, selection: Selection, *, names_unknown: bool = False
) -> KnownReferences:
    """The roots, and the objects that they refer to. A kind that could not be listed is unknown.

    It is named on stderr with `names_unknown`: where passes follow, their report names it.

    In a snapshot, a kind is known if there is at least one object of it: the author may not have listed the others.
    """
    if against == EMPTY:
        return NO_REFERENCES
    scope = replace(scope_of(wiring.configuration, selection), children=())
    observation = await provider.observe(scope)
    if names_unknown:
        present = {root.id.kind for root in observation.roots}
        incomplete = relevant_incomplete(BLUEPRINTS, observation.incomplete, observation.unserved, present, wiring.configuration)
        terminal.incomplete(unlisted_texts(incomplete))
    objects = (*observation.roots, *observation.references)
    in_scope = [kind for kind in (*scope.roots, *scope.references) if kind.key not in observation.unserved]
    present = {key for live in objects for key in live.id.keys()}
    known = {kind.key for kind in in_scope if against == LIVE or kind.key in present}
    references = known_references(objects, known - observation.incomplete.keys())
    return replace(references, versions=_written_versions(observation.unserved)) if against == LIVE else references


def _written_versions(unserved: Collection[str]) -> Mapping[tuple[str, str], str]:
    """Group and kind -> the version in which new objects are written, of the kinds that are written in several."""
    return {
        (kind.group, kind.name): newer[0].api_version if kinds.unread(kind) in unserved else kind.api_version
        for kind, newer in kinds.NEWER.items()
    }


async def recorded_sets(
    wiring: Wiring, roots: Roots, references: KnownReferences, provider: Provider, selection: Selection
) -> Mapping[ResourceId, Body]:
    """Stored set -> its body as its objects record it, for the sets whose membership the manifests would change.

    Objects are listed only if there is such a set. Then a manifest that puts an edited annotation back is no change.
    """
    requests = [request_for(body, references) for body in roots.bodies]
    changed = {request.id for request in requests if _changes_membership(wiring, request)}
    if not changed:
        return {}
    observation = await provider.observe(replace(scope_of(wiring.configuration, selection), children=(*RECORDS, *_domain_kinds(wiring))))
    world = assemble(BLUEPRINTS, observation.roots, observation.children, observation.incomplete, references=observation.references)
    return {observed.root.id: _recorded(observed, wiring) for observed in world.roots if observed.root.id in changed}


def _changes_membership(wiring: Wiring, request: Request) -> bool:
    old, new = request.old, request.body
    if request.id.kind != kinds.PODCLIQUESET.name or old is None or new is None:
        return False
    before, after = specified_in(old), specified_in(new)
    return any(True for fabric in wiring.configuration.fabrics for _ in fabric.update_issues(before, after))


def _domain_kinds(wiring: Wiring) -> tuple[Kind, ...]:
    return tuple(fabric.kind for fabric in wiring.configuration.fabrics)


def _recorded(observed: Observed, wiring: Wiring) -> Body:
    return effective_body(observed, wiring.configuration)


def request_for(body: Body, references: KnownReferences) -> Request:
    """The admission request of applying this manifest: an update keeps the labels and annotations that the manifest does not name, but
    not those that it withdraws. While the object is being deleted it is that of creating the next one of its name."""
    group, _, _ = body["apiVersion"].rpartition("/")
    id = KINDS[group, body["kind"]].id(body["metadata"].get("namespace", ""), body["metadata"]["name"])
    live = references.find(id)
    if live is None or live.deleting_since is not None:
        return Request(Act.CREATE, id, body)
    prefixes = labels.STEERING_GRAPHS if id.kind == kinds.DYNAMO_GRAPH.name else labels.STEERING_SETS
    return Request(Act.UPDATE, id, {**body, "metadata": proposed_metadata(live.body, body, prefixes)}, live.body)


class AdmittedRoots(Struct, frozen=True, eq=False):
    """The roots that admission accepts, new ones with their defaults; and the faults of the others."""

    roots: Roots
    rejected: Mapping[ResourceId, tuple[str, ...]] = field(default_factory=dict)
    """Rejected root -> its faults, each with file and line."""
    warned: Mapping[ResourceId, frozenset[str]] = field(default_factory=dict)
    """Root -> the warnings about it that were written to stderr."""

    def require_all(self) -> None:
        """Raise `InputError` with every fault, if a root is rejected."""
        refuse([fault for faults in self.rejected.values() for fault in faults])


async def admit_against(
    wiring: Wiring, roots: Roots, provider: Provider, against: str, selection: Selection, *, is_base: bool = False
) -> AdmittedRoots:
    """What admission decides about the roots: one that exists is an update, any other a creation.

    `is_base`: the provider has what other manifests come to. Its roots count as stored; of what they refer to nothing is known.
    """
    if not roots.bodies:
        return AdmittedRoots(roots)
    references = await (_roots_of_base(wiring, provider, selection) if is_base else list_references(wiring, provider, against, selection))
    recorded = {
        **await recorded_sets(wiring, roots, references, provider, selection),
        **await _scaled_graphs(wiring, roots, references, provider, selection),
    }
    judged = _judged(wiring, roots, references, recorded)
    asks = against == LIVE and wiring.validation is not FieldValidation.IGNORE
    served = await fields_served(provider, judged) if asks else None
    return _concluded(wiring, roots, judged, served, references)


async def _scaled_graphs(
    wiring: Wiring, roots: Roots, references: KnownReferences, provider: Provider, selection: Selection
) -> Mapping[ResourceId, Body]:
    """The stored graphs with the replicas that their live scaling adapters ask for, where files ask for others: only growth is judged."""
    graphs = [live for id in roots.replicas if (live := references.find(id)) is not None]
    if not graphs:
        return NOTHING_RECORDED
    from engine.scalers import replicas_of  # Few files have adapters.
    from resources.ports.graph_services import judged_replicas, with_replicas

    scope = replace(scope_of(wiring.configuration, selection), children=(kinds.SCALING_ADAPTER,), references=())
    numbers = {live.id: replicas_of(live) or 0 for live in (await provider.observe(scope)).children}

    def number(graph: ResourceId, service: str) -> int:
        return numbers.get(kinds.SCALING_ADAPTER.id(graph.namespace, names.scaling_adapter(graph.name, service)), 0)

    scaled = {graph.id: {service: number(graph.id, service) for service in roots.replicas[graph.id]} for graph in graphs}
    return {graph.id: with_replicas(graph.body, judged_replicas(graph.body, scaled[graph.id])) for graph in graphs}


async def _roots_of_base(wiring: Wiring, provider: Provider, selection: Selection) -> KnownReferences:
    observation = await provider.observe(replace(scope_of(wiring.configuration, selection), children=(), references=()))
    return KnownReferences({root.id: root for root in observation.roots})


def admit_roots(
    wiring: Wiring, roots: Roots, references: KnownReferences = NO_REFERENCES, recorded: Mapping[ResourceId, Body] = NOTHING_RECORDED
) -> AdmittedRoots:
    """What admission decides about the roots, given the references that are known. Warnings go to stderr with file and line.

    `recorded` has the stored sets that count as their objects record them (N25). The roots themselves count as references too: a set may
    refer to a topology binding in the same files.
    """
    return _concluded(wiring, roots, _judged(wiring, roots, references, recorded), None, references)


class _Judged(Struct, frozen=True):
    """A root of the manifests and what admission decides about it."""

    request: Request
    decision: Decision


def _judged(
    wiring: Wiring,
    roots: Roots,
    references: KnownReferences,
    recorded: Mapping[ResourceId, Body],
) -> tuple[_Judged, ...]:
    """The decision on each root, in their order."""
    bodies = [_with_replicas(body, roots, references, is_judged=True) for body in roots.bodies]
    known = KnownReferences({**references.objects, **{live.id: live for live in map(proposed_root, bodies)}}, references.kinds)
    judged: list[_Judged] = []
    for body in bodies:
        request = request_for(body, references)
        if request.id in recorded:
            request = replace(request, old=recorded[request.id])
        memo = blueprint_memo(roots.memo, request.id)
        judged.append(_Judged(request, admit(request, wiring.configuration, known, memo=memo)))
    return tuple(judged)


def _with_replicas(body: Body, roots: Roots, references: KnownReferences, *, is_judged: bool) -> Body:
    """A root with the replicas that the scaling adapters in the files ask for, as it is judged or written."""
    id = proposed_root(body).id
    if id not in roots.replicas:
        return body
    from resources.ports.graph_services import judged_replicas, kept_replicas, with_replicas  # Few files have adapters.

    live, numbers = references.find(id), roots.replicas[id]
    written = with_replicas(body, kept_replicas(body, live.body if live is not None else {}, numbers))
    return with_replicas(written, judged_replicas(written, numbers)) if live is not None and is_judged else written


async def fields_served(provider: Provider, judged: Sequence[_Judged]) -> ServedFields | None:
    """The fields of pod specs that the cluster serves: asked for once, and only if a manifest has one that we do not know.

    None as well if the cluster does not say.
    """
    is_known = not any(finding.type is ErrorType.UNKNOWN for each in judged for finding in each.decision.pods)
    if is_known or not isinstance(provider, DescribingProvider):
        return None
    try:
        return served_fields(await provider.openapi(DOCUMENT))
    except ClusterError:
        return None


def _concluded(
    wiring: Wiring, roots: Roots, judged: Sequence[_Judged], served: ServedFields | None, references: KnownReferences
) -> AdmittedRoots:
    """The roots that are accepted, in the version in which they are written, and the faults of the others. Warnings go to stderr."""
    accepted: list[tuple[Body, Manifest]] = []
    rejected: dict[ResourceId, tuple[str, ...]] = {}
    for body, manifest, each in zip(roots.bodies, roots.manifests, judged, strict=True):
        corrected = _corrected(_with_replicas(body, roots, references, is_judged=False))
        for warning in each.decision.warnings:
            path = warning.path if isinstance(warning, Located) else ()
            terminal.warning(f"{manifest.place(*path)}: {printable(warning)}")
        of_pods, warnings = judge_pods(each.decision.pods, wiring.validation, served)
        for finding in sorted(warnings, key=lambda finding: manifest.line(*finding.path)):
            terminal.warning(f"{manifest.place(*finding.path)}: {printable(pod_spec_rules.warning(finding))}")
        if issues := (*each.decision.issues, *of_pods):
            rejected[each.request.id] = tuple(faults_by_line(manifest, issues))
        else:
            defaulted = each.decision.body if each.request.act is Act.CREATE else None
            accepted.append((_as_written(each.request, defaulted if defaulted is not None else corrected, references), manifest))
    bodies, manifests = tuple(body for body, _ in accepted), tuple(manifest for _, manifest in accepted)
    warned = {each.request.id: frozenset(map(str, each.decision.warnings)) for each in judged if each.decision.warnings}
    return AdmittedRoots(replace(roots, bodies=bodies, manifests=manifests), rejected, warned)


def _as_written(request: Request, body: Body, references: KnownReferences) -> Body:
    """A root in the version of the stored one, or in that in which new ones are written; in its own if that is not known."""
    stored = request.old.get("apiVersion") if request.old is not None else references.versions.get((request.id.group, request.id.kind))
    if stored is None or stored == body.get("apiVersion") or body.get("kind") != kinds.DYNAMO_GRAPH.name:
        return body
    from resources.dynamo.versions.api_versions import ALPHA_ONLY
    from resources.dynamo.versions.converted import as_version, without_saved

    converted = as_version(body, stored)
    return without_saved(converted) if ALPHA_ONLY in annotations_of(request.old or {}) else converted


def _corrected(body: Body) -> Body:
    """A graph of v1alpha1 with its numbers and amounts in the types of the API; anything else as it is."""
    if (body.get("apiVersion"), body.get("kind")) != (kinds.DYNAMO_GRAPH.api_version, kinds.DYNAMO_GRAPH.name):
        return body
    from resources.admission.graph_defaults import corrected

    return corrected(body)
