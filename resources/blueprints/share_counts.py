"""Share counts: how many ResourceClaims the `resourceSharing` of a set, a scaling group or a clique asks for, read from any shape."""

from msgspec import Struct

from engine.observed import Observed
from engine.resource import Body
from resources.base import kinds
from resources.base.fields import mappings


class ShareCounts(Struct, frozen=True):
    """How many entries one holder has."""

    of_all: int
    """Those with one claim for all replicas."""
    per_replica: int
    """Those with one for each."""

    def for_replicas(self, number: int) -> int:
        """The claims of a holder with that many replicas."""
        return self.of_all + self.per_replica * number


def shares_of(holder: Body, observed: Observed) -> ShareCounts:
    """The entries of a set's template, of a scaling group or of a clique in it. None count where the cluster serves no claims."""
    entries = mappings(holder.get("resourceSharing")) if kinds.RESOURCE_CLAIM.key not in observed.unserved else []
    scopes = [entry.get("scope") == "PerReplica" for entry in entries]
    return ShareCounts(scopes.count(False), scopes.count(True))
