"""Lookup: the objects of a domain are found by its uid in their label, never by their name."""

from providers.sandbox.actors.body import Body, labels_of
from providers.sandbox.driver.facts import NotYet, OfDomains
from providers.sandbox.installation.kinds import TARGET


def one_of_domain(seen: OfDomains, uid: str, target: str) -> Body | None:
    """The one object of the domain for that purpose. Raises `NotYet` where there are several: there is no telling which is right."""
    found = [body for body in seen.of(uid) if labels_of(body).get(TARGET, "") == target]
    if len(found) > 1:
        raise NotYet(f"more than one {seen.kind.name} found with same ComputeDomain UID")
    return found[0] if found else None
