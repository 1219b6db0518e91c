"""Vacating: which running pods leave a fabric domain that is being deleted, so that an update or a recycling can continue (N34).

Such a domain accepts no new pods, and our finalizer keeps it until its users are gone. Running pods are left alone (N10) until an update or
a recycling needs new pods in the domain: it would wait for the domain, and the domain for its pods. Those pods have lost the fabric anyway.
Everything is decided from what is observed. A pod that crashes, or that a larger number of replicas adds, moves no other pod.
"""

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from engine.conditions import is_true
from engine.ids import ResourceId
from engine.reason import Because, Reason
from resources.lifecycle.availability import INITIALIZED, was_ever_scheduled
from resources.lifecycle.rollout import UpdateAllowance, is_in_transition, needs_update
from resources.lifecycle.termination import Termination
from resources.model.domain import Domain
from resources.model.view import CliqueView, Removals, View


class ReplicaProgress(Struct, frozen=True, eq=False):
    """One replica of a set, with what happens to it in this pass."""

    view: View
    domains: Sequence[Domain]
    """The domains that it requests."""
    allowance: UpdateAllowance
    is_updating: bool
    """Whether it is the replica that is being updated, and the status of the set says so already."""
    terminations: Sequence[Termination]
    """The terminations that are due."""


def vacated_domains(replicas: Iterable[ReplicaProgress]) -> Mapping[ResourceId, str]:
    """Domain -> why all pods of the set that are in it are deleted now.

    An update moves the pods of every replica that shares the domain, because it is an update of them all; a recycling only those of its
    own replica. Nothing is moved while others use the domain: it would not help.
    """
    reasons: dict[ResourceId, str] = {}
    for replica in replicas:
        for domain in replica.domains:
            if domain.held_by is None or domain.held_by.others:
                continue
            is_shared = not domain.held_by.replicas <= {replica.view.index}
            cause = _update_in_need(replica, domain) or ("" if is_shared else _recycling_in_need(replica, domain))
            if cause:
                lost = f"{domain.id.kind} {domain.id.name} is being deleted and {domain.fabric.link} is cut"
                reasons.setdefault(domain.id, f"{lost}: {cause} needs it to be created again")
    return reasons


def with_vacated(view: View, removals: Removals, vacated: Mapping[ResourceId, str]) -> Removals:
    """The removals of a replica, with its pods in the vacated domains. An outdated replica of a scaling group is replaced as a whole."""
    cliques, pods = dict(removals.cliques), dict(removals.pods)
    because = {id: Because(Reason.DOMAIN_REPLACED, why) for id, why in vacated.items()}
    for domain in view.domains.values():
        for clique in view.cliques_in(domain) if domain.id in vacated else ():
            if clique.outdated and clique.group is not None and clique.name not in cliques:
                cliques.update({member.name: because[domain.id] for member in view.members(clique.group, clique.group_replica)})
            elif not clique.outdated:
                pods |= {pod.name: because[domain.id] for pod in clique.assignment.kept if not pod.completed}
    return replace(removals, cliques=cliques, pods=pods)


def _update_in_need(replica: ReplicaProgress, domain: Domain) -> str:
    """The update, if it is this replica's turn and the update replaces pods of the domain or has replaced some; else empty."""
    members = list(replica.view.cliques_in(domain))
    is_outdated = any(map(needs_update, members))
    waits = any(map(is_in_transition, members))
    begins = is_outdated and replica.allowance is UpdateAllowance.ONE
    has_begun = waits and (replica.is_updating or (is_outdated and replica.allowance in (UpdateAllowance.BROKEN, UpdateAllowance.MORE)))
    return f"the update of replica {replica.view.index}" if begins or has_begun else ""


def _recycling_in_need(replica: ReplicaProgress, domain: Domain) -> str:
    """The recycling that is due, or after which a clique of the domain has not started yet; else empty."""
    members = list(replica.view.cliques_in(domain))
    names = {clique.name for clique in members}
    if any(not termination.whole and not names.isdisjoint(termination.cliques) for termination in replica.terminations):
        return f"the recycling of a part of replica {replica.view.index}"
    waiting = next((clique.name for clique in members if _cannot_start(replica.view, clique)), "")
    return f"{waiting}, which has not started yet," if waiting else ""


def _cannot_start(view: View, clique: CliqueView) -> bool:
    """Whether a clique has not had its minimum since it was created, although its gang needs it or had all its pods before.

    A gang beyond the minimum that has never had all its pods is one that a scaling group has been scaled to: it waits.
    """
    if clique.live is None or clique.terminating or not clique.replicas or not _is_needed(view, clique):
        return False
    if clique.scheduled < clique.clique.min_available:
        return not was_ever_scheduled(clique.live)
    return all(pod.node and pod.phase == "Pending" and not (pod.failing or pod.unready) for pod in clique.pods)


def _is_needed(view: View, clique: CliqueView) -> bool:
    if not clique.base_gang:
        return True
    gang = next((gang.live for gang in view.gangs if gang.id.name == clique.gang), None)
    return gang is not None and is_true((gang.body.get("status") or {}).get("conditions") or (), INITIALIZED)
