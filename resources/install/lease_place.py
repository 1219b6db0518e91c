"""LeasePlace: where the Leases of an installation are."""

from collections.abc import Iterator

from msgspec import Struct

from resources.schema.formats import label_faults, subdomain_faults
from resources.settings import LeaderElection

DEFAULT_NAMESPACE = "default"
"""The namespace of the Leases where the configuration names none."""


class LeasePlace(Struct, frozen=True):
    """Where the Leases of the leader election are. As text: `namespace/name` of the first one."""

    namespace: str = DEFAULT_NAMESPACE
    name: str = "grove-operator-leader-election"
    shards: int = 1
    """Into how many shards the namespaces are divided."""

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the Leases of the shards."""
        return (self.name, *(f"{self.name}-shard-{shard}" for shard in range(1, self.shards)))


GROVE_OPERATOR = LeasePlace("grove-system")
"""The Lease that Grove's own operator holds while it runs."""


def place_of(election: LeaderElection, shards: int = 1) -> LeasePlace | None:
    """Where a configuration has the Leases, with the larger number of shards; None if it disables leader election."""
    if not election.enabled:
        return None
    return LeasePlace(election.resource_namespace or DEFAULT_NAMESPACE, election.resource_name, max(shards, election.shards))


def place_faults(place: LeasePlace) -> Iterator[str]:
    """What is wrong with the names of a place: they become part of the paths of requests."""
    yield from (f"leaderElection.resourceNamespace: {fault}" for fault in label_faults(place.namespace))
    yield from (f"leaderElection.resourceName: {fault}" for fault in subdomain_faults(place.name))
