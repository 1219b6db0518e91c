"""References: the objects that a set refers to, as far as they are known."""

from collections.abc import Iterable, Mapping
from typing import Protocol

from msgspec import Struct, field

from engine.ids import ResourceId
from engine.observed import Live


class References(Protocol):
    """Objects that rules may read besides the object they judge: topology bindings, queues, domains, the set that owns an object."""

    def find(self, id: ResourceId) -> Live | None:
        """The object with this id; None if it does not exist or its kind is not known."""
        ...

    def knows(self, kind: str) -> bool:
        """Whether all objects of that kind were listed. Only then does `find` returning None mean that an object does not exist."""
        ...


class NoReferences(Struct, frozen=True):
    """`References` without any object: nothing was listed."""

    def find(self, id: ResourceId) -> Live | None:
        """None, for every id."""
        return None

    def knows(self, kind: str) -> bool:
        """False, for every kind."""
        return False


class KnownReferences(Struct, frozen=True):
    """`References` from the objects of one observation."""

    objects: Mapping[ResourceId, Live] = field(default_factory=dict)
    kinds: frozenset[str] = frozenset()
    """The kinds that were listed completely."""

    def find(self, id: ResourceId) -> Live | None:
        """The object with this id, if it was listed."""
        return self.objects.get(id)

    def knows(self, kind: str) -> bool:
        """Whether that kind was listed completely."""
        return kind in self.kinds


def known_references(lives: Iterable[Live], kinds: Iterable[str]) -> KnownReferences:
    """References with these objects; `kinds` are the kinds that were listed completely."""
    return KnownReferences({live.id: live for live in lives}, frozenset(kinds))
