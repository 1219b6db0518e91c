"""Replica: everything that one replica of a set should have, and how it stands."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from engine.graph import Part, part
from engine.observed import Slice
from engine.operation import Held
from engine.resource import Stance
from resources.parts import PARTS
from resources.policies.leftovers import leftovers
from resources.setup import Setup
from resources.status.podclique import ready, trouble
from resources.status.podcliqueset import Standing, standing
from resources.template import Template
from resources.view import CliqueView, View, view


@dataclass(frozen=True, slots=True, eq=False)
class Replica:
    """One replica, computed."""

    part: Part
    standing: Standing
    waiting: tuple[Held, ...]


def replica(template: Template, index: int, lives: Slice, taken: Collection[str], setup: Setup) -> Replica:
    """The replica of that index, from its template and from what is there of it."""
    seen = view(template, index, lives, taken, setup)
    wanted = [resource for kind in PARTS for resource in kind.render(seen)]
    going = list(leftovers(seen, {resource.id for resource in wanted}))
    complete = not going and all(resource.id in lives.objects for resource in wanted if resource.stance is Stance.WANT)
    return Replica(part(str(index), [*wanted, *going]), standing(seen, complete), tuple(_waiting(seen)))


def _waiting(seen: View) -> Iterator[Held]:
    for clique in seen.cliques:
        yield from _of_clique(clique)


def _of_clique(clique: CliqueView) -> Iterator[Held]:
    fine = ready(clique)
    if fine < clique.replicas:
        reason = trouble(clique.seating.kept)
        yield Held(clique.id, f"{fine} of {clique.replicas} pods ready" + (f"; {reason}" if reason else ""))
    for pod in clique.seating.going:
        yield Held(pod.live.id, "is being deleted")
