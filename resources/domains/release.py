"""Domain release: a domain that a set no longer requests is deleted when its users are gone or the drain has timed out."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final

from msgspec import Struct

from engine.duration import spell
from engine.ids import Owner
from engine.observed import EMPTY, Live, Observed, Slice, World
from engine.plan import Alarm, Wait
from engine.reason import Because, Verdict, earliest
from engine.resource import Drop, Hold
from resources.base import kinds
from resources.base.fields import mapping, mappings
from resources.model.domain import is_managed, policy_of
from resources.ports.configuration import Configuration
from resources.ports.fabric import Fabric

USERS: Final = (kinds.POD.name, kinds.PODCLIQUE.name, kinds.RESOURCE_CLAIM.name)
"""The kinds of objects without which it is not known who uses a domain."""
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


def drain_verdict(users: Sequence[User], timeout: timedelta | None, now: datetime | None = None) -> Verdict[str]:
    """What the deletion of a domain waits for; empty if it need not wait: no user is left, or `timeout` is over (then `why` says so).

    The timeout runs from the earliest deletionTimestamp of the users. Without a timeout, or while no user is being deleted, there is no
    deadline. Without `now` the deadline is computed (`until`) but is never over.
    """
    if not users:
        return Verdict("")
    began = earliest(user.live.deleting_since for user in users)
    deadline = began + timeout if began is not None and timeout is not None else None
    if deadline is not None and timeout is not None and now is not None and now >= deadline:
        return Verdict("", f"{counted_users(users)} not gone within {spell(timeout)}")
    return Verdict(f"waits for {counted_users(users)} to be gone", until=deadline)


def counted_users(users: Sequence[User]) -> str:
    """The number of users by noun, with the first name: `2 pods and 1 claim (demo-0-a-x, …)`."""
    counts = Counter(user.noun for user in users)
    first = min(user.live.id.name for user in users)
    text = " and ".join(f"{count} {noun}{'s' if count > 1 else ''}" for noun, count in counts.items())
    return f"{text} ({first})" if len(users) == 1 else f"{text} ({first}, …)"


class DomainRelease(Struct, frozen=True, eq=False):
    """The domains that a set no longer requests: a resource for each (DROP, or HOLD while it is in use), and the drains that timed out."""

    resources: tuple[Drop | Hold, ...] = ()
    until: datetime | None = None
    """When the first drain times out; None if none does."""
    alarms: tuple[Alarm, ...] = ()
    """One alarm for each domain that is deleted although it is in use."""

    @property
    def pending(self) -> tuple[Wait, ...]:
        """One entry for each domain that is still in use."""
        return tuple(Wait(resource.id, resource.why, self.until) for resource in self.resources if isinstance(resource, Hold))


def merged(*releases: DomainRelease) -> DomainRelease:
    """Several releases as one."""
    return DomainRelease(
        tuple(resource for release in releases for resource in release.resources),
        earliest(release.until for release in releases),
        tuple(alarm for release in releases for alarm in release.alarms),
    )


def release_domains(
    observed: Observed, domains: Iterable[Live], configuration: Configuration, because: Because, now: datetime, slices: Iterable[Slice]
) -> DomainRelease:
    """The release of these domains, whose pods are in these slices; `because` says why the set no longer requests them."""
    by_kind = {fabric.kind.name: fabric for fabric in configuration.fabrics}
    parts = tuple(slices)
    released = [_release(observed, live, by_kind[live.id.kind], configuration, because, now, parts) for live in domains]
    alarms = tuple(
        _drain_timed_out(resource, verdict)
        for resource, verdict in released
        if isinstance(resource, Drop) and verdict.why and _is_deleted(observed, resource)
    )
    return DomainRelease(tuple(resource for resource, _ in released), earliest(verdict.until for _, verdict in released), alarms)


def _release(
    observed: Observed, live: Live, fabric: Fabric, configuration: Configuration, because: Because, now: datetime, slices: Sequence[Slice]
) -> tuple[Drop | Hold, Verdict[str]]:
    """The resource of one domain, with the verdict of its drain.

    While other sets own a shared domain, their claims do not count: only this set's owner reference is removed.
    """
    shared = live.controller is None
    owner = Owner(observed.root.id, kinds.PODCLIQUESET.api_version, controller=not shared)
    has_other_owners = shared and any(reference.uid != observed.root.uid for reference in live.owners)
    users = users_of(observed, fabric, live, slices, claims=not has_other_owners)
    verdict = drain_verdict(users, configuration.drain_timeout, now)
    policy = policy_of(fabric, shared=shared)
    if verdict.value:
        return Hold(live.id, f"{because.text}; {verdict.value}", (owner,), policy=policy), verdict
    return Drop(live.id, because.text, (owner,), policy=policy, reason=because.reason), verdict


def _is_deleted(observed: Observed, resource: Drop) -> bool:
    """Whether the domain is deleted now: not while other sets own it too, nor while those that may use it cannot be listed."""
    if not observed.incomplete.isdisjoint((resource.id.kind, *USERS)):
        return False
    live = observed.find(resource.id) or observed.references.objects.get(resource.id)
    uids = {observed.root.uid}
    return not resource.policy.shared or live is None or all(owner.uid in uids for owner in live.owners)


def _drain_timed_out(resource: Drop, verdict: Verdict[str]) -> Alarm:
    kind, name = resource.id.kind, resource.id.name
    return Alarm(f"{kind}DrainTimedOut", f"{kind} {name} is deleted although it is in use: {verdict.why}", counted_apart=True)


def owned_domains(observed: Observed, configuration: Configuration, own: Slice = EMPTY) -> tuple[Live, ...]:
    """The domains of the set: those in its slice `own`, and the shared domains that have the set as an owner."""
    return (*(live for fabric in configuration.fabrics for live in own.of(fabric.kind.name)), *_shared_domains(observed, configuration))


def _shared_domains(observed: Observed, configuration: Configuration) -> tuple[Live, ...]:
    """The shared domains that have the set as an owner."""
    if not any(observed.references.of(fabric.kind.name) for fabric in configuration.fabrics):
        return ()

    def by_owner(references: Slice) -> Mapping[str, tuple[Live, ...]]:
        domains: dict[str, list[Live]] = {}
        for fabric in configuration.fabrics:
            for live in references.of(fabric.kind.name):
                for owner in live.owners if _is_shared(live, fabric) else ():
                    domains.setdefault(owner.uid, []).append(live)
        return {uid: tuple(lives) for uid, lives in domains.items()}

    return observed.references.index("domains by owner", by_owner).get(observed.root.uid, ())


def _is_shared(live: Live, fabric: Fabric) -> bool:
    """Whether the engine created the domain for several sets. A domain that a user created does not count, even if a set owns it."""
    return live.controller is None and is_managed(live, fabric)
