"""Neighbours: what rules may look at beside an object, as far as somebody has looked."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from engine.ids import ResourceId
from engine.observed import Live


@dataclass(frozen=True, slots=True)
class Neighbours:
    """`resources.admission.request.Neighbourhood` of what was found in one look."""

    objects: Mapping[ResourceId, Live] = field(default_factory=dict)
    kinds: frozenset[str] = frozenset()
    """The kinds of which everything was seen."""

    def find(self, id: ResourceId) -> Live | None:
        """That object, if it is there."""
        return self.objects.get(id)

    def knows(self, kind: str) -> bool:
        """Whether everything of that kind was seen."""
        return kind in self.kinds


def neighbours(lives: Iterable[Live], kinds: Iterable[str]) -> Neighbours:
    """These objects, of kinds of which there are no others."""
    return Neighbours({live.id: live for live in lives}, frozenset(kinds))
