"""Pod groups of kube-scheduler: the PodGroup of a pod, the CompositePodGroups above it, and the node labels that they require."""

from collections.abc import Callable, Iterator
from typing import Final

from engine.ids import ResourceId
from engine.paths import get
from engine.resource import Body
from resources.base import kinds
from resources.base.fields import mappings

Find = Callable[[ResourceId], Body | None]
"""The body of an object; None if it does not exist."""
GROUP: Final = ("spec", "schedulingGroup", "podGroupName")
TOPOLOGY: Final = ("spec", "schedulingConstraints", "topology")
PARENT: Final = ("spec", "parentCompositePodGroupName")
MAX_DEPTH: Final = 5
"""A group and what may be above it."""


def groups_around(namespace: str, name: object, find: Find) -> Iterator[tuple[ResourceId, Body]]:
    """The PodGroup of that name and the CompositePodGroups above it, as far as they exist."""
    kind = kinds.POD_GROUP
    for _ in range(MAX_DEPTH):
        if not isinstance(name, str) or (body := find(id := kind.id(namespace, name))) is None:
            return
        yield id, body
        kind, name = kinds.COMPOSITE_POD_GROUP, get(body, PARENT)


def level_of(group: Body) -> str:
    """The node label of which all pods of a group must have one value; empty if they need not."""
    return next((key for level in mappings(get(group, TOPOLOGY)) if isinstance(key := level.get("key"), str)), "")
