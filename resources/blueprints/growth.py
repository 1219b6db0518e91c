"""Growth: which replicas of a stored set are not created, or not enlarged, because the set would exceed its limits."""

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from engine.observed import Observed
from engine.plan import Alarm
from resources.base import names
from resources.blueprints.replica import ReplicaState
from resources.model.growth_limit import LIMITED
from resources.model.template import Template
from resources.ports.configuration import SizeLimits

NAMED: Final = 3
"""The most objects that the text names."""


def replica_count(wanted: int, observed: Observed, template: Template, limits: SizeLimits) -> int:
    """How many replicas there are: those that are wanted, as far as they exist or do not exceed the limits."""
    cliques = len(template.standalone) + sum(group.replicas * len(group.cliques) for group in template.groups)
    most = min(limits.replicas, limits.pods // max(template.pods, 1), limits.cliques // max(cliques, 1))
    if wanted <= most:
        return wanted
    return min(wanted, max(most, names.existing((int(key) for key in observed.slices if key.isdecimal()), most)))


def within(
    limits: SizeLimits, replicas: Sequence[ReplicaState], without_growth: Callable[[int], ReplicaState]
) -> tuple[tuple[ReplicaState, ...], frozenset[int]]:
    """The replicas, and the indices of those that are not enlarged: in their order, those for which too little is left.

    What exists counts first: nothing that exists is deleted because of a limit.
    """
    states = tuple(replicas)
    if sum([state.pods for state in states]) <= limits.pods and sum([len(state.view.cliques) for state in states]) <= limits.cliques:
        return states, frozenset()
    grown = [_growth(state) for state in states]
    pods = limits.pods - sum(state.pods - growth[0] for state, growth in zip(states, grown, strict=True))
    cliques = limits.cliques - sum(len(state.view.cliques) - growth[1] for state, growth in zip(states, grown, strict=True))
    kept: list[ReplicaState] = []
    capped: set[int] = set()
    for index, (state, growth) in enumerate(zip(states, grown, strict=True)):
        if any(growth) and (growth[0] > pods or growth[1] > cliques):
            capped.add(index)
            kept.append(without_growth(index))
        else:
            pods, cliques = pods - growth[0], cliques - growth[1]
            kept.append(state)
    return tuple(kept), frozenset(capped)


def _growth(state: ReplicaState) -> tuple[int, int]:
    """How many pods and PodCliques would be added to a replica."""
    pods = sum(max(clique.replicas - len(clique.pods), 0) for clique in state.view.cliques)
    return pods, sum(clique.live is None for clique in state.view.cliques)


def alarms(wanted: int, count: int, replicas: Sequence[ReplicaState], capped: frozenset[int], limits: SizeLimits) -> Iterator[Alarm]:
    """One alarm if anything is not created because of a limit."""
    about = [f"spec.replicas is {wanted}, of which {count} are created"] if wanted > count else []
    about += [text for state in replicas for text in state.limited]
    about += [f"replica {index} is not enlarged" for index in sorted(capped)]
    if about:
        more = f" and {len(about) - NAMED} more" if len(about) > NAMED else ""
        text = (
            f"the set may have {limits.replicas} replicas, {limits.pods} pods and {limits.cliques} PodCliques (limits.set): "
            f"{'; '.join(about[:NAMED])}{more}. What exists stays. Scale it in, or raise the limits of the operator configuration"
        )
        yield Alarm(LIMITED, text, blocking=True)
