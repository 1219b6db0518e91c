"""Replica domains: the fabric domains that the pods of one replica join; created before those pods and deleted after them.

The order is the same for all vendors. The engine creates the domain with its finalizer; the vendor's driver creates a
ResourceClaimTemplate for it; then the pods that claim it are created. On removal the pods and their claims go first and the domain is
deleted next; the driver removes what it created, and the engine's finalizer is released last.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from msgspec.structs import replace

from engine.ids import ResourceId
from engine.memo import Memo
from engine.observed import Live, Observed, Slice
from engine.plan import Wait
from engine.reason import Because, Reason
from engine.resource import Body, Resource
from resources.base import kinds, names
from resources.domains.cut_off import CutOff, cut_off, with_cut_off
from resources.domains.desired_domain import ReplicaRequest
from resources.domains.release import DomainRelease, User, release_domains, users_of
from resources.model.domain import Domain, expanded, is_per_group_replica
from resources.model.template import Template
from resources.model.view import CliqueView, View, desired_replicas
from resources.ports.configuration import Configuration
from resources.ports.fabric import DomainRequest, Fabric


@dataclass(frozen=True, slots=True, eq=False)
class ReplicaDomains:
    """The domains of one replica: those that it requests, and those that it no longer requests."""

    requested: tuple[Domain, ...] = ()
    release: DomainRelease = DomainRelease()
    by_key: Mapping[tuple[ResourceId, bool], Domain] = field(init=False)
    """The requested domains by id and by whether they are shared."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "by_key", {(domain.id, domain.request.shared): domain for domain in self.requested})


NO_DOMAINS = ReplicaDomains()


def domains_of_replica(
    observed: Observed, template: Template, index: int, configuration: Configuration, now: datetime, memo: Memo
) -> ReplicaDomains:
    """The domains of a replica; the same object as before if nothing about them has changed."""
    part = observed.slice(str(index))
    existing = [live for fabric in configuration.fabrics for live in part.of(fabric.kind.name)]
    if not existing and not template.domain_requests:
        return NO_DOMAINS
    counts = _group_replicas(template, part, index)
    requests = memo.recall(("requests", index), (template, counts), lambda: _requests(template, index, counts))
    requested = tuple(_domain(observed, template, fabric, request, index, configuration, memo) for fabric, request in requests)
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


def pending(domains: Iterable[Domain]) -> Iterator[Wait]:
    """One entry for each domain for which the cluster still has to do something."""
    return (Wait(domain.id, domain.pending) for domain in domains if domain.pending)


def decorate_pod(view: View, clique: CliqueView, spec: Body) -> dict[str, Any]:
    """The pod spec of a clique with a claim for each domain that its pods join."""
    for domain in view.domains_of(clique):
        spec = domain.fabric.decorate_pod(spec, domain.template)
    return dict(spec)


def _group_replicas(template: Template, part: Slice, index: int) -> Mapping[str, int]:
    """Clique -> the replicas that its scaling group has now; empty if no request depends on them."""
    if not any(is_per_group_replica(request) for _, request in template.domain_requests):
        return {}
    counts: dict[str, int] = {}
    for group in template.groups:
        live = part.objects.get(kinds.SCALING_GROUP.id(template.id.namespace, names.scaling_group(template.id.name, index, group.name)))
        count = desired_replicas(live, group.replicas)
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
