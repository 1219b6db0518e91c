"""Shared objects: what a set has once for all its replicas: identity of its pods, shared claims, shared fabric domains."""

from collections.abc import Mapping
from datetime import datetime

from msgspec import Struct

from engine.graph import Part, part
from engine.ids import ResourceId
from engine.memo import Memo
from engine.observed import Live, Observed
from engine.reason import Because, Reason
from resources.base import kinds, names
from resources.children import identity, resource_claim
from resources.domains.release import DomainRelease, merged, owned_domains, release_domains
from resources.model.domain import Domain
from resources.model.part_keys import SET
from resources.model.template import Template
from resources.policies.startup import is_filled
from resources.ports.configuration import Configuration


class SharedObjects(Struct, frozen=True, eq=False):
    """The desired shared objects of a set."""

    part: Part
    domains: tuple[Domain, ...]
    """The fabric domains that replicas share."""
    release: DomainRelease
    """The shared domains that no replica requests any more."""
    complete: bool
    """Whether all shared objects exist."""


def shared_objects(
    observed: Observed, template: Template, domains: Mapping[ResourceId, Domain], configuration: Configuration, now: datetime, memo: Memo
) -> SharedObjects:
    """The desired shared objects of a set; `domains` are the shared domains that its replicas request."""
    release = _release(observed, domains, configuration, now)
    desired = [domain.resource for domain in domains.values() if domain.resource is not None]

    def make() -> Part:
        claims = resource_claim.shared_claims(template, own)
        return part(SET, [*identity.render(template), *claims, *desired, *release.resources])

    own, references = observed.slice(SET).objects, observed.references.objects
    leaving = [live for live in observed.slice(SET).of(kinds.RESOURCE_CLAIM.name) if live.deleting_since is not None]
    shared = memo.recall(SET, (template, *desired, *release.resources, *leaving), make)
    return SharedObjects(shared, tuple(domains.values()), release, all(id in own or id in references for id in shared.resources))


def has_token(observed: Observed, template: Template, memo: Memo) -> bool:
    """Whether the token exists with which pods watch the pods that they start after; True if no pod needs it.

    Also True for a set that is only proposed: all its pods are shown.
    """
    if not observed.root.uid or not template.is_ordered:
        return True
    secret = observed.slice(SET).objects.get(kinds.SECRET.id(template.id.namespace, names.token_secret(template.id.name)))
    return memo.recall("token", (secret,), lambda: is_filled(secret))


def _release(observed: Observed, requested: Mapping[ResourceId, Domain], configuration: Configuration, now: datetime) -> DomainRelease:
    """The release of the set's shared domains that no replica requests, and of those whose pods have all completed."""
    reasons: dict[Because, list[Live]] = {}
    for live in owned_domains(observed, configuration, observed.slice(SET)):
        domain = requested.get(live.id)
        if domain is None or domain.released:
            reasons.setdefault(_why_released(observed, domain), []).append(live)
    slices = observed.slices.values()
    return merged(*(release_domains(observed, lives, configuration, because, now, slices) for because, lives in reasons.items()))


def _why_released(observed: Observed, domain: Domain | None) -> Because:
    if domain is None:
        return Because(Reason.TEMPLATE_CHANGED, f"{observed.root.id.name} no longer requests it")
    return Because(Reason.DOMAIN_RELEASED, domain.released)
