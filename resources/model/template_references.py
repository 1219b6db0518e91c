"""TemplateReferences: the objects of others that a set refers to, as far as they were found."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from engine.ids import Kind, ResourceId
from engine.memo import Memo
from engine.observed import Live, Observed
from resources.base import kinds

MATTERS: Final = frozenset({kinds.RESOURCE_CLAIM.name, kinds.RESOURCE_CLAIM_TEMPLATE.name, kinds.TOPOLOGY_BINDING.name})
"""The kinds of which it matters whether they are served, and seen."""


@dataclass(frozen=True, slots=True, eq=False)
class TemplateReferences:
    """What was found of what a set refers to, and why the rest was not."""

    found: Mapping[ResourceId, Live] = field(default_factory=dict)
    unseen: frozenset[str] = frozenset()
    """Kinds that were not seen completely."""
    unserved: frozenset[str] = frozenset()
    """Kinds that the cluster does not have."""
    claims: frozenset[str] = frozenset()
    """The names of the resource claims that the set as a whole has already."""
    foreign: frozenset[str] = frozenset()
    """The names of resource claims in its way that are not its own."""

    def why_missing(self, kind: Kind) -> str:
        """Why an object of that kind was not found."""
        if kind.name in self.unserved:
            return f"the cluster does not serve {kind.name} of {kind.api_version}"
        if kind.name in self.unseen:
            return f"{kind.name} objects were not seen completely"
        return "not found" + (" in the namespaces that are looked at" if kind.namespaced else "")


def template_references(observed: Observed, wanted: tuple[ResourceId, ...], part: str, memo: Memo) -> TemplateReferences:
    """What there is of what is wanted; the same as before if it is as before. `part` is the slice of what the set has once."""
    unseen, unserved = observed.incomplete & MATTERS, observed.unserved & MATTERS
    claims = [live.id.name for live in observed.slice(part).of(kinds.RESOURCE_CLAIM.name)]
    found = {id: live for id in wanted if (live := observed.references.objects.get(id)) is not None}
    foreign = [id.name for id in observed.foreign if id.kind == kinds.RESOURCE_CLAIM.name]
    facts = (wanted, *found.values(), *(" ".join(sorted(names)) for names in (unseen, unserved, claims, foreign)))
    return memo.recall(
        "template_references", facts, lambda: TemplateReferences(found, unseen, unserved, frozenset(claims), frozenset(foreign))
    )
