"""GrowthLimit: how many replicas the objects of a stored set have, and how far they may grow.

Edits that no webhook has judged may ask for more than the limits allow.
"""

from collections.abc import Iterator
from typing import Final

from msgspec import Struct

from engine.errors import GraphError
from engine.observed import Live, Slice
from engine.paths import get
from resources.base import labels, names
from resources.base.fields import mapping, mappings
from resources.model.template import Group
from resources.ports.configuration import SizeLimits
from resources.schema.issues import shown

KEPT: Final = "stays as it is: a limit of the set leaves out its replica"
"""Of objects of replicas that are asked for and exist, and before which more are missing than there are."""
LIMITED: Final = "LimitExceeded"
"""The type of the condition of a set of which something is not created because it would be too large, and the reason of the event."""


class GrowthLimit(Struct, frozen=True):
    """How many pods and PodCliques a clique or a scaling group may have at most; what exists counts as allowed."""

    pods: int
    cliques: int

    def of_clique(self, wanted: int, live: Live | None, pods: int, gang: Live | None, initial: int) -> int:
        """The pods of a clique that asks for `wanted`, has `pods`, and has `initial` in the template.

        A pod that has just gone is replaced, if the status says so, and the PodGang or, without one, the template.
        """
        if wanted <= self.pods:
            return wanted
        recorded = get(live.body, ("status", "replicas"), 0) if live is not None else 0
        if live is None or not isinstance(recorded, int):
            return min(wanted, max(self.pods, pods))
        expected = listed_pods(gang, live.id.name) if gang is not None else initial
        return min(wanted, max(self.pods, pods, min(recorded, expected)))

    def of_group(self, wanted: int, group: Group, name: str, part: Slice) -> int:
        """The replicas of a scaling group of this name that asks for `wanted`. `part`: the objects of its replica of the set."""
        most = min(self.pods // max(group.pods, 1), self.cliques // max(len(group.cliques), 1))
        return wanted if wanted <= most else min(wanted, max(most, names.existing(_indices(name, part), most)))


def growth_limit_of(limits: SizeLimits) -> GrowthLimit:
    """How far each object of a set may grow that does not exceed its limits as a whole."""
    return GrowthLimit(limits.pods, limits.cliques)


def desired_replicas(live: Live | None, initial: int) -> int:
    """The number of replicas: the template's on creation, afterwards the live object's own (HPA, `kubectl scale`).

    Raises `GraphError` if the number is not an integer.
    """
    count = get(live.body, ("spec", "replicas"), initial) if live is not None and live.deleting_since is None else initial
    if not isinstance(count, int):
        raise GraphError(f"{live.id if live else 'the template'}: replicas must be an integer, got {shown(count)}")
    return count


def group_replicas(live: Live | None, group: Group, name: str, part: Slice, limit: GrowthLimit) -> int:
    """The number of replicas of a scaling group of this name, as far as the limit allows. `part`: the objects of its replica."""
    return limit.of_group(desired_replicas(live, group.replicas), group, name, part)


NO_GROWTH: Final = GrowthLimit(0, 0)
"""Nothing is added to what exists."""


def _indices(name: str, part: Slice) -> Iterator[int]:
    """The indices of the replicas of a scaling group that have PodCliques."""
    for live in part.of("PodClique"):
        index = names.index_in(str(live.labels.get(labels.GROUP_REPLICA_INDEX, "")))
        if index is not None and live.labels.get(labels.SCALING_GROUP) == name:
            yield index


def listed_pods(gang: Live | None, clique: str) -> int:
    """How many pods of a PodClique a live PodGang lists."""
    groups = mappings(mapping(gang.body.get("spec")).get("podgroups")) if gang is not None else ()
    return sum(len(group.get("podReferences") or ()) for group in groups if group.get("name") == clique)
