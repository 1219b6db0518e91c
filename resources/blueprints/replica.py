"""Replica: everything that one replica of a set should have, and how it stands."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from datetime import datetime

from engine.duration import spell
from engine.failure import FailedCall
from engine.graph import Part, part
from engine.observed import Slice
from engine.plan import Wait
from engine.resource import Stance
from engine.verdict import Verdict
from resources.blueprints.parts import PARTS
from resources.domains import replica_domains
from resources.domains.replica_domains import Fabrics
from resources.model.template import Template
from resources.model.view import NO_REMOVALS, CliqueView, Removals, View, view
from resources.policies.availability import breached_since, ready
from resources.policies.rollout import UpdateAllowance, UpdateStage, is_old, is_stale, moves, stage
from resources.policies.termination import Termination, judge, spelled
from resources.ports.configuration import Configuration
from resources.removal.leftovers import leftovers
from resources.status import errors
from resources.status.podclique import trouble
from resources.status.podcliqueset import ReplicaSummary, standing


@dataclass(frozen=True, slots=True, eq=False)
class Replica:
    """One replica, computed."""

    part: Part
    standing: ReplicaSummary
    pending: tuple[Wait, ...]
    deferred: tuple[Wait, ...]


@dataclass(frozen=True, slots=True, eq=False)
class ReplicaState:
    """One replica as asked for and as it is, how far it has come in an update, and whether it must be recycled."""

    view: View
    stage: UpdateStage
    verdict: Verdict[tuple[Termination, ...]]


def look(template: Template, index: int, lives: Slice, taken: Collection[str], configuration: Configuration, now: datetime) -> ReplicaState:
    """The replica of that index, seen; what is seen stands until the verdict says."""
    seen = view(template, index, lives, taken, configuration)
    return ReplicaState(seen, stage(seen), judge(seen, template.termination_delay, now))


def replica(
    seen: ReplicaState, leave: UpdateAllowance, has_token: bool, fabrics: Fabrics, failed_calls: tuple[FailedCall, ...] | None
) -> Replica:
    """What is to become of a replica, given how far it may move, whether pods that wait for others have the means to, the domains that
    its pods are to be in or not any more, and what failed."""
    view = replace(seen.view, has_token=has_token, domains=fabrics.domains, failed_calls=failed_calls)
    view = replace(view, moves=_decided(view, seen, leave))
    wanted = [resource for kind in PARTS for resource in kind.render(view)]
    going = [*leftovers(view, {resource.id for resource in wanted}), *fabrics.leaving.resources]
    complete = not going and all(resource.id in view.lives.objects for resource in wanted if resource.stance is not Stance.DROP)
    own = (domain for domain in fabrics.domains if not domain.request.shared)
    waiting = (*replica_domains.waiting(own), *_waiting(view, seen.verdict.until))
    return Replica(part(str(view.index), [*wanted, *going]), standing(view, complete), waiting, tuple(_unexplained(view)))


def _decided(view: View, seen: ReplicaState, leave: UpdateAllowance) -> Removals:
    """A gang without its minimum is recycled before anything else is thought of."""
    terminations = seen.verdict.value
    if terminations:
        return Removals(
            cliques={clique: termination.why for termination in terminations for clique in termination.cliques},
            deleted_last=frozenset(termination.deleted_last for termination in terminations),
            recycled=any(termination.whole for termination in terminations),
        )
    return moves(view, leave) if seen.stage.stale else NO_REMOVALS


def _unexplained(view: View) -> Iterator[Wait]:
    """The cliques and groups that tell of errors of an earlier process."""
    if view.failed_calls is None:
        told = [*((one.live, one.going) for one in view.groups), *((one.live, one.going) for one in view.cliques)]
        yield from errors.unexplained(live for live, going in told if live is not None and not going)


def _waiting(view: View, until: datetime | None) -> Iterator[Wait]:
    for clique in view.cliques:
        yield from _of_clique(clique)
        if until is not None and (since := breached_since(clique)) is not None:
            told = f"below minAvailable since {spelled(since)}; its gang is recycled if that lasts {spell(view.template.termination_delay)}"
            yield Wait(clique.id, told, until)
        if is_stale(clique) and clique.name not in view.moves.cliques:
            yield from _of_old_template(clique, view.moves)


def _of_clique(clique: CliqueView) -> Iterator[Wait]:
    fine = ready(clique)
    if fine < clique.replicas:
        reason = trouble(clique.assignment.kept)
        yield Wait(clique.id, f"{fine} of {clique.replicas} pods ready" + (f"; {reason}" if reason else ""))
    for pod in clique.assignment.going:
        yield Wait(pod.live.id, "is being deleted")


def _of_old_template(clique: CliqueView, decided: Removals) -> Iterator[Wait]:
    left = [pod for pod in clique.assignment.kept if is_old(clique, pod) and pod.name not in decided.pods]
    if left or clique.outdated:
        yield Wait(clique.id, f"{len(left)} of {clique.replicas} pods are of an old template: {decided.patience}")
