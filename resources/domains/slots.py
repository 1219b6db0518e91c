"""Slots: the pods of a set that claim more than one slot of a node. A node has one slot, so such pods can never be scheduled."""

from collections.abc import Callable, Iterator, Mapping

from engine.ids import ResourceId
from engine.observed import Live, Slice
from engine.paths import get
from engine.resource import Body
from resources.base import kinds
from resources.base.fields import mapping, mappings
from resources.model.sharing import Share
from resources.model.template import Clique, Template
from resources.ports.configuration import Configuration
from resources.ports.fabric import Fabric, NodeExclusiveFabric


def slot_notes(template: Template, references: Slice, configuration: Configuration) -> Iterator[str]:
    """A note for each clique whose pods claim several slots of a node: for its domains, by its pod spec, and by `resourceSharing`.

    `references` are the observed ResourceClaims and ResourceClaimTemplates; those that are not observed count as claiming no slot.
    """
    for fabric in configuration.fabrics:
        if isinstance(fabric, NodeExclusiveFabric):
            for clique, group in _cliques_with_groups(template):
                slots = _slots_of_pod(template, clique, group, fabric, fabric.slots_of, references.objects)
                if (total := sum(slots.values())) > 1:
                    claims = ", ".join(name for name, count in slots.items() if count)
                    yield (
                        f"pods of clique {clique.name} claim {total} slots for {fabric.kind.name}s ({claims}), "
                        "and a node has one: they can never be scheduled"
                    )


def _cliques_with_groups(template: Template) -> Iterator[tuple[Clique, str]]:
    """Each clique, with the name of its scaling group or an empty string."""
    yield from ((clique, "") for clique in template.standalone)
    yield from ((clique, group.name) for group in template.groups for clique in group.cliques)


def _slots_of_pod(
    template: Template,
    clique: Clique,
    group: str,
    fabric: Fabric,
    slots_of: Callable[[Body], int],
    references: Mapping[ResourceId, Live],
) -> Mapping[str, int]:
    """Each claim of a pod of the clique, in words -> the number of slots that it claims. A claim that is listed twice counts once."""
    slots = {
        f"{fabric.kind.name} {request.name}": 1
        for requested_of, request in template.domain_requests
        if requested_of is fabric and clique.name in request.cliques
    }
    for entry in mappings(clique.pod_spec.get("resourceClaims")):
        source, spec = _source_of(entry, template.id.namespace, references)
        slots[source] = slots_of(spec)
    for share in _shares_of(template, clique, group):
        slots[f"resourceSharing {share.name}"] = slots_of(share.spec)
    return slots


def _source_of(entry: Body, namespace: str, references: Mapping[ResourceId, Live]) -> tuple[str, Body]:
    """A claim of a pod in words, and its spec; the spec is empty if it is not known. Each use of a template is a claim of its own."""
    existing, source = entry.get("resourceClaimName"), entry.get("resourceClaimTemplateName")
    if isinstance(existing, str):
        live = references.get(kinds.RESOURCE_CLAIM.id(namespace, existing))
        return f"ResourceClaim {existing}", mapping(live.body.get("spec")) if live is not None else {}
    live = references.get(kinds.RESOURCE_CLAIM_TEMPLATE.id(namespace, source)) if isinstance(source, str) else None
    return f"claim {entry.get('name')}", mapping(get(live.body, ("spec", "spec"), {})) if live is not None else {}


def _shares_of(template: Template, clique: Clique, group: str) -> Iterator[Share]:
    """The `resourceSharing` entries whose claims the pods of a clique use."""
    sharing = template.sharing
    shares = (*sharing.of_set, *sharing.of_groups.get(group, ()), *sharing.of_cliques.get(clique.name, ()))
    return (share for share in shares if share.is_used_by(clique.name, group))
