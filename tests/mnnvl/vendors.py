"""Another vendor: a fabric with kinds, a key and claims of its own."""

from dataclasses import replace
from typing import Any

from engine.ids import Kind
from engine.resource import Body
from engine.verb import Verb
from providers.fabrics.nvidia import Nvidia
from resources.ports.fabric import DomainRequest
from tests.laws.rack import Rack
from tests.laws.toy import SETUP


class Acme(Nvidia):
    """Another vendor's fabric: other kinds, another key, another claim."""

    name = "acme"
    kind = Kind("fabric.acme.example", "v1", "Mesh", "meshes")
    finalizer = "acme.example/mesh"

    def domain_requests(self, root: str, annotations: Any, cliques: Any) -> tuple[DomainRequest, ...]:
        """Asked for by a key of its own."""
        asked = {name: (one.get("annotations") or {}).get("acme.example/mesh") for name, one in cliques.items()}
        return tuple(DomainRequest(mesh, frozenset({name}), shared=True) for name, mesh in asked.items() if mesh)

    def component(self, request: DomainRequest) -> str:
        """Its own."""
        return "pcs-mesh"

    def spec(self, name: str) -> Body:
        """What it says."""
        return {"template": name}

    def template(self, domain: Any, name: str) -> str:
        """Where it leads."""
        return f"{name}-mesh"

    def decorate_pod(self, spec: Body, template: str) -> dict[str, Any]:
        """A claim under its own name."""
        return {**spec, "resourceClaims": [*(spec.get("resourceClaims") or ()), {"name": "mesh", "resourceClaimTemplateName": template}]}


def two_vendors(manifest: Body) -> list[Any]:
    """What a new set comes to where two vendors are known: objects to be made."""
    toy = Rack()
    toy.settings = replace(SETUP, fabrics=(*SETUP.fabrics, Acme()))
    toy.put(manifest)
    (plan,) = toy.plans()
    return [operation for operation in plan.operations if operation.verb is Verb.CREATE]
