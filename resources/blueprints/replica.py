"""Replica: everything that one replica of a set should have, and how it stands."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from datetime import datetime

from engine.duration import spell
from engine.failure import Trouble
from engine.graph import Part, part
from engine.observed import Slice
from engine.plan import Held
from engine.resource import Stance
from engine.verdict import Verdict
from resources.blueprints.parts import PARTS
from resources.domains import replica_domains
from resources.domains.replica_domains import Fabrics
from resources.model.template import Template
from resources.model.view import STILL, CliqueView, Moves, View, view
from resources.policies.availability import breached_since, ready
from resources.policies.rollout import Leave, Stage, is_old, is_stale, moves, stage
from resources.policies.termination import Sentence, judge, spelled
from resources.ports.configuration import Setup
from resources.removal.leftovers import leftovers
from resources.status import errors
from resources.status.podclique import trouble
from resources.status.podcliqueset import Standing, standing


@dataclass(frozen=True, slots=True, eq=False)
class Replica:
    """One replica, computed."""

    part: Part
    standing: Standing
    waiting: tuple[Held, ...]
    held: tuple[Held, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Seen:
    """One replica as asked for and as it is, how far it has come in an update, and whether it must be recycled."""

    view: View
    stage: Stage
    verdict: Verdict[tuple[Sentence, ...]]


def look(template: Template, index: int, lives: Slice, taken: Collection[str], setup: Setup, now: datetime) -> Seen:
    """The replica of that index, seen; what is seen stands until the verdict says."""
    seen = view(template, index, lives, taken, setup)
    return Seen(seen, stage(seen), judge(seen, template.termination_delay, now))


def replica(seen: Seen, leave: Leave, has_token: bool, fabrics: Fabrics, troubles: tuple[Trouble, ...] | None) -> Replica:
    """What is to become of a replica, given how far it may move, whether pods that wait for others have the means to, the domains that
    its pods are to be in or not any more, and what failed."""
    view = replace(seen.view, has_token=has_token, domains=fabrics.domains, troubles=troubles)
    view = replace(view, moves=_decided(view, seen, leave))
    wanted = [resource for kind in PARTS for resource in kind.render(view)]
    going = [*leftovers(view, {resource.id for resource in wanted}), *fabrics.leaving.resources]
    complete = not going and all(resource.id in view.lives.objects for resource in wanted if resource.stance is not Stance.DROP)
    own = (domain for domain in fabrics.domains if not domain.wish.shared)
    waiting = (*replica_domains.waiting(own), *_waiting(view, seen.verdict.until))
    return Replica(part(str(view.index), [*wanted, *going]), standing(view, complete), waiting, tuple(_unexplained(view)))


def _decided(view: View, seen: Seen, leave: Leave) -> Moves:
    """A gang without its minimum is recycled before anything else is thought of."""
    sentences = seen.verdict.value
    if sentences:
        return Moves(
            cliques={clique: sentence.why for sentence in sentences for clique in sentence.cliques},
            witnesses=frozenset(sentence.witness for sentence in sentences),
            recycled=any(sentence.whole for sentence in sentences),
        )
    return moves(view, leave) if seen.stage.stale else STILL


def _unexplained(view: View) -> Iterator[Held]:
    """The cliques and groups that tell of errors of an earlier process."""
    if view.troubles is None:
        told = [*((one.live, one.going) for one in view.groups), *((one.live, one.going) for one in view.cliques)]
        yield from errors.unexplained(live for live, going in told if live is not None and not going)


def _waiting(view: View, until: datetime | None) -> Iterator[Held]:
    for clique in view.cliques:
        yield from _of_clique(clique)
        if until is not None and (since := breached_since(clique)) is not None:
            told = f"below minAvailable since {spelled(since)}; its gang is recycled if that lasts {spell(view.template.termination_delay)}"
            yield Held(clique.id, told, until)
        if is_stale(clique) and clique.name not in view.moves.cliques:
            yield from _of_old_template(clique, view.moves)


def _of_clique(clique: CliqueView) -> Iterator[Held]:
    fine = ready(clique)
    if fine < clique.replicas:
        reason = trouble(clique.seating.kept)
        yield Held(clique.id, f"{fine} of {clique.replicas} pods ready" + (f"; {reason}" if reason else ""))
    for pod in clique.seating.going:
        yield Held(pod.live.id, "is being deleted")


def _of_old_template(clique: CliqueView, decided: Moves) -> Iterator[Held]:
    left = [pod for pod in clique.seating.kept if is_old(clique, pod) and pod.name not in decided.pods]
    if left or clique.outdated:
        yield Held(clique.id, f"{len(left)} of {clique.replicas} pods are of an old template: {decided.patience}")
