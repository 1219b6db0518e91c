"""Gang facts: what a scheduler back end is told of one PodGang and its pods."""

from collections.abc import Mapping
from functools import lru_cache

from resources.domains.placement import required_islands
from resources.model.gang_scheduling import pods_of_gang
from resources.model.view import CliqueView, GangView, View
from resources.ports.scheduler import CliqueOfGang, GangFacts, Island


def gang_facts(view: View, gang: GangView) -> GangFacts:
    """The facts about one PodGang of a replica."""
    return _facts_of_gangs(view)[gang.id.name]


@lru_cache(maxsize=1)
def _facts_of_gangs(view: View) -> Mapping[str, GangFacts]:
    return {gang.id.name: _facts(view, gang) for gang in view.gangs}


def _facts(view: View, gang: GangView) -> GangFacts:
    return GangFacts(
        gang.id,
        gang.live,
        view.lives.objects,
        tuple(_clique_of(view, name, minimum, clique) for name, minimum, clique in gang.groups),
        tuple(pod for pod in pods_of_gang(gang.id.name, view.lives) if pod.deleting_since is None),
        tuple(Island(key, frozenset(members)) for key, members in required_islands(view, gang.cliques).values()),
        is_unanswered=gang.id.name in view.unanswered,
    )


def _clique_of(view: View, name: str, minimum: int, clique: CliqueView | None) -> CliqueOfGang:
    if clique is None:
        return CliqueOfGang(name, minimum)
    pods, new = clique.assignment.kept, clique.assignment.new
    return CliqueOfGang(name, minimum, tuple(pod.live for pod in pods), tuple(pod.index for pod in new), view.keeps(clique))
