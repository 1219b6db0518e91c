"""Another vendor: a fabric with kinds, a key and claims of its own."""

from typing import Any

from msgspec.structs import replace

from engine.ids import Kind
from engine.resource import Body
from engine.verb import Verb
from providers.fabrics.nvidia.fabric import Nvidia
from resources.ports.fabric import DomainRequest
from tests.laws.rack import Rack
from tests.laws.toy import CONFIGURATION


class Acme(Nvidia):
    """A fabric with another kind, annotation and claim name."""

    name = "acme"
    kind = Kind("fabric.acme.example", "v1", "Mesh", "meshes")
    finalizer = "acme.example/mesh"

    def domain_requests(self, root: str, annotations: Any, cliques: Any) -> tuple[DomainRequest, ...]:
        """Requested by another annotation."""
        meshes = {name: clique.annotations.get("acme.example/mesh") for name, clique in cliques.items()}
        return tuple(DomainRequest(mesh, frozenset({name}), shared=True) for name, mesh in meshes.items() if mesh)

    def component(self, request: DomainRequest) -> str:
        """Another component."""
        return "pcs-mesh"

    def domain_spec(self, name: str) -> Body:
        """Another spec."""
        return {"template": name}

    def template_name(self, domain: Any, name: str) -> str:
        """Another name."""
        return f"{name}-mesh"

    def decorate_pod(self, spec: Body, template: str) -> dict[str, Any]:
        """A claim with another name."""
        return {**spec, "resourceClaims": [*(spec.get("resourceClaims") or ()), {"name": "mesh", "resourceClaimTemplateName": template}]}


def two_vendors(manifest: Body) -> list[Any]:
    """The objects that a new set creates where two fabrics are configured."""
    toy = Rack()
    toy.configuration = replace(CONFIGURATION, fabrics=(*CONFIGURATION.fabrics, Acme()))
    toy.put(manifest)
    (plan,) = toy.plans()
    return [operation for operation in plan.operations if operation.verb is Verb.CREATE]
