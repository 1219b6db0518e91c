"""The NVIDIA fabric: multi-node NVLink through ComputeDomains, one for each replica of a set or each group in it, or shared by name.

What only `preflight`, `why` and the admission policies ask for is imported when they ask.

The numbers R1, N1, T1, … are those of the rules in docs/behaviour/compute-domains.md.
"""

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any

from engine.ids import Kind, ResourceId
from engine.observed import Live
from engine.paths import get, overlay
from engine.quantity import is_zero
from engine.resource import Body
from providers.fabrics.nvidia import channel_rules, domain_facts, groups, membership
from providers.fabrics.nvidia.groups import AUTO_PATH
from providers.fabrics.nvidia.modelled_driver import NvidiaDriver
from providers.fabrics.nvidia.names import (
    ANNOTATIONS,
    AUTO,
    CLAIM,
    CLAIM_NAME_TAKEN,
    COMPUTE_DOMAIN,
    DISABLED,
    DOMAIN_LABEL,
    ENABLED,
    FINALIZER,
    GPU,
    GROUP,
    INVALID_DOMAIN_NAME,
    MAX_NODES,
    MISSING_CRD,
    MODES,
    NAMED,
    NO_DOMAIN_NAME,
    NO_SCALING_GROUP,
    NVLINK_CLIQUE_LABEL,
    OFF,
    OPT_OUT,
    TARGET_LABEL,
    UNREPORTED,
    WORKLOAD,
)
from resources.admission.annotations import immutable, immutable_on_cliques
from resources.base import kinds
from resources.base.fields import CLIQUES, mapping, mappings
from resources.domains.capacity import capacity_notes, island_notes
from resources.domains.requests import replicas_of_groups, requested_by_sets
from resources.model.domain import cliques_with_inherited, specified_in
from resources.ports.checks import Check, Diagnosis, Installation, JoinedNode, Query, QueryResults
from resources.ports.fabric import (
    GROUP_INDEX,
    INDEX,
    DomainRequest,
    Enrolment,
    Fabric,
    Islands,
    NodeSlots,
    PolicyRule,
    SpecifiedClique,
    SpecifiedSet,
)
from resources.ports.membership import MembershipReader, MembershipRecord, ObjectRecord, RecordedSet
from resources.schema.formats import subdomain_faults
from resources.schema.issues import ErrorType, Issue, Path
from resources.settings import Settings


class Membership(MembershipReader):
    """Reads in which ComputeDomains pods are: what live objects record counts, not edited annotations (N24, N25)."""

    def record_of(self, child: Live) -> ObjectRecord:
        """What a PodClique or PodCliqueScalingGroup records (N24)."""
        return membership.record_of(child, eligible=_has_gpus(mapping(get(child.body, ("spec", "podSpec")))))

    def as_recorded(self, body: Body, record: MembershipRecord) -> RecordedSet:
        """The set with the mode and the names that its objects record, and an issue for each that differs (N24, N25)."""
        return membership.as_recorded(body, record, lambda name: not _name_fault(name))


class Channels(NodeSlots):
    """The channels of nodes; a node has one (R35)."""

    inventory_kind = kinds.RESOURCE_SLICE

    def eligible_nodes(self, inventory: Iterable[Live]) -> frozenset[str]:
        """The nodes with a channel."""
        return domain_facts.eligible_nodes(inventory)

    def allocated_node(self, claim: Live) -> str:
        """The node whose channel is allocated to a claim."""
        return domain_facts.allocated_node(claim)

    def claimed(self, claim_spec: Body) -> int:
        """The number of channels that a ResourceClaim with this spec takes (N23)."""
        return domain_facts.claimed_channels(claim_spec)


class Nvidia(Fabric):
    """The fabric of NVIDIA's DRA driver.

    `auto` says whether new sets with GPUs get the annotation for automatic domains (R2, R6). Existing sets keep theirs (R39).
    """

    name = "nvidia"
    kind = COMPUTE_DOMAIN
    finalizer = FINALIZER

    annotations = ANNOTATIONS
    inherited_annotations = (GROUP,)
    indexed_names = True

    membership = Membership()
    link = "NVLink"
    slots = Channels()
    islands = Islands("NVLink clique", NVLINK_CLIQUE_LABEL, MAX_NODES)

    def __init__(self, *, auto: bool = False) -> None:
        self.auto = auto

    def with_defaults(self, body: Body) -> Body:
        """A new set with GPUs gets the annotation for automatic domains (R6, R7). If the user has set it, it stays (R14, R36).

        A set with the annotation for groups gets none (N26).
        """
        if not self.auto or not isinstance(body.get("metadata"), Mapping):
            return body
        new = specified_in(body)
        if AUTO in new.annotations or groups.uses_groups(new) or not any(_has_gpus(clique.pod_spec) for clique in new.cliques):
            return body
        return overlay(body, {"metadata": {"annotations": {AUTO: ENABLED}}})

    def creation_issues(self, new: SpecifiedSet) -> Iterator[Issue]:
        """Invalid or contradictory annotations that request domains, a claim with the name of ours, a second channel.

        R15, R38, R49, N14, N18, N23, N26.
        """
        mode = new.annotations.get(AUTO)
        if mode is not None:
            if mode not in (ENABLED, DISABLED):
                yield Issue(AUTO_PATH, ErrorType.INVALID, MODES, mode)
            elif mode == ENABLED and not self.auto:
                yield Issue(AUTO_PATH, ErrorType.INVALID, OFF, mode)
        cliques = cliques_with_inherited(self, new)
        yield from groups.creation_issues(new, cliques, enabled=self.auto)
        is_opted_out = mode == DISABLED or groups.uses_groups(new)
        members = {clique for group in new.groups for clique in group.cliques}
        for number, clique in enumerate(cliques):
            yield from self._name_issues((*CLIQUES, number), clique, is_opted_out=is_opted_out, is_member=clique.name in members)
            if NAMED in clique.annotations or ((mode == ENABLED or groups.group_of(clique.annotations)) and _has_gpus(clique.pod_spec)):
                yield from _claim_issues((*CLIQUES, number, "spec", "podSpec", "resourceClaims"), clique)
        yield from channel_rules.issues(self, new)

    def _name_issues(self, path: Path, clique: SpecifiedClique, *, is_opted_out: bool, is_member: bool) -> Iterator[Issue]:
        if NAMED not in clique.annotations:
            return
        path, name = (*path, "annotations", NAMED), clique.annotations[NAMED]
        if self.auto and not is_opted_out:
            yield Issue(path, ErrorType.INVALID, OPT_OUT, name)
        if fault := _name_fault(name):
            yield Issue(path, ErrorType.INVALID, fault, name)
        elif GROUP_INDEX in name and not is_member:
            yield Issue(path, ErrorType.INVALID, NO_SCALING_GROUP, name)

    def update_issues(self, old: SpecifiedSet, new: SpecifiedSet) -> Iterator[Issue]:
        """Changes of the annotations that request domains (R16–R18, N13, N26), and a new second channel (N23)."""
        yield from immutable(AUTO, old, new)
        yield from immutable_on_cliques(NAMED, old, new)
        yield from groups.update_issues(old, new)
        yield from channel_rules.issues(self, new, old)

    def domain_requests(
        self, root: str, annotations: Mapping[str, str], cliques: Mapping[str, SpecifiedClique]
    ) -> tuple[DomainRequest, ...]:
        """One domain for each replica of a set with automatic domains (R8–R10), else one for each name that its cliques have (R40–R45),
        and one for each group in a replica (N26).

        Of annotations that contradict one another, which only stored sets have, the one in this order counts.
        """
        mode = annotations.get(AUTO)
        if mode == ENABLED:
            members = frozenset(name for name, clique in cliques.items() if _has_gpus(clique.pod_spec))
            return (DomainRequest(f"{root}-{INDEX}", members, shared=False),)
        by_domain: dict[str, set[str]] = {}
        by_group: dict[str, set[str]] = {}
        for name, clique in cliques.items():
            domain = clique.annotations.get(NAMED)
            if domain is not None and not _name_fault(domain):
                by_domain.setdefault(domain, set()).add(name)
            elif mode != DISABLED and (group := groups.group_of(clique.annotations)) and _has_gpus(clique.pod_spec):
                by_group.setdefault(group, set()).add(name)
        named = (DomainRequest(domain, frozenset(names), shared=True) for domain, names in by_domain.items())
        return (*named, *(groups.request(root, group, names) for group, names in by_group.items()))

    def group_annotations(self, annotations: Mapping[str, str]) -> Mapping[str, str]:
        """The annotation for automatic domains if it is `enabled`, nothing if it is `disabled` (R14); else that for groups (N26)."""
        mode = annotations.get(AUTO)
        if mode in (ENABLED, DISABLED):
            return {AUTO: ENABLED} if mode == ENABLED else {}
        return {GROUP: annotations[GROUP]} if GROUP in annotations else {}

    def component(self, request: DomainRequest) -> str:
        """Named domains have another component than those of replicas (N6)."""
        return "pcs-named-computedomain" if request.shared else "pcs-computedomain"

    def domain_spec(self, name: str) -> Body:
        """An elastic domain: numNodes is always 0 (T5), and always set, because older drivers require the field."""
        return {"numNodes": 0, "channel": {"resourceClaimTemplate": {"name": name}}}

    def spec_in(self, version: str, spec: Body) -> Body:
        """Newer versions have no `numNodes`."""
        return {key: value for key, value in spec.items() if key != "numNodes" or version == COMPUTE_DOMAIN.version}

    def template_name(self, domain: Live | None, name: str) -> str:
        """The name in the domain's spec, which may differ from the domain's name if a user created the domain (N5)."""
        return domain_facts.template_name(domain, name)

    def template_blocker(self, domain: Live, template: Live) -> str:
        """The driver must have created the template for this domain's uid and for workloads (T15); the domain's state is ignored (R32)."""
        uid = template.labels.get(DOMAIN_LABEL, "")
        if uid != domain.uid:
            return "belongs to another ComputeDomain" if uid else "was not created by the DRA driver"
        return "" if template.labels.get(TARGET_LABEL, WORKLOAD) == WORKLOAD else "is for the driver's own daemons"

    def domain_uid(self, claim: Live) -> str:
        """The uid that the driver wrote into the claim's parameters."""
        return domain_facts.domain_uid(claim)

    def decorate_pod(self, spec: Body, template: str) -> dict[str, Any]:
        """The pod spec with the claim, which the containers with GPUs use; in a pod without GPUs all containers do (N4)."""
        claims = [*(spec.get("resourceClaims") or ()), {"name": CLAIM, "resourceClaimTemplateName": template}]
        fields = [field for field in ("containers", "initContainers") if spec.get(field)]
        has_gpus = any(_requests_gpus(container) for field in fields for container in spec[field])
        containers = {
            field: [
                _with_claim(container) if _requests_gpus(container) or (not has_gpus and field == "containers") else container
                for container in spec[field]
            ]
            for field in fields
        }
        return {**spec, "resourceClaims": claims, **containers}

    # For messages only, no object depends on them.

    def required_kinds(self) -> Mapping[Kind, str]:
        """ComputeDomains, if new sets request them automatically; else nothing (R3, R5)."""
        return {COMPUTE_DOMAIN: MISSING_CRD} if self.auto else {}

    def installation_queries(self) -> tuple[Query, ...]:
        """The queries whose results `checks` reads."""
        from providers.fabrics.nvidia import inspection

        return inspection.QUERIES

    def checks(self, installation: Installation) -> Iterator[Check]:
        """The checks of an installation."""
        from providers.fabrics.nvidia import checks, inspection

        sets = [(live.id, live.body) for live in installation.sets or ()]
        uids = {live.id: live.uid for live in installation.results.of(inspection.DOMAINS).objects}
        scaling_groups = replicas_of_groups(installation.results.of(inspection.SCALING_GROUPS).objects)
        capacity = inspection.capacity(installation)
        notes = sorted(capacity_notes(self, sets, capacity, uids, scaling_groups).items())
        of_cliques = sorted(island_notes(self, sets, capacity, uids, scaling_groups).items())
        lines = tuple(f"{root.namespace}/{root.name}: {note}" for root, note in notes)
        clique_lines = tuple(f"{root.namespace}/{root.name}: {note}" for root, listed in of_cliques for note in listed)
        return checks.checks(
            inspection.Inspection(installation, self.auto, requested_by_sets(sets, self, scaling_groups), lines, clique_lines)
        )

    def joined_nodes(self, domain: Live) -> tuple[JoinedNode, ...]:
        """The nodes in the domain's status."""
        return domain_facts.joined_nodes(domain)

    def unreported(self, domain: Live) -> str:
        """Where hosts manage IMEX, a domain is Ready and names no node, whatever runs in it."""
        return UNREPORTED if domain_facts.is_ready_without_nodes(domain) else ""

    def domain_queries(self, domain: ResourceId) -> tuple[Query, ...]:
        """The queries whose results `diagnose` reads."""
        from providers.fabrics.nvidia import evidence

        return evidence.domain_queries(domain)

    def diagnose(self, domain: ResourceId, results: QueryResults, now: datetime) -> Iterator[Diagnosis]:
        """The findings about a domain and its pods."""
        from providers.fabrics.nvidia import diagnosis, evidence

        return diagnosis.diagnoses(evidence.Evidence(domain, results, now))

    # The admission rules as CEL.

    def policy_rules(self) -> Iterator[PolicyRule]:
        """The rules for the annotations that request domains."""
        from providers.fabrics.nvidia import policy_rules

        return policy_rules.rules(auto=self.auto)

    def enrolment(self) -> Enrolment | None:
        """The annotation for automatic domains, for new sets with GPUs (R6)."""
        from providers.fabrics.nvidia import policy_rules

        return policy_rules.enrolment() if self.auto else None

    def unstated_rules(self) -> Iterator[str]:
        """Second channels, and what the objects of a set record."""
        from providers.fabrics.nvidia import policy_rules

        return iter(policy_rules.UNSTATED)

    # For forecasts.

    def modelled_driver(self) -> NvidiaDriver:
        """The driver in one forecast."""
        return NvidiaDriver()


def configured(settings: Settings) -> Nvidia:
    """The fabric for the operator's configuration."""
    return Nvidia(auto=settings.network.auto_mnnvl_enabled)


def _with_claim(container: Body) -> Body:
    """The container, using the engine's claim."""
    resources = mapping(container.get("resources"))
    return {**container, "resources": {**resources, "claims": [*(resources.get("claims") or ()), {"name": CLAIM}]}}


def _claim_issues(path: Path, clique: SpecifiedClique) -> Iterator[Issue]:
    """An issue for each claim of the user with the name of the engine's claim (N18)."""
    for number, claim in enumerate(mappings(clique.pod_spec.get("resourceClaims"))):
        if claim.get("name") == CLAIM:
            yield Issue((*path, number, "name"), ErrorType.INVALID, CLAIM_NAME_TAKEN, CLAIM)


def _name_fault(name: Any) -> str:
    """Why the API server would reject a ComputeDomain of that name, with indices in place of tokens; empty if it would not (N14)."""
    if not isinstance(name, str) or not name:
        return NO_DOMAIN_NAME
    if subdomain_faults(name.replace(INDEX, "0").replace(GROUP_INDEX, "0")):
        return INVALID_DOMAIN_NAME
    return ""


def _has_gpus(pod_spec: Body) -> bool:
    return any(_requests_gpus(container) for field in ("containers", "initContainers") for container in mappings(pod_spec.get(field)))


def _requests_gpus(container: Body) -> bool:
    """Whether a container has a request or limit for the resource `GPU` that is not zero (T10)."""
    resources = mapping(container.get("resources"))
    amounts = (mapping(resources.get(kind)).get(GPU) for kind in ("limits", "requests"))
    return any(amount is not None and not is_zero(amount) for amount in amounts)
