"""The fabric of Meshworks, a vendor that does not exist: its domains are Harbours, requested by name or one for each replica."""

from collections.abc import Iterator, Mapping
from typing import Any

from engine.ids import Kind
from engine.observed import Live
from engine.paths import get
from engine.quantity import is_zero
from engine.resource import Body
from resources.admission.annotations import immutable_on_cliques
from resources.base.fields import CLIQUES, mapping, mappings
from resources.ports.fabric import INDEX, Annotation, DomainRequest, Fabric, SpecifiedClique, SpecifiedSet
from resources.schema.formats import subdomain_faults
from resources.schema.issues import ErrorType, Issue
from resources.settings import Settings

HARBOUR = Kind("mesh.example.com", "v1", "Harbour", "harbours", status=True)
ANNOTATION = "mesh.example.com/harbour"
"""Annotation of a clique: the harbour that its pods join."""
EACH = "*"
"""The value of the annotation for a harbour of each replica."""
NPU = "mesh.example.com/npu"
CLAIM = "harbour-berth"
"""The name of the claim in the pod spec."""
UID_LABEL = "mesh.example.com/harbour-uid"
"""Label of claims: the uid of the harbour. Claims get it from the driver's ResourceClaimTemplate."""


class Harbours(Fabric):
    """The fabric of Meshworks."""

    name = "meshworks"
    kind = HARBOUR
    finalizer = "grove.io/harbour-finalizer"
    annotations = (Annotation(ANNOTATION),)

    def creation_issues(self, new: SpecifiedSet) -> Iterator[Issue]:
        """An invalid name of a harbour, and a claim of the user that has the name of the fabric's claim."""
        for number, clique in enumerate(new.cliques):
            harbour = clique.annotations.get(ANNOTATION)
            if harbour is None:
                continue
            path = (*CLIQUES, number, "annotations", ANNOTATION)
            yield from (Issue(path, ErrorType.INVALID, fault, harbour) for fault in _faults(harbour))
            if any(claim.get("name") == CLAIM for claim in mappings(clique.pod_spec.get("resourceClaims"))):
                yield Issue(path, ErrorType.FORBIDDEN, f"the claim name {CLAIM} is needed for the harbour")

    def update_issues(self, old: SpecifiedSet, new: SpecifiedSet) -> Iterator[Issue]:
        """The annotation is immutable: pods cannot move to another harbour."""
        return immutable_on_cliques(ANNOTATION, old, new)

    def domain_requests(
        self, root: str, annotations: Mapping[str, str], cliques: Mapping[str, SpecifiedClique]
    ) -> tuple[DomainRequest, ...]:
        """One domain for each name, for all cliques that have it; the harbour of a replica is called `<set>-<index>-harbour`."""
        by_harbour: dict[str, set[str]] = {}
        for name, clique in cliques.items():
            harbour = clique.annotations.get(ANNOTATION)
            if harbour is not None and not _faults(harbour):
                by_harbour.setdefault(harbour, set()).add(name)
        return tuple(
            DomainRequest(f"{root}-{INDEX}-harbour" if harbour == EACH else harbour, frozenset(names), shared=harbour != EACH)
            for harbour, names in by_harbour.items()
        )

    def domain_spec(self, name: str) -> Body:
        """The spec that the vendor's controller requires."""
        return {"topology": "torus"}

    def template_name(self, domain: Live | None, name: str) -> str:
        """The driver chooses the name and writes it into the harbour's status; before that, the name that it usually chooses."""
        chosen = get(domain.body, ("status", "berths"), "") if domain is not None else ""
        return chosen or f"{name}-berths"

    def template_blocker(self, domain: Live, template: Live) -> str:
        """The template must be the one in the harbour's status."""
        return "" if get(domain.body, ("status", "berths"), "") == template.id.name else "is not the one in the status of the harbour"

    def domain_uid(self, claim: Live) -> str:
        """The uid in the claim's label."""
        return claim.labels.get(UID_LABEL, "")

    def decorate_pod(self, spec: Body, template: str) -> dict[str, Any]:
        """The pod has the claim; its containers with NPUs use it."""
        claims = [*(spec.get("resourceClaims") or ()), {"name": CLAIM, "resourceClaimTemplateName": template}]
        return {**spec, "resourceClaims": claims, "containers": [_with_claim(container) for container in spec["containers"]]}


def configured(settings: Settings) -> Fabric:
    """The fabric for the operator's configuration. The entry point names this function."""
    return Harbours()


def _faults(harbour: str) -> list[str]:
    return [] if harbour == EACH else subdomain_faults(harbour)


def _with_claim(container: Body) -> Body:
    resources = mapping(container.get("resources"))
    if is_zero(mapping(resources.get("limits")).get(NPU, 0)):
        return container
    return {**container, "resources": {**resources, "claims": [*(resources.get("claims") or ()), {"name": CLAIM}]}}
