"""Users: the pods and the resource claims that use a fabric domain."""

from collections.abc import Iterable, Iterator, Mapping

from msgspec import Struct

from engine.observed import Live, Observed, Slice, World
from resources.base import kinds
from resources.base.fields import mapping, mappings
from resources.ports.configuration import Configuration
from resources.ports.fabric import Fabric

ENDED = frozenset({"Succeeded", "Failed"})
"""The phases of a pod that has ended, whether or not it is replaced (compare `PodFacts.ended`)."""


class User(Struct, frozen=True):
    """A pod or a resource claim that uses a domain."""

    live: Live
    noun: str
    """`pod` or `claim`, for messages."""


def has_ended(pod: Live) -> bool:
    """Whether the phase of a pod is Succeeded or Failed."""
    return (pod.body.get("status") or {}).get("phase") in ENDED


def claims_template(pod: Live, template: str) -> bool:
    """Whether the spec of a pod claims the ResourceClaimTemplate of that name, whatever the pod's phase."""
    return template in _claimed_templates(pod)


def _claimed_templates(pod: Live) -> Iterator[str]:
    """The names of the ResourceClaimTemplates that the spec of a pod claims."""
    claims = mappings(mapping(pod.body.get("spec")).get("resourceClaims"))
    return (name for claim in claims if isinstance(name := claim.get("resourceClaimTemplateName"), str))


def uses_template(pod: Live, template: str) -> bool:
    """Whether a pod claims the ResourceClaimTemplate of that name and has not ended."""
    return not has_ended(pod) and claims_template(pod, template)


def claims_on(observed: Observed, domains: Iterable[Live], configuration: Configuration) -> Iterator[Live]:
    """The resource claims that refer to one of these domains."""
    by_kind = {fabric.kind.name: fabric for fabric in configuration.fabrics}
    return (claim for domain in domains for claim in _claims_on(observed, by_kind[domain.id.kind], domain))


def users_of(observed: Observed, fabric: Fabric, domain: Live, slices: Iterable[Slice], *, claims: bool = True) -> tuple[User, ...]:
    """The users of a domain: the pods in these slices that use it and, if `claims` is true, the resource claims that refer to it."""
    template = fabric.template_name(domain, domain.id.name)
    pods = (User(pod, "pod") for part in slices for pod in part.of(kinds.POD.name) if uses_template(pod, template))
    references = _claims_on(observed, fabric, domain) if claims else ()
    return (*pods, *(User(claim, "claim") for claim in references))


def used_orphans(world: World, orphans: Iterable[Live], configuration: Configuration) -> frozenset[str]:
    """The uids of the domains among these objects, whose sets are gone, that pods without a set, or resource claims, still use.

    Pods of a shared domain may have belonged to other sets than the one that the domain's labels name.
    """
    by_kind = {fabric.kind.name: fabric for fabric in configuration.fabrics}
    domains = [(by_kind[live.id.kind], live) for live in orphans if live.id.kind in by_kind]
    if not domains:
        return frozenset()
    pods = (live for live in world.rootless() if live.id.kind == kinds.POD.name and not has_ended(live))
    templates = {(pod.id.namespace, name) for pod in pods for name in _claimed_templates(pod)}

    def is_used(fabric: Fabric, domain: Live) -> bool:
        claimed = domain.id.namespace, fabric.template_name(domain, domain.id.name)
        return claimed in templates or bool(_claims_on(world, fabric, domain))

    return frozenset(domain.uid for fabric, domain in domains if is_used(fabric, domain))


def domains_by_user(observed: Observed, fabric: Fabric) -> Mapping[str, frozenset[str]]:
    """Uid of a pod -> the uids of the domains that its claims refer to: those that it owns, and those that are reserved for it."""
    claims = _claims_by_domain(observed, fabric)

    def by_user(_: Slice) -> Mapping[str, frozenset[str]]:
        domains: dict[str, set[str]] = {}
        for uid, listed in claims.items():
            for user in {user for claim in listed for user in users_of_claim(claim)}:
                domains.setdefault(user, set()).add(uid)
        return {user: frozenset(uids) for user, uids in domains.items()}

    return observed.references.index(f"domains by user of {fabric.name}", by_user)


def users_of_claim(claim: Live) -> Iterator[str]:
    """The uids of the pods that a resource claim belongs to: its owners, else those that it is reserved for."""
    owners = [owner.uid for owner in claim.owners if owner.kind == kinds.POD.name]
    reserved = mappings(mapping(claim.body.get("status")).get("reservedFor")) if not owners else ()
    yield from (*owners, *(str(user.get("uid")) for user in reserved if user.get("resource") == "pods" and user.get("uid")))


def _claims_on(observed: Observed | World, fabric: Fabric, domain: Live) -> tuple[Live, ...]:
    claims = _claims_by_domain(observed, fabric).get(domain.uid, ())
    # The driver serves claims of the domain's namespace only: a claim of another namespace must not keep the domain.
    return tuple(claim for claim in claims if claim.id.namespace == domain.id.namespace)


def _claims_by_domain(observed: Observed | World, fabric: Fabric) -> Mapping[str, tuple[Live, ...]]:
    """Uid of a domain -> the resource claims that refer to it, in every namespace."""

    def by_domain(references: Slice) -> Mapping[str, tuple[Live, ...]]:
        claims: dict[str, list[Live]] = {}
        for claim in references.of(kinds.RESOURCE_CLAIM.name):
            if uid := fabric.domain_uid(claim):
                claims.setdefault(uid, []).append(claim)
        return {uid: tuple(listed) for uid, listed in claims.items()}

    return observed.references.index(f"claims of {fabric.name}", by_domain)
