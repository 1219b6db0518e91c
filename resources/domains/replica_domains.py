"""Replica domains: the fabric domains that the pods of one replica join; created before those pods and deleted after them.

The order is the same for all vendors. The engine creates the domain with its finalizer; the vendor's driver creates a
ResourceClaimTemplate for it; then the pods that claim it are created. On removal the pods and their claims go first and the domain is
deleted next; the driver removes what it created, and the engine's finalizer is released last.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import cached_property
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from engine.ids import Owner, ResourceId
from engine.memo import Memo
from engine.observed import Live, Observed, Slice
from engine.plan import Alarm, Wait
from engine.reason import Because, Reason
from engine.resource import PLAIN, Body, Drop, Hold, Resource, Want, held
from engine.resource_plan import keepers
from resources.base import kinds, labels, names
from resources.base.fields import manifest
from resources.domains.cut_off import CutOff, cut_off, with_cut_off
from resources.domains.release import DomainRelease, User, counted_users, drain_verdict, merged, release_domains, users_of, users_of_claim
from resources.model.domain import Domain, Holders, expanded, is_foreign, is_managed, is_per_group_replica, policy_of, subject_of
from resources.model.growth_limit import GrowthLimit, group_replicas, growth_limit_of
from resources.model.template import Template
from resources.model.view import CliqueView, View
from resources.ports.configuration import Configuration
from resources.ports.fabric import DomainRequest, Fabric

FREE_IT: Final = "; do: delete the pods that use it"
"""What a user does about a domain that is being deleted while its pods run."""


class ReplicaRequest(Struct, frozen=True, eq=False):
    """One domain request of one replica, with everything that its domain depends on."""

    observed: Observed
    template: Template
    fabric: Fabric
    request: DomainRequest
    id: ResourceId
    index: int
    """The index of the replica."""

    def domain(self, live: Live | None, claim_template: Live | None, users: Sequence[User]) -> Domain:
        """The domain, given its object, its ResourceClaimTemplate and, while the object is being deleted, its users."""
        domain = Domain(self.id, self.fabric, self.request, self.fabric.template_name(live, self.id.name), None)
        kind = self.fabric.kind
        if live is None and kind.name in self.observed.unserved:
            return self._cannot_be_created(domain, f"the cluster does not serve {kind.name} of {kind.api_version}")
        if kind.name in self.observed.incomplete:
            why = f"{kind.name} objects could not be listed completely"
            return replace(domain, resource=self._blocked(why, live), blocker=why, blocked=True)
        if live is None:
            # For a set that does not exist yet, the plan shows everything that the set will have.
            blocker = f"{kind.name} {self.id.name} does not exist yet" if self.observed.root.uid else ""
            return replace(domain, resource=self._resource(live), blocker=blocker)
        foreign = is_foreign(live, self.fabric, self.observed.root.uid, shared=self.request.shared)
        if foreign and live.deleting_since is not None:
            return self._foreign_terminating(domain, users)
        if foreign:
            return self._cannot_be_created(domain, self._conflict(live), Reason.NAME_CONFLICT)
        managed = not self.request.shared or is_managed(live, self.fabric)
        if live.deleting_since is not None:
            return self._terminating(domain, live, users) if managed else self._user_domain_terminating(domain)
        return self._existing(replace(domain, resource=self._resource(live) if managed else None), live, claim_template)

    def _conflict(self, live: Live) -> str:
        """Why the domain that has the requested name already is none that the set may use."""
        name, root = f"{self.id.kind} {self.id.namespace}/{self.id.name}", self.template.id
        if self.request.shared and live.controller is not None and live.controller.kind == kinds.PODCLIQUESET.name:
            owner = f"{live.controller.kind} {live.controller.name}"
            return f"{name} is an automatic domain of {owner}, which cannot be joined by name; create the set with another one"
        return f"{name} already exists but is not controlled by {root.kind} {root.namespace}/{root.name}"

    def _cannot_be_created(self, domain: Domain, why: str, reason: Reason | None = None) -> Domain:
        subject = self.id.name if self.request.shared else subject_of(self.id, self.template.id.name, self.index)
        text = f"Failed to create {self.fabric.kind.name} {subject}: {why}"
        alarm = Alarm(f"{self.fabric.kind.name}Failed", text, blocking=True, counted_apart=True)
        return replace(domain, resource=replace(self._blocked(why), reason=reason), blocker=why, blocked=True, alarm=alarm)

    def _foreign_terminating(self, domain: Domain, users: Sequence[User]) -> Domain:
        """A domain that the set does not own is being deleted: ours is created afterwards. While running pods use it, a user has to act."""
        why = f"{self.id.kind} {self.id.name} is controlled by another owner and is being deleted"
        if users and all(user.live.deleting_since is None for user in users):
            kept = held(self._resource(None), f"{why}; {drain_verdict(users, None).value}{FREE_IT}")
            return replace(domain, resource=replace(kept, blocked=True, reason=Reason.IN_USE), blocker=why)
        why = f"{why}; it is created again afterwards"
        return replace(domain, resource=held(self._resource(None), why), blocker=why, pending=why)

    def _terminating(self, domain: Domain, live: Live, users: Sequence[User]) -> Domain:
        """The engine's domain is being deleted: our finalizer keeps it while it is in use, then it is created again (R26, N10)."""
        verdict = drain_verdict(users, None)
        blocker = f"{live.id.kind} {live.id.name} is being deleted"
        if verdict.value:
            alarm = Alarm(f"{live.id.kind}Terminating", f"{blocker}; it is kept until its users are gone", counted_apart=True)
            kept = held(self._resource(live), f"is being deleted; {verdict.value}")
            if all(user.live.deleting_since is None for user in users):
                kept = replace(kept, why=f"{kept.why}{FREE_IT}", blocked=True, reason=Reason.IN_USE)
            return replace(domain, resource=kept, blocker=f"{blocker}; {verdict.value}", alarm=alarm, held_by=self._holders(users))
        wanted, is_joined = self._resource(live), bool(self.request.cliques)
        why = "is being deleted; it is created again afterwards" if is_joined else "is being deleted, and no pod joins it"
        reason = Reason.DOMAIN_REPLACED if is_joined else Reason.DOMAIN_RELEASED
        return replace(
            domain,
            resource=Drop(self.id, why, wanted.owners, policy=wanted.policy, reason=reason),
            blocker=blocker,
            pending=why,
        )

    def _holders(self, users: Sequence[User]) -> Holders:
        """The users of the domain, divided into those of this set and others. The pods among the users are all of this set."""
        pods = {user.live.uid: user.live for user in users if user.noun == "pod"}
        others = [user for user in users if user.noun != "pod" and pods.keys().isdisjoint(users_of_claim(user.live))]
        indices = (names.index_in(str(pod.labels.get(labels.REPLICA_INDEX, ""))) for pod in pods.values())
        own = frozenset(index for index in indices if index is not None)
        return Holders(own if self.request.shared else frozenset({self.index}), counted_users(others) if others else "")

    def _user_domain_terminating(self, domain: Domain) -> Domain:
        """A domain that a user created is being deleted: its pods stay, new pods wait until it is gone (N10)."""
        blocker = f"{self.id.kind} {self.id.name} is being deleted"
        return replace(
            domain,
            blocker=blocker,
            alarm=Alarm(f"{self.id.kind}Terminating", f"{blocker}; new pods wait until it is gone", counted_apart=True),
        )

    def _existing(self, domain: Domain, live: Live, claim_template: Live | None) -> Domain:
        """The domain exists; its pods need the ResourceClaimTemplate that the driver creates for it.

        Kubernetes makes claims from one that is being deleted too, as long as a finalizer keeps it: that of the driver, until the domain is
        gone.
        """
        name, of = f"{kinds.RESOURCE_CLAIM_TEMPLATE.name} {domain.template}", f"{live.id.kind} {live.id.name}"
        for unknown_kinds, problem in (
            (self.observed.unserved, "is not served by the cluster"),
            (self.observed.incomplete, "could not be listed"),
        ):
            if claim_template is None and kinds.RESOURCE_CLAIM_TEMPLATE.name in unknown_kinds:
                return replace(domain, blocker=f"{name} of {of} {problem}", blocked=True)
        if claim_template is None:
            why = f"the driver has not created {name} of {of} yet"
        elif claim_template.deleting_since is not None and not keepers(claim_template, PLAIN):
            why = f"{name} of {of} is being deleted"
        elif blocker := self.fabric.template_blocker(live, claim_template):
            why = f"{name} cannot be used for {of}: it {blocker}"
        else:
            return domain
        return replace(domain, blocker=why, pending=why)

    def _blocked(self, why: str, live: Live | None = None) -> Hold:
        """The domain object, left as it is until a user or another controller acts."""
        return held(self._resource(live), why, blocked=True)

    def _resource(self, live: Live | None) -> Want:
        root, shared = self.template.id, self.request.shared
        owner = Owner(root, kinds.PODCLIQUESET.api_version, controller=not shared)
        policy = policy_of(self.fabric, shared=shared)
        ours = labels.child(_part_of(root.name, live) if shared else root.name, self.fabric.component(self.request))
        keys = {**dict(self.request.labels), **ours}
        if len(self.id.name) <= labels.LONGEST_VALUE:
            keys[labels.NAME] = self.id.name
        if not shared:
            keys[labels.REPLICA_INDEX] = str(self.index)
        kind = self.fabric.kind
        if kinds.unread(kind) in self.observed.unserved:
            kind = kinds.newer(kind)[0]
        spec = self.fabric.spec_in(kind.version, self.fabric.domain_spec(self.id.name))
        body = manifest(kind, self.id.namespace, self.id.name, keys, finalizers=policy.finalizers, spec=spec)
        why = f"pods of {root.name} request it by name" if shared else f"{self.fabric.name} domain of replica {self.index}"
        return Want(self.id, why, (owner,), body=body, policy=policy)


def _part_of(root: str, live: Live | None) -> str:
    """The name of the set that a shared domain is labelled with: the current label while that set is an owner, else this set (N8)."""
    labelled = live.labels.get(labels.PART_OF, "") if live is not None else ""
    is_owner = live is not None and any(owner.name == labelled and owner.kind == kinds.PODCLIQUESET.name for owner in live.owners)
    return labelled if is_owner else root


class ReplicaDomains(Struct, frozen=True, eq=False, dict=True):
    """The domains of one replica: those that it requests, and those that it no longer requests."""

    requested: tuple[Domain, ...] = ()
    release: DomainRelease = DomainRelease()

    @cached_property
    def by_key(self) -> Mapping[tuple[ResourceId, bool], Domain]:
        """The requested domains by id and by whether they are shared."""
        return {(domain.id, domain.request.shared): domain for domain in self.requested}


NO_DOMAINS = ReplicaDomains()


def domains_of_replica(
    observed: Observed,
    template: Template,
    index: int,
    configuration: Configuration,
    now: datetime,
    memo: Memo,
    limit: GrowthLimit | None = None,
) -> ReplicaDomains:
    """The domains of a replica; the same object as before if nothing about them has changed. `limit`: as for its view."""
    part = observed.slice(str(index))
    existing = [live for fabric in configuration.fabrics for live in part.of(fabric.kind.name)]
    if not existing and not template.domain_requests:
        return NO_DOMAINS
    counts = _group_replicas(template, part, index, limit or growth_limit_of(configuration.limits.of_set))
    requests = memo.recall(("requests", index), (template, counts), lambda: _requests(template, index, counts))
    requested = tuple(
        _domain(observed, template, fabric, request, index, configuration, memo)
        for fabric, request in requests
        if request.cliques or _is_kept(observed, part, fabric, request)
    )
    ids = {domain.id for domain in requested}
    unrequested = [live for live in existing if live.id not in ids]
    because = Because(Reason.TEMPLATE_CHANGED, f"replica {index} no longer requests it")
    release = release_domains(observed, unrequested, configuration, because, now, (part,)) if unrequested else DomainRelease()

    return memo.recall(("domains", index), (requested, release.resources), lambda: ReplicaDomains(requested, release))


def shared_domains(replicas: Iterable[ReplicaDomains]) -> Mapping[ResourceId, Domain]:
    """The shared domains that these replicas request, each once."""
    return {domain.id: domain for replica in replicas for domain in replica.requested if domain.request.shared}


def render(view: View) -> Iterator[Resource]:
    """The desired domain objects that belong to this replica alone; shared ones are rendered with the set."""
    return (domain.resource for domain in view.domains.values() if domain.resource is not None and not domain.request.shared)


def while_vacated(resource: Resource, vacated: Collection[ResourceId]) -> Resource:
    """The resource; a domain that waits for pods which the set deletes now (`vacated_domains`) needs no manual action."""
    if resource.id in vacated and isinstance(resource, Hold) and resource.reason is Reason.IN_USE:
        return replace(resource, why=resource.why.removesuffix(FREE_IT), blocked=False, reason=None)
    return resource


def pending(domains: Iterable[Domain]) -> Iterator[Wait]:
    """One entry for each domain for which the cluster still has to do something."""
    return (Wait(domain.id, domain.pending) for domain in domains if domain.pending)


def decorate_pod(view: View, clique: CliqueView, spec: Body) -> dict[str, Any]:
    """The pod spec of a clique with a claim for each domain that its pods join."""
    for domain in view.domains_of(clique):
        spec = domain.fabric.decorate_pod(spec, domain.template)
    return dict(spec)


def _group_replicas(template: Template, part: Slice, index: int, limit: GrowthLimit) -> Mapping[str, int]:
    """Clique -> the replicas that its scaling group has now; empty if no request depends on them."""
    if not any(is_per_group_replica(request) for _, request in template.domain_requests):
        return {}
    counts: dict[str, int] = {}
    for group in template.groups:
        id = kinds.SCALING_GROUP.id(template.id.namespace, names.scaling_group(template.id.name, index, group.name))
        count = group_replicas(part.objects.get(id), group, id.name, part, limit)
        counts |= {clique.name: count for clique in group.cliques}
    return counts


def _requests(template: Template, index: int, group_replicas: Mapping[str, int]) -> tuple[tuple[Fabric, DomainRequest], ...]:
    """The requests of a replica, with indices in their names. Requests for the same name become one, with the cliques of all."""
    merged: dict[tuple[ResourceId, bool], tuple[Fabric, DomainRequest]] = {}
    for fabric, each in template.domain_requests:
        for request in expanded(each, index, group_replicas):
            key = fabric.kind.id(template.id.namespace, request.name), request.shared
            _, previous = merged.get(key, (fabric, request))
            merged[key] = fabric, replace(request, cliques=previous.cliques | request.cliques)
    return tuple(merged.values())


def _is_kept(observed: Observed, part: Slice, fabric: Fabric, request: DomainRequest) -> bool:
    """Whether a domain that no pod joins exists: none is created, and one of this set stays."""
    id = fabric.kind.id(observed.root.id.namespace, request.name)
    live = part.objects.get(id) or observed.references.objects.get(id)
    return live is not None and not is_foreign(live, fabric, observed.root.uid, shared=request.shared)


def _domain(
    observed: Observed, template: Template, fabric: Fabric, request: DomainRequest, index: int, configuration: Configuration, memo: Memo
) -> Domain:
    namespace, references = template.id.namespace, observed.references.objects
    part = observed.slice(str(index))
    id = fabric.kind.id(namespace, request.name)
    live = part.objects.get(id) or references.get(id)
    claim_template = (
        references.get(kinds.RESOURCE_CLAIM_TEMPLATE.id(namespace, fabric.template_name(live, request.name))) if live is not None else None
    )
    users, cut = _users_and_cut_off(observed, template, fabric, request, id, live, part, memo)
    facts = (template, live, claim_template, users, cut, observed.incomplete, observed.unserved, configuration)

    def make() -> Domain:
        domain = ReplicaRequest(observed, template, fabric, request, id, index).domain(live, claim_template, users)
        return with_cut_off(domain, live, cut) if cut else domain

    return memo.recall(("domain", fabric.name, request), facts, make)


def _users_and_cut_off(
    observed: Observed,
    template: Template,
    fabric: Fabric,
    request: DomainRequest,
    id: ResourceId,
    live: Live | None,
    part: Slice,
    memo: Memo,
) -> tuple[tuple[User, ...], CutOff | None]:
    """The users of a domain that is being deleted, none otherwise; and the pods that are cut off from it.

    All replicas use a shared domain: it is looked at once in a pass, for the first of them.
    """
    slices = observed.slices.values() if request.shared else (part,)

    def make() -> tuple[tuple[User, ...], CutOff | None]:
        users = users_of(observed, fabric, live, slices) if live is not None and live.deleting_since else ()
        return users, cut_off(observed, fabric, (each for of, each in template.domain_requests if of is fabric), id, live, slices)

    facts = (observed if request.shared else part, observed.references, observed.incomplete, template, live)
    return memo.recall(("users", id, request.shared), facts, make)


WHY = "all its pods have completed"


def released_on_completion(
    observed: Observed,
    template: Template,
    replicas: Sequence[tuple[View, ReplicaDomains]],
    configuration: Configuration,
    now: datetime,
    memo: Memo,
) -> tuple[ReplicaDomains, ...]:
    """The domains of each replica; those whose pods have all completed are released, if the set asks for that.

    A replica's own domain is deleted; of a shared one the set gives up its ownership (`shared_objects`). The pods keep their claims.
    """
    completed = _completed(replicas) if template.releases_domains else frozenset()
    if not completed:
        return tuple(domains for _, domains in replicas)
    return tuple(
        _without(observed, view.index, domains, completed, configuration, now, memo)
        if any(domain.id in completed for domain in domains.requested)
        else domains
        for view, domains in replicas
    )


def _without(
    observed: Observed,
    index: int,
    domains: ReplicaDomains,
    completed: frozenset[ResourceId],
    configuration: Configuration,
    now: datetime,
    memo: Memo,
) -> ReplicaDomains:
    part = observed.slice(str(index))
    own = [live for domain in domains.requested if domain.id in completed and (live := part.objects.get(domain.id))]
    release = (
        merged(domains.release, release_domains(observed, own, configuration, Because(Reason.DOMAIN_RELEASED, WHY), now, (part,)))
        if own
        else domains.release
    )
    requested = frozenset(domain.id for domain in domains.requested) & completed

    def make() -> ReplicaDomains:
        return ReplicaDomains(tuple(_released(each) if each.id in requested else each for each in domains.requested), release)

    return memo.recall(("domains on completion", index), (domains, requested, release.resources, release.until, release.alarms), make)


def _released(domain: Domain) -> Domain:
    """The domain without its object. Its pods still claim its template, so that their cliques stay as they are."""
    return replace(domain, resource=None, blocker="", blocked=False, pending="", alarm=None, held_by=None, released=WHY)


def _completed(replicas: Sequence[tuple[View, ReplicaDomains]]) -> frozenset[ResourceId]:
    """The requested domains with pods, all of which have completed, in every replica that requests them."""
    members: dict[ResourceId, list[CliqueView]] = {}
    for view, domains in replicas:
        for domain in domains.requested:
            members.setdefault(domain.id, []).extend(view.cliques_in(domain))
    return frozenset(id for id, cliques in members.items() if any(clique.pods for clique in cliques) and all(map(_has_completed, cliques)))


def _has_completed(clique: CliqueView) -> bool:
    """Whether the clique has all its pods, and all of them have completed."""
    return clique.live is not None and not clique.terminating and not clique.assignment.new and all(pod.completed for pod in clique.pods)
