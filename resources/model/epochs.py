"""Epochs: PodGangs and PodGangMaps of Grove v0.1.0-alpha.12 or later, which names PodGangs after the time at which they were planned.

A set that has any is left alone: by the engine's names every one of them is surplus. It is taken over only where a user asks for it.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final

from msgspec import Struct

from engine.blueprint import Desired
from engine.conditions import is_true
from engine.graph import graph
from engine.ids import ResourceId
from engine.observed import Live, Observed, Slice
from engine.plan import Alarm, Objection
from engine.reason import Reason
from engine.resource import Body, Path
from resources.base import kinds, labels, names
from resources.base.fields import annotations_of, mapping, mappings
from resources.model.membership import specified_body
from resources.ports.configuration import Configuration
from resources.ports.scheduler import LabelsAndAnnotations

RULE: Final = "podgang-epochs"
"""The name of the guard."""
EVENT: Final = "PodGangsOfEpochs"
"""The reason of the Event."""
MIGRATION: Final = "PodGangMigrationInProgress"
"""The condition of a set whose PodGangs Grove's operator is renaming: True until the end. With another status it says nothing."""
OTHER_RELEASE: Final = "Grove v0.1.0-alpha.12 or later"
WAY_OUT: Final = (
    f'stop its operator, then allow the take-over with sync --take-over or the annotation {labels.TAKE_OVER}: "true" on the set'
    " (docs/migrating.md)"
)
ENDED: Final = ("Succeeded", "Failed")
_EPOCH_NAME: Final = re.compile(r"[0-9]{16,19}(-.+)?")
"""What follows the name of the base PodGang in the name of a PodGang of an epoch: nanoseconds since 1970, then the scaling group."""

_CUT_NAME: Final = re.compile(r".{29}-h[0-9a-f]{32}")
"""The name of a PodGang that would have more than 63 characters: its beginning, and a digest."""


class EpochSigns(Struct, frozen=True):
    """What the objects of one part of a set say about epochs."""

    made_by: str = ""
    """The first object that only the other release makes, and by what it is known; empty: there is none."""
    updating: str = ""
    """Why an update by the other release is under way; empty: none is known."""


_Refusal = tuple[str, str]
"""Why nothing may be done, and what to do about it."""
NO_SIGNS: Final = EpochSigns()
SIGNS: Final = "epochs"
"""The name under which a part remembers its signs."""
NO_PLACEMENT: Final = LabelsAndAnnotations()


def epoch_objection(observed: Observed, configuration: Configuration, *, is_allowed: bool = False) -> Objection | None:
    """Why nothing may be done for a set: it has PodGangs of epochs, and no user has asked to take it over; or they are being changed now.

    None if there is no sign of them, or if the set may be taken over. `is_allowed`: whether its graph says so.
    """
    conditions = mappings(mapping(observed.root.body.get("status")).get("conditions"))
    make = partial(_signs, observed.root.id)
    signs = [sign for part in observed.slices.values() if (sign := part.index(SIGNS, make)) is not NO_SIGNS]
    is_migrating = is_true(conditions, MIGRATION)
    if not signs and not is_migrating:
        return None
    refusal = _under_way(signs, is_migrating=is_migrating)
    if refusal is None and (is_allowed or configuration.take_over or _is_annotated(observed)):
        refusal = _impossible(observed)
        if refusal is None:
            return None
    reason, way_out = refusal or (next(sign.made_by for sign in signs if sign.made_by), WAY_OUT)
    root = observed.root.id
    return Objection(RULE, f"{OTHER_RELEASE} manages {root.kind} {root.namespace}/{root.name}, which stays as it is: {reason}; {way_out}")


def _under_way(signs: Sequence[EpochSigns], *, is_migrating: bool) -> _Refusal | None:
    """What the other release is doing with the set now, and what to do; None if nothing is known."""
    if is_migrating:
        return f"its operator is renaming the PodGangs (condition {MIGRATION})", "let it finish"
    updating = next((sign.updating for sign in signs if sign.updating), "")
    return (updating, "let its operator finish") if updating else None


def _impossible(observed: Observed) -> _Refusal | None:
    """Why the set cannot be taken over as it is, and what to do; None if it can."""
    waiting = next((pod for part in observed.slices.values() for pod in _waiting(observed.root.id, part)), None)
    if waiting is not None:
        reason = f"{_called(waiting)} waits in {names.WAITER} for others, which it would not find in another PodGang"
        return reason, "let it start, or delete it"
    shortened = next((gang for key, part in observed.slices.items() for gang in _shortened(observed.root.id, key, part)), None)
    if shortened is not None:
        return f"{_called(shortened)} has a shortened name, which does not tell its replica and epoch", "such a set cannot be taken over"
    mixed = next((gang for part in observed.slices.values() for gang in _mixed(observed.root.id, part)), None)
    if mixed is not None:
        remedy = f"remove its labels {labels.EPOCH} and {labels.GANG_ROLE}"
        return f"{_called(mixed)} has the labels of an epoch, and the name that it has without epochs", remedy
    return None


def left_alone(objection: Objection) -> Desired:
    """Nothing at all for a root, with an Event that says why."""
    return Desired(graph(()), objections=(objection,), alarms=(Alarm(EVENT, objection.message, blocking=True),))


def _is_annotated(observed: Observed) -> bool:
    """Whether the set or its graph has the annotation that allows the take-over."""
    return allows_take_over(specified_body(observed)) or (observed.proposer is not None and allows_take_over(observed.proposer.body))


def allows_take_over(body: Body) -> bool:
    """Whether a set or a graph has the annotation that allows the take-over."""
    return str(annotations_of(body).get(labels.TAKE_OVER, "")).lower() == "true"


def signs_of(root: ResourceId, part: Slice) -> EpochSigns:
    """The signs of epochs in one part of a set, which remembers them; always the same object if there are none."""
    return part.index(SIGNS, partial(_signs, root))


def _signs(root: ResourceId, part: Slice) -> EpochSigns:
    made_by, updating = next(_made_by(root, part), ""), next(_updates(part), "")
    return EpochSigns(made_by, updating) if made_by or updating else NO_SIGNS


def _made_by(root: ResourceId, part: Slice) -> Iterator[str]:
    """The objects that only the other release makes, each with what it is known by."""
    yield from (f"{_called(live)} exists" for live in part.of(kinds.PODGANG_MAP.name))
    for gang in part.of(kinds.PODGANG.name):
        if label := next((key for key in (labels.EPOCH, labels.GANG_ROLE) if key in gang.labels), ""):
            yield f"{_called(gang)} has the label {label}"
        elif is_epoch_name(root, gang.id.name, part):
            yield f"{_called(gang)} is named after an epoch"
    for clique in part.of(kinds.PODCLIQUE.name):
        if is_epoch_name(root, gang_name := clique.labels.get(labels.PODGANG, ""), part):
            yield f"{_called(clique)} is in the PodGang {gang_name}"


def is_of_epoch(root: ResourceId, live: Live, part: Slice) -> bool:
    """Whether a PodGang, or the scheduler's object for one, is of an epoch. `part`: the objects of its replica."""
    return labels.EPOCH in live.labels or labels.GANG_ROLE in live.labels or is_epoch_name(root, live.id.name, part)


def own_reasons(
    root: ResourceId, live: Live, part: Slice, placement: LabelsAndAnnotations = NO_PLACEMENT
) -> tuple[tuple[Path, Reason], ...]:
    """Why labels of a clique or pod change, and those by which the scheduler finds its gang: its PodGang is of an epoch. Empty if not."""
    if not signs_of(root, part).made_by or not is_epoch_name(root, live.labels.get(labels.PODGANG, ""), part):
        return ()
    own = (labels.PODGANG, labels.BASE_PODGANG, labels.TEMPLATE_HASH, *placement.labels)
    paths = [*(("metadata", "labels", key) for key in own), *(("metadata", "annotations", key) for key in placement.annotations)]
    return tuple((path, Reason.TAKEN_OVER) for path in paths)


def is_epoch_name(root: ResourceId, name: str, part: Slice) -> bool:
    """Whether that is the name of a PodGang of an epoch: not of one that the engine gives a scaling group with such a name."""
    index = names.replica_of(root, root._replace(name=name))
    rest = name.removeprefix(f"{names.base_gang(root.name, index)}-") if index is not None else name
    if rest == name or _EPOCH_NAME.fullmatch(rest) is None:
        return False
    return not any(name.startswith(f"{group.id.name}-") for group in part.of(kinds.SCALING_GROUP.name))


def _updates(part: Slice) -> Iterator[str]:
    """The PodGangMaps with entries of two revisions of the template: while the other release replaces one by the other."""
    for live in part.of(kinds.PODGANG_MAP.name):
        entries = mappings(mapping(live.body.get("spec")).get("entries"))
        if len({revision for entry in entries if (revision := _revision(entry))}) > 1:
            yield f"{_called(live)} has entries of two revisions of the template, so that an update is under way"


def _waiting(root: ResourceId, part: Slice) -> Iterator[Live]:
    """The pods of epochs that wait for others: the init container has read the name of their PodGang, and reads it only once."""
    for pod in part.of(kinds.POD.name):
        spec, status = mapping(pod.body.get("spec")), mapping(pod.body.get("status"))
        if not spec.get("nodeName") or status.get("phase") in ENDED or not _has_waiter(spec.get("initContainers")):
            continue
        waiter = next((each for each in mappings(status.get("initContainerStatuses")) if each.get("name") == names.WAITER), {})
        is_over = mapping(mapping(waiter.get("state")).get("terminated")).get("exitCode") == 0
        if not is_over and is_epoch_name(root, pod.labels.get(labels.PODGANG, ""), part):
            yield pod


def _shortened(root: ResourceId, key: str, part: Slice) -> Iterator[Live]:
    """The PodGangs of epochs whose names were too long and were cut: they are in the wrong part, or no longer tell their epoch."""
    for gang in part.of(kinds.PODGANG.name):
        is_misplaced = gang.labels.get(labels.REPLICA_INDEX) not in (key, None) or not key.isdecimal()
        is_cut = _CUT_NAME.fullmatch(gang.id.name) is not None and not is_epoch_name(root, gang.id.name, part)
        if labels.EPOCH in gang.labels and (is_misplaced or is_cut):
            yield gang


def _mixed(root: ResourceId, part: Slice) -> Iterator[Live]:
    """The PodGangs with the labels of an epoch whose names are those of the engine: they would look like ones of an epoch for good."""
    groups = tuple(f"{group.id.name}-" for group in part.of(kinds.SCALING_GROUP.name))
    for gang in part.of(kinds.PODGANG.name):
        index = names.replica_of(root, gang.id)
        is_base = index is not None and gang.id.name == names.base_gang(root.name, index)
        is_named = is_base or any(gang.id.name.removeprefix(group).isdecimal() for group in groups)
        if is_named and (labels.EPOCH in gang.labels or labels.GANG_ROLE in gang.labels):
            yield gang


def _has_waiter(containers: Any) -> bool:
    return any(container.get("name") == names.WAITER for container in mappings(containers))


def _revision(entry: Mapping[str, Any]) -> str:
    return str(entry.get("podCliqueSetGenerationHash") or "")


def _called(live: Live) -> str:
    return f"{live.id.kind} {live.id.namespace}/{live.id.name}"
