"""KnownReferences: what rules may look at beside an object, as far as somebody has looked."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from engine.ids import ResourceId
from engine.observed import Live


class References(Protocol):
    """What rules may look at beside the object: bindings, queues, domains, and the set that a managed object is part of."""

    def find(self, id: ResourceId) -> Live | None:
        """That object, if it is there."""
        ...

    def knows(self, kind: str) -> bool:
        """Whether objects of that kind were looked at at all; where they were not, nobody can say that one is missing."""
        ...


@dataclass(frozen=True, slots=True)
class NoReferences:
    """A neighbourhood at which nobody has looked."""

    def find(self, id: ResourceId) -> Live | None:
        """Nothing."""
        return None

    def knows(self, kind: str) -> bool:
        """Nothing."""
        return False


@dataclass(frozen=True, slots=True)
class KnownReferences:
    """`resources.admission.request.References` of what was found in one look."""

    objects: Mapping[ResourceId, Live] = field(default_factory=dict)
    kinds: frozenset[str] = frozenset()
    """The kinds of which everything was seen."""

    def find(self, id: ResourceId) -> Live | None:
        """That object, if it is there."""
        return self.objects.get(id)

    def knows(self, kind: str) -> bool:
        """Whether everything of that kind was seen."""
        return kind in self.kinds


def references(lives: Iterable[Live], kinds: Iterable[str]) -> KnownReferences:
    """These objects, of kinds of which there are no others."""
    return KnownReferences({live.id: live for live in lives}, frozenset(kinds))
