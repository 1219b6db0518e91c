"""PatternName: a name of which a part is not known before a uid exists."""

from typing import Self

from engine.ids import ResourceId
from engine.report.shapes import Identity


class PatternName(str):
    """A name as it is shown, e.g. `web-0-front-?????`. Two of them are equal if they stand for the same object, whatever they look like."""

    __slots__ = ("number", "owner", "stands_for")
    owner: str
    """The object that it is a numbered part of: the PodClique of a pod."""
    number: str
    """Its number; empty if that is not known."""
    stands_for: str
    """The name with which it was planned."""

    def __new__(cls, shown: str, stands_for: str, owner: str, number: str) -> Self:
        """The name as it is shown, and what it stands for."""
        self = super().__new__(cls, shown)
        self.stands_for, self.owner, self.number = stands_for, owner, number
        return self

    def __eq__(self, other: object) -> bool:
        """Whether the other name stands for the same object."""
        return isinstance(other, PatternName) and self.stands_for == other.stands_for

    def __hash__(self) -> int:
        """The hash of the planned name."""
        return hash(self.stands_for)


def identity(id: ResourceId) -> Identity:
    """An object's group, kind, namespace and name; empty strings for the core group and cluster-scoped objects. A pod whose name is not
    known yet has its clique and its index as well."""
    known: Identity = {"group": id.group, "kind": id.kind, "namespace": id.namespace, "name": str(id.name)}
    return {**known, "clique": id.name.owner, "index": id.name.number} if isinstance(id.name, PatternName) else known
