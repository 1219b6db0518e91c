"""NVIDIA: multi-node NVLink through ComputeDomains, one for each replica of a set, or by name."""

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any, Final

from engine.ids import Kind, ResourceId
from engine.observed import Live
from engine.paths import get, overlay
from engine.quantity import is_zero
from engine.resource import Body
from providers.fabrics import nvidia_channels, nvidia_checks, nvidia_diagnosis, nvidia_scene
from providers.fabrics.nvidia_words import (
    AUTO,
    CLAIM,
    COMPUTE_DOMAIN,
    DISABLED,
    DOMAIN_LABEL,
    ENABLED,
    FINALIZER,
    GPU,
    NAMED,
    TARGET_LABEL,
    WORKLOAD,
)
from resources.admission.annotations import (
    CLIQUES,
    annotations_of,
    cliques_of,
    mapping,
    mappings,
    misplaced,
    unchangeable,
    unchangeable_on_cliques,
)
from resources.base import kinds
from resources.domains.capacity import capacity_notes
from resources.domains.requests import planned_by
from resources.ports.checks import Check
from resources.ports.fabric import INDEX, DomainRequest
from resources.ports.inspection import Diagnosis, Installation, JoinedNode
from resources.ports.queries import Query, QueryResults
from resources.schema.formats import subdomain_faults
from resources.schema.issues import Child, Fault, Issue, Path
from resources.settings import Settings

AUTO_PATH: Final[Path] = ("metadata", "annotations", Child(AUTO))
OFF: Final = "MNNVL is not enabled in the operator configuration. Either enable MNNVL globally or remove the grove.io/auto-mnnvl annotation"
OPT_OUT: Final = (
    "automatic MNNVL injection is enabled for this PodCliqueSet replica; explicit ComputeDomain annotations require opting out of "
    'automatic injection (set grove.io/auto-mnnvl: "disabled")'
)
TAKEN: Final = f"the claim name {CLAIM} is needed for the ComputeDomain"


class Nvidia:
    """`resources.ports.Fabric` for NVIDIA's DRA driver.

    `auto` says whether new sets with GPUs are enrolled (R2, R6). What is enrolled stays so, whatever becomes of that (R39).
    """

    name = "nvidia"
    kind = COMPUTE_DOMAIN
    finalizer = FINALIZER

    def __init__(self, *, auto: bool = False) -> None:
        self.auto = auto

    def enrolled(self, body: Body) -> Body:
        """R6, R7: a new set with GPUs that says nothing gets the annotation; whatever it says is left alone (R14, R36)."""
        if (
            not self.auto
            or not isinstance(body.get("metadata"), Mapping)
            or AUTO in annotations_of(body)
            or not any(_has_gpus(clique) for clique in cliques_of(body))
        ):
            return body
        return overlay(body, {"metadata": {"annotations": {AUTO: ENABLED}}})

    def creation_issues(self, body: Body) -> Iterator[Issue]:
        """R15, R38, R49, N14, N18."""
        said = annotations_of(body).get(AUTO)
        if AUTO in annotations_of(body):
            if said not in (ENABLED, DISABLED):
                yield Issue(AUTO_PATH, Fault.INVALID, f'must be "{ENABLED}" or "{DISABLED}"', said)
            elif said == ENABLED and not self.auto:
                yield Issue(AUTO_PATH, Fault.INVALID, OFF, said)
        for number, clique in enumerate(cliques_of(body)):
            yield from self._named_issues((*CLIQUES, number), clique, said)
            if self._is_member(clique, said):
                yield from _claim_issues((*CLIQUES, number, "spec", "podSpec", "resourceClaims"), clique)

    def _named_issues(self, path: Path, clique: Body, said: Any) -> Iterator[Issue]:
        annotations = mapping(clique.get("annotations"))
        if NAMED not in annotations:
            return
        here = (*path, "annotations", NAMED)
        named = annotations[NAMED]
        if self.auto and said != DISABLED:
            yield Issue(here, Fault.INVALID, OPT_OUT, named)
        if fault := _name_fault(named):
            yield Issue(here, Fault.INVALID, fault, named)

    def _is_member(self, clique: Body, said: Any) -> bool:
        return NAMED in mapping(clique.get("annotations")) or (said == ENABLED and _has_gpus(clique))

    def update_issues(self, old: Body, new: Body) -> Iterator[Issue]:
        """R16–R18, N13."""
        yield from unchangeable(AUTO, old, new)
        yield from unchangeable_on_cliques(NAMED, old, new)

    def warnings(self, body: Body) -> Iterator[str]:
        """N1: a name in the wrong place."""
        yield from misplaced(NAMED, body)

    def domain_requests(self, root: str, annotations: Mapping[str, str], cliques: Mapping[str, Body]) -> tuple[DomainRequest, ...]:
        """R8–R10: one domain for each replica of an enrolled set; R40–R45: one for each name, for all pods of the cliques that bear it."""
        if annotations.get(AUTO) == ENABLED:
            return (
                DomainRequest(f"{root}-{INDEX}", frozenset(name for name, clique in cliques.items() if _has_gpus(clique)), shared=False),
            )
        named: dict[str, set[str]] = {}
        for name, clique in cliques.items():
            domain = mapping(clique.get("annotations")).get(NAMED)
            if domain is not None and not _name_fault(domain):
                named.setdefault(domain, set()).add(name)
        return tuple(DomainRequest(domain, frozenset(members), shared=True) for domain, members in named.items())

    def inherited(self, annotations: Mapping[str, str]) -> Mapping[str, str]:
        """The scaling groups of an enrolled set say so; those of one that has opted out say nothing (R14)."""
        return {AUTO: ENABLED} if annotations.get(AUTO) == ENABLED else {}

    def component(self, request: DomainRequest) -> str:
        """N6: domains with a name are told apart from those of replicas."""
        return "pcs-named-computedomain" if request.shared else "pcs-computedomain"

    def spec(self, name: str) -> Body:
        """Elastic: never any other number of nodes than 0 (T5). The number is always said, for older drivers require it."""
        return {"numNodes": 0, "channel": {"resourceClaimTemplate": {"name": name}}}

    def template(self, domain: Live | None, name: str) -> str:
        """N5: what the domain says, which a user may have made with another name."""
        told = get(domain.body, ("spec", "channel", "resourceClaimTemplate", "name"), "") if domain is not None else ""
        return told if isinstance(told, str) and told else name

    def unready(self, domain: Live, template: Live) -> str:
        """T15: the template must be the driver's answer to this very domain; the domain's state means nothing (R32)."""
        told = template.labels.get(DOMAIN_LABEL, "")
        if told != domain.uid:
            return "belongs to another ComputeDomain" if told else "was not made by the DRA driver"
        return "" if template.labels.get(TARGET_LABEL, WORKLOAD) == WORKLOAD else "is for the driver's own daemons"

    def domain_of(self, claim: Live) -> str:
        """What the driver has put into the claim."""
        return nvidia_channels.domain_of(claim)

    def decorate_pod(self, spec: Body, template: str) -> dict[str, Any]:
        """N4: the GPU containers use the claim; where there are none, but the pod is in a domain by name, all containers do."""
        claims = [*(spec.get("resourceClaims") or ()), {"name": CLAIM, "resourceClaimTemplateName": template}]
        fields = [field for field in ("containers", "initContainers") if spec.get(field)]
        has_gpus = any(_wants_gpus(container) for field in fields for container in spec[field])
        using = {
            field: [
                _using(container) if _wants_gpus(container) or (not has_gpus and field == "containers") else container
                for container in spec[field]
            ]
            for field in fields
        }
        return {**spec, "resourceClaims": claims, **using}

    # What it offers beside: nothing of it shapes an object, it is all for people to read.

    inventory = kinds.RESOURCE_SLICE

    def places(self, inventory: Iterable[Live]) -> frozenset[str]:
        """R35: a node has one channel."""
        return nvidia_channels.places(inventory)

    def taken(self, claim: Live) -> str:
        """The node whose channel a claim has."""
        return nvidia_channels.taken(claim)

    def demands(self) -> Mapping[Kind, str]:
        """R3, R5."""
        return nvidia_checks.demands(auto=self.auto)

    def questions(self) -> tuple[Query, ...]:
        """What the checks look at."""
        return nvidia_checks.QUESTIONS

    def checks(self, site: Installation) -> Iterator[Check]:
        """How an installation stands."""
        sets = [(live.id, live.body) for live in site.sets or ()]
        domains = site.answers.to(nvidia_checks.DOMAINS).objects
        full = capacity_notes(self, sets, nvidia_checks.room(site), {live.id: live.uid for live in domains})
        told = tuple(f"{root.namespace}/{root.name}: {why}" for root, why in sorted(full.items()))
        return nvidia_checks.checks(nvidia_checks.Scene(site, self.auto, planned_by(sets, self), told))

    def joined(self, domain: Live) -> tuple[JoinedNode, ...]:
        """The nodes in a domain."""
        return nvidia_scene.joined(domain)

    def clues(self, domain: ResourceId) -> tuple[Query, ...]:
        """What a diagnosis looks at."""
        return nvidia_scene.clues(domain)

    def explain(self, domain: ResourceId, answers: QueryResults, now: datetime) -> Iterator[Diagnosis]:
        """Why a domain is as it is."""
        return nvidia_diagnosis.explained(nvidia_scene.Scene(domain, answers, now))


def configured(settings: Settings) -> Nvidia:
    """The fabric as things are configured."""
    return Nvidia(auto=settings.network.auto_mnnvl_enabled)


def _using(container: Body) -> Body:
    resources = mapping(container.get("resources"))
    return {**container, "resources": {**resources, "claims": [*(resources.get("claims") or ()), {"name": CLAIM}]}}


def _claim_issues(path: Path, clique: Body) -> Iterator[Issue]:
    """N18: an entry of that name would stand in the way of ours."""
    for number, claim in enumerate(mappings(get(clique, ("spec", "podSpec", "resourceClaims"), ()))):
        if claim.get("name") == CLAIM:
            yield Issue((*path, number, "name"), Fault.INVALID, TAKEN, CLAIM)


def _name_fault(named: Any) -> str:
    """N14: what the API server would say of a ComputeDomain of that name; with the index of a replica put in, where it is asked for."""
    if not isinstance(named, str) or not named:
        return "the name of a ComputeDomain must not be empty"
    name = named.replace(INDEX, "0")
    if subdomain_faults(name):
        return "the name of a ComputeDomain must be a DNS-1123 subdomain of at most 253 characters"
    return ""


def _has_gpus(clique: Body) -> bool:
    spec = mapping(get(clique, ("spec", "podSpec"), {}))
    return any(_wants_gpus(container) for field in ("containers", "initContainers") for container in mappings(spec.get(field)))


def _wants_gpus(container: Body) -> bool:
    """T10: a request or a limit that is not zero, under exactly this key."""
    resources = mapping(container.get("resources"))
    amounts = (mapping(resources.get(kind)).get(GPU) for kind in ("limits", "requests"))
    return any(amount is not None and not is_zero(amount) for amount in amounts)
