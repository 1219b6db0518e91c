"""Part keys: the parts into which the objects of a set are divided: the set itself, its shared objects, and one part for each replica."""

from engine.ids import ResourceId
from resources.base import names

ROOT = "root"
"""The key of the part with the PodCliqueSet itself."""
SET = "set"
"""The key of the part with the objects that all replicas of the set share."""


def part_key(root: ResourceId, id: ResourceId) -> str:
    """The key of the part that an object of the set belongs to: `ROOT`, `SET`, or the index of its replica, e.g. `"0"`."""
    if id == root:
        return ROOT
    index = names.replica_of(root, id)
    return SET if index is None else str(index)
