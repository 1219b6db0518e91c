"""Domain users: the sets whose pods are in a domain, and resource claims of pods that belong to no set."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec import Struct, field

from engine.ids import ResourceId
from engine.observed import Observed
from resources.base import kinds
from resources.domains.release import claims_on, users_of_claim
from resources.domains.status import DomainStatus
from resources.ports.configuration import Configuration


class DomainUser(Struct, frozen=True):
    """A set or a resource claim that uses a domain."""

    id: ResourceId
    pods: Mapping[str, int] = field(default_factory=dict)
    """For a set: clique -> how many of its pods are in the domain and have not ended; empty while it only requests the domain."""
    owners: tuple[str, ...] = ()
    """For a claim: the names of the pods that it belongs to."""


def domain_users(
    id: ResourceId, statuses: Sequence[tuple[Observed, DomainStatus]], roots: Iterable[Observed], configuration: Configuration
) -> Iterator[DomainUser]:
    """The users of a domain: the sets with a status of it, then the claims on it that belong to no pod of a set.

    `statuses` are the statuses of this domain, each from the view of the set with which it is listed.
    """
    yield from (DomainUser(observed.root.id, status.pods or {}) for observed, status in statuses)
    observed = next(iter(roots), None)
    live = observed.references.objects.get(id) if observed is not None else None
    if observed is None or live is None:
        return
    pods = {pod.uid for observed, _ in statuses for part in observed.slices.values() for pod in part.of(kinds.POD.name)}
    for claim in claims_on(observed, [live], configuration):
        if pods.isdisjoint(users_of_claim(claim)):
            yield DomainUser(claim.id, owners=tuple(owner.name for owner in claim.owners))
