"""Group index: the index of a pod among all pods of one replica of a scaling group, over its cliques in the order of `cliqueNames`.

A pod has it as a label and in an environment variable, from its creation on. A running process keeps the value of its variable, so the
label of a pod is never changed: a pod that is created while its index is in use gets another one.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate

from resources.base import labels
from resources.base.fields import mapping, mappings
from resources.model import environment
from resources.model.pod_facts import PodFacts
from resources.model.template import Clique, Group
from resources.model.view import CliqueView, View


def first_index(group: Group, clique: Clique) -> int:
    """The index of the first pod of a clique, by the template."""
    return sum(other.replicas for other in group.cliques[: group.cliques.index(clique)])


def label_of(pod: PodFacts, indices: Mapping[int, int]) -> dict[str, str]:
    """The label of a serving pod: the one that it was created with; empty if it has none, as pods of an earlier version.

    `indices` are those of its clique, for pods that have lost their label.
    """
    if (value := pod.live.labels.get(labels.GROUP_POD_INDEX)) is not None:
        return {labels.GROUP_POD_INDEX: value}
    return {labels.GROUP_POD_INDEX: str(indices[pod.index])} if pod.index is not None and pod.index in indices else {}


def pod_indices(view: View) -> Mapping[str, Mapping[int, int]]:
    """PodClique -> index of a pod in it -> its index in the replica of the group, for pods to create, and those that have lost their label.

    It is the number of pods of the cliques before it, plus the index in the clique. Where a pod of the replica has that index, as after one
    of these cliques was resized, it is the lowest one that is free.
    """
    units: dict[tuple[str, int], list[CliqueView]] = {}
    for clique in view.cliques:
        if clique.group is not None:
            units.setdefault((clique.group.name, clique.group_replica), []).append(clique)
    result: dict[str, dict[int, int]] = {}
    for members in units.values():
        for (name, own), index in _indices(members):
            result.setdefault(name, {})[own] = index
    return result


def _indices(members: Sequence[CliqueView]) -> Iterator[tuple[tuple[str, int], int]]:
    offsets = list(accumulate((clique.replicas for clique in members), initial=0))
    asking = [(clique.name, own, offset + own) for clique, offset in zip(members, offsets, strict=False) for own in _asking(clique)]
    if not asking:
        return
    kept = ((pod, offset) for clique, offset in zip(members, offsets, strict=False) for pod in clique.assignment.kept)
    used = {_occupied(pod, offset) for pod, offset in kept}
    displaced: list[tuple[str, int]] = []
    for name, own, index in asking:
        if index in used:
            displaced.append((name, own))
        else:
            used.add(index)
            yield (name, own), index
    free = (index for index in range(len(used) + len(displaced)) if index not in used)
    yield from zip(displaced, free, strict=False)


def _asking(clique: CliqueView) -> Iterator[int]:
    """The indices in the clique of the pods that get an index in the replica."""
    yield from (new.index for new in clique.assignment.new)
    yield from (pod.index for pod in clique.assignment.kept if pod.index is not None and _has_lost_label(pod))


def _has_lost_label(pod: PodFacts) -> bool:
    """Whether the pod was created with the label and has it no longer: its variable is still there."""
    if labels.GROUP_POD_INDEX in pod.live.labels:
        return False
    names = {variable["name"] for variable in environment.IN_GROUP}
    containers = mappings(mapping(pod.live.body.get("spec")).get("containers"))
    return any(variable.get("name") in names for container in containers for variable in mappings(container.get("env")))


def _occupied(pod: PodFacts, offset: int) -> int | None:
    """The index that a pod has, or that a pod of an earlier version would have; None: none."""
    text = pod.live.labels.get(labels.GROUP_POD_INDEX, "")
    if text.isascii() and text.isdigit():
        return int(text)
    return offset + pod.index if pod.index is not None and not _has_lost_label(pod) else None
