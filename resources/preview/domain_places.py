"""Domain places: the nodes that have a place in the domains of a fabric, and the places that pods take. A node has one of each fabric."""

from collections.abc import Iterable, Iterator, Mapping

from engine.ids import ResourceId
from engine.observed import Live
from resources.cluster_model.references import claims_from_templates
from resources.domains.capacity import NodeCapacity
from resources.placement.cluster_room import FabricSlots
from resources.ports.fabric import Fabric

DomainTemplates = Mapping[tuple[str, str], str]
"""(Namespace and name of a ResourceClaimTemplate of a domain) -> the kind of the domain."""


def slots_in(fabrics: Iterable[Fabric], capacities: Mapping[str, NodeCapacity]) -> Iterator[tuple[str, FabricSlots]]:
    """The kind of domains of each fabric whose nodes are known, and these nodes."""
    for fabric in fabrics:
        if (capacity := capacities.get(fabric.kind.key)) is not None:
            yield fabric.kind.name, FabricSlots(capacity.nodes, capacity.taken)


def domain_templates(objects: Mapping[ResourceId, Live | None], fabrics: Iterable[Fabric]) -> DomainTemplates:
    """The templates of those of the objects that are domains of which a node has one place. None: the object is to be created."""
    return {
        (id.namespace, fabric.template_name(domain, id.name)): fabric.kind.name
        for fabric in fabrics
        if fabric.slots is not None
        for id, domain in objects.items()
        if fabric.kind.key in id.keys()
    }


def places_of(pod: Live, templates: DomainTemplates) -> Mapping[str, int]:
    """Kind of domains -> the places that a pod takes: one for each claim through the template of a domain."""
    taken: dict[str, int] = {}
    for name in claims_from_templates(pod).values():
        if (kind := templates.get((pod.id.namespace, name))) is not None:
            taken[kind] = taken.get(kind, 0) + 1
    return taken
