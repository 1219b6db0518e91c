"""Usage: who uses a fabric domain: pods of a set, and the claims that lead into it."""

from collections.abc import Iterable, Iterator, Mapping

from engine.observed import Live, Observed, Slice
from resources.base import kinds
from resources.domains import drain
from resources.domains.drain import User
from resources.ports.configuration import Configuration
from resources.ports.fabric import Fabric


def claims(observed: Observed, domains: Iterable[Live], configuration: Configuration) -> Iterator[Live]:
    """The claims that lead into these domains."""
    by_kind = {fabric.kind.name: fabric for fabric in configuration.fabrics}
    return (claim for domain in domains for claim in _led(observed, by_kind[domain.id.kind], domain))


def users_of(observed: Observed, fabric: Fabric, domain: Live, slices: Iterable[Slice], *, claims: bool = True) -> tuple[User, ...]:
    """What uses a domain: our pods that claim it, and the claims that lead into it."""
    template = fabric.template(domain, domain.id.name)
    pods = (User(pod, "pod") for part in slices for pod in part.of(kinds.POD.name) if drain.claims(pod, template))
    led = _led(observed, fabric, domain) if claims else ()
    return (*pods, *(User(claim, "claim") for claim in led))


def lost(observed: Observed, fabric: Fabric, domain: Live, slices: Iterable[Slice]) -> tuple[Live, ...]:
    """Our pods that ask for this domain and are in one of that name that is no more: what they have been given stays what it is."""
    led = _claims_by_domain(observed, fabric)

    def in_none(around: Slice) -> frozenset[str]:
        there = {domain.uid for domain in around.of(fabric.kind.name)}
        return frozenset(owner.uid for uid in led.keys() - there for claim in led[uid] for owner in claim.owners)

    pods = observed.references.index(f"pods in no domain of {fabric.name}", in_none)
    if not pods:
        return ()
    template = fabric.template(domain, domain.id.name)
    return tuple(pod for part in slices for pod in part.of(kinds.POD.name) if pod.uid in pods and drain.claims(pod, template))


def _led(observed: Observed, fabric: Fabric, domain: Live) -> tuple[Live, ...]:
    led = _claims_by_domain(observed, fabric).get(domain.uid, ())
    # From another namespace nobody gets into a domain, whatever his claim says: it must not keep the domain either.
    return tuple(claim for claim in led if claim.id.namespace == domain.id.namespace)


def _claims_by_domain(observed: Observed, fabric: Fabric) -> Mapping[str, tuple[Live, ...]]:
    def by_domain(around: Slice) -> Mapping[str, tuple[Live, ...]]:
        found: dict[str, list[Live]] = {}
        for claim in around.of(kinds.RESOURCE_CLAIM.name):
            if uid := fabric.domain_of(claim):
                found.setdefault(uid, []).append(claim)
        return {uid: tuple(led) for uid, led in found.items()}

    return observed.references.index(f"claims of {fabric.name}", by_domain)
