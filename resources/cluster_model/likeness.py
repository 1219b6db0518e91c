"""Likeness: which replicas of a set are alike: the same but for their indices, the names of their pods, times and nodes."""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from engine.canonical import digest
from engine.ids import ResourceId
from engine.observed import Live, Slice
from engine.plan import Plan, Wait
from resources.base import kinds, labels, names
from resources.base.fields import mapping, mappings
from resources.cluster_model.renaming import Renaming
from resources.model.pod_facts import facts_of

COMPARED: Final = frozenset({kinds.PODCLIQUE.key, kinds.SCALING_GROUP.key, kinds.PODGANG.key})
"""The kinds whose whole status is compared. Of others the conditions are: what else they report differs from node to node."""
TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT")
ANY: Final = "*"
"""Stands for the end of the name of a pod, and for times."""

Shape = str
"""A digest, equal for replicas that are alike."""
Slot = tuple[str, str]
"""The name of a PodClique, and the index of a pod in it."""


def shapes(root: ResourceId, slices: Mapping[str, Slice], plan: Plan, count: int) -> list[Shape]:
    """The shapes of the replicas 0 to `count` - 1 of a set; `plan` is its first plan: what it waits for belongs to the shapes."""
    waits: dict[int, list[Wait]] = {}
    for wait in (*plan.deferred, *plan.pending):
        if (index := names.replica_of(root, wait.id)) is not None:
            waits.setdefault(index, []).append(wait)
    empty = digest([[], []])
    return [
        _shape(root, index, slices[str(index)].objects.values() if str(index) in slices else (), waits.get(index, ()))
        if str(index) in slices or index in waits
        else empty
        for index in range(count)
    ]


def slot_of(pod: Live) -> Slot:
    """The clique of a pod and its index in it: one pod has them at a time."""
    return pod.labels.get(labels.PODCLIQUE, ""), pod.labels.get(labels.POD_INDEX, "")


def slot_of_body(pod: Mapping[str, Any]) -> Slot:
    """The same of a pod that does not exist yet."""
    own = mapping(pod["metadata"].get("labels"))
    return str(own.get(labels.PODCLIQUE, "")), str(own.get(labels.POD_INDEX, ""))


def _shape(root: ResourceId, index: int, lives: Iterable[Live], waits: Iterable[Wait]) -> Shape:
    objects = list(lives)
    pods = {each.id.name: f"{each.labels.get(labels.PODCLIQUE, '')}-{ANY}" for each in objects if each.id.kind == kinds.POD.name}
    first = Renaming(root, {index: 0})
    neutral = Renaming(root, {index: 0}, {name: first.text(renamed) for name, renamed in pods.items()})
    described = sorted(digest(neutral.value(list(_description(each)))) for each in objects)
    waiting = sorted(digest([*neutral.id(each.id), neutral.text(each.why), each.blocked, each.until is not None]) for each in waits)
    return digest([described, waiting])


def _description(live: Live) -> Iterator[Any]:
    """What is compared of an object."""
    metadata, body = live.body["metadata"], live.body
    yield [*live.id]
    yield live.deleting_since is not None
    yield metadata.get("finalizers") or ()
    yield [[owner.kind, owner.name, owner.controller] for owner in live.owners]
    yield live.labels
    if live.id.kind == kinds.POD.name:
        facts = facts_of(live)
        yield [facts.phase, facts.ready, facts.scheduled, facts.gated, facts.scheduling_gated, facts.failing, facts.unready, facts.reason]
        yield mapping(body.get("spec")).get("resourceClaims") or ()
        return
    yield body.get("spec") if "." in live.id.group else None
    yield _without_times(body.get("status")) if live.id.kind in COMPARED else _conditions(body)


def _conditions(body: Mapping[str, Any]) -> list[Any]:
    return [[entry.get("type"), entry.get("status")] for entry in mappings(mapping(body.get("status")).get("conditions"))]


def _without_times(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _without_times(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_without_times(each) for each in value]
    return ANY if isinstance(value, str) and TIME.match(value) else value
