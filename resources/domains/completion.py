"""Completion: a domain may be released when all its pods have completed, and is created again before its next pods (N33)."""

from collections.abc import Sequence
from datetime import datetime

from msgspec.structs import replace

from engine.ids import ResourceId
from engine.memo import Memo
from engine.observed import Observed
from engine.reason import Because, Reason
from resources.domains.release import merged, release_domains
from resources.domains.replica_domains import ReplicaDomains
from resources.model.domain import Domain
from resources.model.template import Template
from resources.model.view import CliqueView, View
from resources.ports.configuration import Configuration

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
