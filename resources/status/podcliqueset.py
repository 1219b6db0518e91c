"""The status of a PodCliqueSet: the sum of what its replicas say."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from engine.resource import Body
from resources import labels
from resources.status import podclique, podgang, scaling_group
from resources.template import Template
from resources.view import View


@dataclass(frozen=True, slots=True)
class Standing:
    """What one replica adds to the status of its set."""

    complete: bool
    """Everything that it should have exists."""
    available: bool
    updated: bool
    gangs: tuple[tuple[str, str], ...]
    """Name and phase of each gang."""


def standing(view: View, complete: bool) -> Standing:
    """How one replica stands."""
    alone = [clique for clique in view.cliques if clique.group is None]
    groups = [(group, scaling_group.replicas_of(view, group)) for group in view.groups]
    available = all(map(podclique.is_available, alone)) and all(
        group.live is not None and not group.going and sum(map(scaling_group.is_available, replicas)) >= group.group.min_available
        for group, replicas in groups
    )
    updated = available and all(map(podclique.is_updated, alone)) and all(scaling_group.is_current(replicas) for _, replicas in groups)
    return Standing(complete, available, updated, tuple((gang.id.name, podgang.phase(gang)) for gang in view.gangs))


def of(template: Template, replicas: int, generation: int, standings: Sequence[Standing], all_complete: bool) -> Body:
    """What the set says of itself."""
    body: dict[str, Any] = {
        "replicas": replicas,
        "availableReplicas": sum(one.available for one in standings),
        "updatedReplicas": sum(one.updated for one in standings),
        "hpaPodSelector": labels.selector(labels.default(template.id.name)),
        "currentGenerationHash": template.hash,
        "podGangStatuses": _gangs(one.gangs for one in standings),
    }
    return {**body, "observedGeneration": generation} if all_complete else body


def _gangs(replicas: Iterable[Iterable[tuple[str, str]]]) -> list[Mapping[str, str]]:
    return [{"name": name, "phase": phase} for gangs in replicas for name, phase in gangs]
