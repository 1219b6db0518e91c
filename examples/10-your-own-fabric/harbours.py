"""Harbours: the fabric of Meshworks, a vendor that does not exist. Pods ask for a harbour by name, or each replica for its own."""

from collections.abc import Iterator, Mapping
from typing import Any

from engine.ids import Kind
from engine.observed import Live
from engine.paths import get
from engine.quantity import is_zero
from engine.resource import Body
from resources.admission.annotations import CLIQUES, cliques_of, mapping, mappings, misplaced, unchangeable_on_cliques
from resources.ports.fabric import INDEX, DomainRequest, Fabric
from resources.schema.formats import subdomain_faults
from resources.schema.issues import Fault, Issue
from resources.settings import Settings

HARBOUR = Kind("mesh.example.com", "v1", "Harbour", "harbours", status=True)
ASKED = "mesh.example.com/harbour"
EACH = "*"
"""As the name of a harbour: each replica of the set has one of its own."""
NPU = "mesh.example.com/npu"
CLAIM = "harbour-berth"
LED = "mesh.example.com/harbour-uid"
"""On claims, put there by the driver's template: the uid of the harbour."""


class Harbours:
    """`resources.ports.Fabric` for Meshworks."""

    name = "meshworks"
    kind = HARBOUR
    finalizer = "grove.io/harbour-finalizer"

    def enrolled(self, body: Body) -> Body:
        """Nobody is put in a harbour who does not ask for one."""
        return body

    def creation_issues(self, body: Body) -> Iterator[Issue]:
        """A name that is none, and a claim of the user's that has the name of ours."""
        for number, clique in enumerate(cliques_of(body)):
            asked = mapping(clique.get("annotations")).get(ASKED)
            if asked is None:
                continue
            path = (*CLIQUES, number, "annotations", ASKED)
            yield from (Issue(path, Fault.INVALID, fault, asked) for fault in _faults(asked))
            if any(claim.get("name") == CLAIM for claim in mappings(get(clique, ("spec", "podSpec", "resourceClaims"), ()))):
                yield Issue(path, Fault.FORBIDDEN, f"the claim name {CLAIM} is needed for the harbour")

    def update_issues(self, old: Body, new: Body) -> Iterator[Issue]:
        """Pods cannot move: who asks for which harbour is said once."""
        return unchangeable_on_cliques(ASKED, old, new)

    def warnings(self, body: Body) -> Iterator[str]:
        """The annotation in a place where nobody reads it."""
        return misplaced(ASKED, body)

    def domain_requests(self, root: str, annotations: Mapping[str, str], cliques: Mapping[str, Body]) -> tuple[DomainRequest, ...]:
        """One domain for each name, for all cliques that bear it; a replica's own is called `<set>-<index>-harbour`."""
        asked: dict[str, set[str]] = {}
        for name, clique in cliques.items():
            harbour = mapping(clique.get("annotations")).get(ASKED)
            if harbour is not None and not _faults(harbour):
                asked.setdefault(harbour, set()).add(name)
        return tuple(
            DomainRequest(f"{root}-{INDEX}-harbour" if harbour == EACH else harbour, frozenset(members), shared=harbour != EACH)
            for harbour, members in asked.items()
        )

    def inherited(self, annotations: Mapping[str, str]) -> Mapping[str, str]:
        """Scaling groups need not say anything."""
        return {}

    def component(self, request: DomainRequest) -> str:
        """Its harbours are found with `-l app.kubernetes.io/component=meshworks-harbour`."""
        return "meshworks-harbour"

    def spec(self, name: str) -> Body:
        """What the vendor's controller needs to know."""
        return {"topology": "torus"}

    def template(self, domain: Live | None, name: str) -> str:
        """The driver chooses the name and tells it in the harbour's status; until then, the one that it usually chooses."""
        told = get(domain.body, ("status", "berths"), "") if domain is not None else ""
        return told or f"{name}-berths"

    def unready(self, domain: Live, template: Live) -> str:
        """The harbour has the last word about which template is its own."""
        told = get(domain.body, ("status", "berths"), "")
        return "" if told == template.id.name else "is not the one that the harbour names"

    def domain_of(self, claim: Live) -> str:
        """Claims inherit a label from the driver's template."""
        return claim.labels.get(LED, "")

    def decorate_pod(self, spec: Body, template: str) -> dict[str, Any]:
        """Every pod berths; in it, the containers with NPUs do."""
        claims = [*(spec.get("resourceClaims") or ()), {"name": CLAIM, "resourceClaimTemplateName": template}]
        return {**spec, "resourceClaims": claims, "containers": [_berthed(container) for container in spec["containers"]]}


def configured(settings: Settings) -> Fabric:
    """The fabric, as the operator configuration has things. This is what the entry point names."""
    return Harbours()


def _faults(harbour: Any) -> list[str]:
    return [] if harbour == EACH else subdomain_faults(str(harbour))


def _berthed(container: Body) -> Body:
    resources = mapping(container.get("resources"))
    if is_zero(mapping(resources.get("limits")).get(NPU, 0)):
        return container
    return {**container, "resources": {**resources, "claims": [*(resources.get("claims") or ()), {"name": CLAIM}]}}
