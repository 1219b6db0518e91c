"""Root: the PodCliqueSet object itself, and the objects that it has once for all its replicas.

The engine sets the set's defaults and finalizer once; after that it writes only its status, and records the claim specs that it is given.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from engine.graph import Part, part
from engine.ids import Owner, ResourceId
from engine.memo import Memo
from engine.observed import Live, Observed
from engine.paths import get
from engine.plan import Alarm
from engine.reason import Because, Reason
from engine.resource import Body, Policy, Resource, Want
from resources.admission.admitted_set import AdmittedSet
from resources.base import kinds, labels, names
from resources.base.fields import cliques_of, mapping
from resources.children import identity
from resources.children.child_kind import ChildTable
from resources.children.resource_claim import former_shared_claims, template_alarms
from resources.domains.release import DomainRelease, merged, owned_domains, release_domains
from resources.model import withdrawn
from resources.model.domain import Domain
from resources.model.template import Template
from resources.model.view import SET
from resources.ports.configuration import Configuration
from resources.ports.references import copied, record
from resources.schema.pod_spec_form import respelled
from resources.status.update import begins, summary_text

POD_SPEC: Final = ("spec", "podSpec")
KNOWN = Policy(partial=(("metadata", "labels"), ("metadata", "annotations")), finalizers=(labels.SET_FINALIZER,))
"""The policy of a stored set: its labels and annotations are not removed."""
PROPOSED = Policy(exact=(("spec",),), partial=KNOWN.partial, finalizers=(labels.SET_FINALIZER,))
"""The policy of a set that a manifest proposes: its spec replaces the stored one."""


def root_resource(
    observed: Observed, admitted: AdmittedSet, scheduler: str, status: Body | None, given: frozenset[str] = frozenset()
) -> Want:
    """The desired PodCliqueSet: as a manifest proposes it, as it is stored, or with defaults and finalizer if it is new.

    `scheduler`: that of pods that name none. `given`: the digests of the claim specs that it may have from other namespaces, which are
    recorded.
    """
    root, recorded = observed.root, _recorded(observed.root, given)
    metadata = {"name": root.id.name, "namespace": root.id.namespace}
    frame = {"apiVersion": kinds.PODCLIQUESET.api_version, "kind": kinds.PODCLIQUESET.name, "metadata": metadata}
    if observed.proposal is not None:
        proposed = admitted.body["metadata"] if admitted.is_new else observed.proposal.get("metadata") or {}
        keys = _with_keys({key: proposed[key] for key in ("labels", "annotations") if proposed.get(key)}, recorded)
        finalizers = {} if root.uid else {"finalizers": [labels.SET_FINALIZER]}
        spec = _respelled(admitted.body["spec"], mapping(root.body.get("spec")), scheduler)
        body = {**frame, "metadata": {**metadata, **keys, **finalizers}, "spec": spec}
        policy = replace(PROPOSED, withdrawn=withdrawn.paths(root.body, observed.proposal)) if root.uid else PROPOSED
        if observed.proposer is not None:
            return Want(root.id, _part_of(observed.proposer), (_owner(observed.proposer),), body=body, policy=policy, status=status)
        return Want(root.id, "proposed by a manifest", body=body, policy=policy, status=status)
    if labels.SET_FINALIZER in root.finalizers:
        body = {**frame, "metadata": _with_keys(metadata, recorded)}
        why = "managed: records the claim specs that it is given from other namespaces" if recorded else "managed"
        return Want(root.id, why, body=body, policy=KNOWN, status=status, urgent=begins(status), status_why=summary_text(status))
    annotations = admitted.body["metadata"].get("annotations") or {}
    own = {**metadata, **({"annotations": annotations} if annotations else {})}
    body = {**frame, "metadata": _with_keys(own, recorded), "spec": admitted.body["spec"]}
    return Want(root.id, "new: receives its defaults and the finalizer", body=body, policy=KNOWN, status=status)


def invalid_root(root: Live, status: Body) -> Want:
    """A set of which nothing but the status is written."""
    metadata = {"name": root.id.name, "namespace": root.id.namespace}
    body = {"apiVersion": kinds.PODCLIQUESET.api_version, "kind": kinds.PODCLIQUESET.name, "metadata": metadata}
    return Want(root.id, "managed", body=body, policy=Policy(partial=KNOWN.partial), status=status)


def _recorded(root: Live, given: frozenset[str]) -> Mapping[str, str]:
    """The annotation that records the claim specs that a set is given, where one is not recorded yet."""
    before = copied(root.body)
    return {labels.COPIED_CLAIMS: record(before | given)} if given - before else {}


def _with_keys(metadata: Mapping[str, Any], annotations: Mapping[str, str]) -> Mapping[str, Any]:
    """The metadata with these annotations, too."""
    return {**metadata, "annotations": {**(metadata.get("annotations") or {}), **annotations}} if annotations else metadata


def _respelled(spec: Body, stored: Body, scheduler: str) -> Body:
    """The proposed spec of a set with the pod specs in the spelling of the stored ones, wherever both mean the same."""
    known = {clique.get("name"): get(clique, POD_SPEC) for clique in cliques_of({"spec": stored})}
    template = spec["template"]
    cliques = [
        _respelled_clique(clique, known[clique["name"]], scheduler) if clique["name"] in known else clique for clique in template["cliques"]
    ]
    return {**spec, "template": {**template, "cliques": cliques}}


def _respelled_clique(clique: Body, stored: Any, scheduler: str) -> Body:
    return {**clique, "spec": {**clique["spec"], "podSpec": respelled(clique["spec"]["podSpec"], stored, scheduler=scheduler)}}


def _part_of(proposer: Live) -> str:
    return f"it runs the services of {proposer.id.kind} {proposer.id.name}"


def _owner(proposer: Live) -> Owner:
    return Owner(proposer.id, proposer.body["apiVersion"])


class SharedObjects(Struct, frozen=True, eq=False):
    """The desired shared objects of a set."""

    part: Part
    domains: tuple[Domain, ...]
    """The fabric domains that replicas share."""
    release: DomainRelease
    """The shared domains that no replica requests any more."""
    complete: bool
    """Whether all shared objects exist."""
    of_templates: tuple[Alarm, ...]
    """The templates that claims may not be made from, or that do not exist."""


def shared_objects(
    observed: Observed,
    template: Template,
    domains: Mapping[ResourceId, Domain],
    table: ChildTable,
    configuration: Configuration,
    now: datetime,
    memo: Memo,
) -> SharedObjects:
    """The desired shared objects of a set; `domains` are the shared domains that its replicas request."""
    release = _release(observed, domains, configuration, now)
    desired: list[Resource] = [domain.resource for domain in domains.values() if domain.resource is not None]
    desired += former_shared_claims(observed, template)

    def make() -> Part:
        rendered = (resource for row in table.rows for resource in row.of_set(template, lives.objects))
        own = identity.for_own_account(rendered, template, lives.objects, foreign, is_mounted=is_mounted)
        former = identity.former_token(template, lives.objects, is_mounted=is_former_mounted)
        return part(SET, [*own, *former, *desired, *release.resources])

    lives, references = observed.slice(SET), observed.references.objects
    foreign = identity.foreign_account(observed, template)
    is_mounted = foreign is not None and identity.mounts_secret(observed, names.token_secret(template.id.name))
    former = identity.former_token_id(template)
    is_former_mounted = former in lives.objects and identity.mounts_secret(observed, former.name)
    facts = (template, lives, foreign, is_mounted, is_former_mounted)
    shared = memo.recall(SET, (*facts, *desired, *release.resources), make)
    is_complete = all(id in lives.objects or id in references for id in shared.resources)
    return SharedObjects(shared, tuple(domains.values()), release, is_complete, tuple(template_alarms(shared.resources.values(), template)))


def has_token(observed: Observed, template: Template, memo: Memo) -> bool:
    """Whether the token of the set's own account exists with which pods watch those that they start after; True if no pod needs it.

    Also True for a set that is only proposed: all its pods are shown.
    """
    if not observed.root.uid or not template.is_ordered:
        return True
    lives = observed.slice(SET)
    return memo.recall("token", (template, lives), lambda: identity.has_own_token(template, lives.objects))


def _release(observed: Observed, requested: Mapping[ResourceId, Domain], configuration: Configuration, now: datetime) -> DomainRelease:
    """The release of the set's shared domains that no replica requests, and of those whose pods have all completed."""
    reasons: dict[Because, list[Live]] = {}
    for live in owned_domains(observed, configuration, observed.slice(SET)):
        domain = requested.get(live.id)
        if domain is None or domain.released:
            reasons.setdefault(_why_released(observed, domain), []).append(live)
    slices = observed.slices.values()
    return merged(*(release_domains(observed, lives, configuration, because, now, slices) for because, lives in reasons.items()))


def _why_released(observed: Observed, domain: Domain | None) -> Because:
    if domain is None:
        return Because(Reason.TEMPLATE_CHANGED, f"{observed.root.id.name} no longer requests it")
    return Because(Reason.DOMAIN_RELEASED, domain.released)
