"""Draft: the approval that says yes to a plan and everything in its forecast."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Generic, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from engine.approval.approval import Allowance, Approval, ObjectKey, Recognition, RootState, content_digest, root_state
from engine.blueprint import Blueprint, C
from engine.focus import concerned
from engine.forecast.forecast import Forecast
from engine.ids import ResourceId
from engine.intent import Intent
from engine.memo import Memo, blueprint_memo
from engine.observed import Live, Observed, World, slice_of
from engine.operation import Create, Creation, Delete, Operation, Patch, Release, Replace, Scale, WriteStatus
from engine.plan import Plan
from engine.resource import Body, Drop, Hold, Scaled, Want
from engine.scalers import scalers
from engine.tick import Plans
from engine.verb import Verb

Use = tuple[Verb, ObjectKey]


FINEST = 8
"""In a group of at most so many objects the loss of each single one is reckoned with; in a larger one the loss of each eighth of it."""
MOST_LOOKED_AT = 1_600
"""Replaceable objects that are looked at for such losses, each of them once for each loss: of large sets only halves are lost."""


class PlanInputs(Struct, Generic[C], frozen=True, eq=False):
    """What plans are computed with, besides the world."""

    blueprints: Sequence[Blueprint[C]]
    configuration: C
    recognition: Recognition


def approval_of(world: World, planned: Plans, forecast: Forecast | None, intent: Intent, now: datetime, rules: PlanInputs[C]) -> Approval:
    """The approval of these plans, of everything that the forecast has, and of creating again whatever is lost meanwhile.

    `world` and `planned` are those of the first pass; without a forecast nothing follows it.
    """
    names = Names(rules.recognition, world)
    first = [operation for plan in planned.plans for operation in plan.operations]
    following = list(forecast.operations()) if forecast else []
    for operation in (*first, *following):
        names.learn(operation)
    return Approval(
        roots=tuple(_root_states(world, planned.plans)),
        allow=tuple(allowances(first, following, names.subject)),
        desired=_desired((world, forecast.end) if forecast else (world,), intent, (*first, *following), names, now, rules),
        manifests=intent.manifests,
        removals=intent.removals,
        pods={each.id: subject for each in (*first, *following) if (subject := names.subject(each.id)).index},
        scalers=tuple(scalers(rules.blueprints, world.roots, intent.replicas)),
    )


class Names:
    """The subject of every object of a world, and of those that operations create."""

    def __init__(self, recognition: Recognition, world: World) -> None:
        self.recognition = recognition
        self._labels: dict[ResourceId, Mapping[str, Any]] = {}
        for observed in world.roots:
            self._labels.update((live.id, live.labels) for live in observed.lives())
        self._labels.update((live.id, live.labels) for live in world.orphans)

    def learn(self, operation: Operation) -> None:
        """Take note of the labels of an object that the operation creates."""
        if isinstance(operation, Creation):
            self._labels.setdefault(operation.id, operation.manifest["metadata"].get("labels") or {})

    def subject(self, id: ResourceId) -> ObjectKey:
        """The subject that the object is."""
        return self.recognition.subject(id, self._labels.get(id, {}))


def allowances(
    first: Sequence[Operation], following: Iterable[Operation], subject_of: Callable[[ResourceId], ObjectKey]
) -> Iterator[Allowance]:
    """Each operation of the first pass and of the forecast once, with its number, in a fixed order.

    The forecast begins with the operations of the first pass that are executed at once. Where it has fewer, those of the first pass count.
    """
    planned, forecast = _uses(first, subject_of), _uses(following, subject_of)
    known = {(operation.verb, subject_of(operation.id)): operation.expect for operation in reversed(first)}
    for use in sorted(planned.keys() | forecast.keys()):
        verb, subject = use
        expect = None if subject.index else known.get(use)
        uid, revision = (expect.uid, expect.revision) if expect else ("", "")
        yield Allowance(verb, subject, uid, revision, max(planned[use], forecast[use]))


def _uses(operations: Iterable[Operation], subject_of: Callable[[ResourceId], ObjectKey]) -> Counter[Use]:
    return Counter((each.verb, subject_of(each.id)) for each in operations if not isinstance(each, WriteStatus))


def _root_states(world: World, plans: Iterable[Plan]) -> Iterator[RootState]:
    """The state of each root that has a plan of its own. What another root consists of follows from that one."""
    roots = {observed.root.id: observed.root for observed in world.roots}
    for plan in plans:
        if plan.parent is None:
            yield root_state(roots[plan.root]) if plan.root in roots else RootState(plan.root)


def content_of(operation: Operation) -> Body | None:
    """The manifest that the operation makes its object match; of a scaling its patch. None if it does not write the object itself."""
    match operation:
        case Create() | Replace():
            return operation.manifest
        case Patch():
            return operation.target or {}
        case Scale():
            return operation.patch
        case WriteStatus() | Release() | Delete():
            return None


def _desired(
    worlds: Iterable[World], intent: Intent, operations: Iterable[Operation], names: Names, now: datetime, rules: PlanInputs[C]
) -> dict[str, frozenset[str]]:
    """How objects may look: as operations make them, and as they are desired before the first pass and after the last one.

    Of replaceable objects that is also how they would be created if some of them were lost: with which template a pod is created anew
    may depend on how many others there are.
    """
    recognition = rules.recognition
    digests: dict[str, set[str]] = {}
    for operation in operations:
        if (content := content_of(operation)) is not None:
            digests.setdefault(names.subject(operation.id).text, set()).add(content_digest(recognition, content))
    for world in (each for observed in worlds for each in (observed, *_with_losses(observed, recognition))):
        for resource in _resources(world, intent, now, rules):
            body: Body = {"spec": {"replicas": resource.replicas}} if isinstance(resource, Scaled) else resource.body
            subject = recognition.subject(resource.id, (body.get("metadata") or {}).get("labels") or {})
            digests.setdefault(subject.text, set()).add(content_digest(recognition, body))
    return {key: frozenset(values) for key, values in sorted(digests.items())}


def _resources(world: World, intent: Intent, now: datetime, rules: PlanInputs[C]) -> Iterator[Want | Scaled | Hold]:
    """The resources of the roots in focus that are wanted, or would be if nothing kept them from being created."""
    included, memo = concerned(world, intent.focus), Memo(intent.memo)
    by_kind = {blueprint.kind.name: blueprint for blueprint in rules.blueprints}
    for observed in (each for each in world.roots if each.root.id in included):
        desired = by_kind[observed.root.id.kind].desire(observed, now, rules.configuration, blueprint_memo(memo, observed.root.id))
        if not desired.problems:
            yield from (resource for resource in desired.graph.resources.values() if not isinstance(resource, Drop))


class Loss(NamedTuple):
    """The loss of some objects of each group: those whose position, divided by `divisor`, leaves this remainder."""

    divisor: int
    remainder: int


def _with_losses(world: World, recognition: Recognition) -> Iterator[World]:
    """The world after each loss that is reckoned with: of all objects of each group, of one half, of the other, and of each single one."""
    sizes = Counter(
        recognition.subject(live.id, live.labels).name
        for observed in world.roots
        for live in observed.lives()
        if recognition.is_replaceable(live)
    )
    if not sizes:
        return
    finest = min(max(sizes.values()), FINEST, max(2, MOST_LOOKED_AT // sizes.total()))
    for divisor in sorted({1, 2, finest}):
        for remainder in range(divisor):
            loss = Loss(divisor, remainder)
            yield replace(world, roots=tuple(_root_after(observed, loss, recognition) for observed in world.roots))


def _root_after(observed: Observed, loss: Loss, recognition: Recognition) -> Observed:
    slices = {key: slice_of(_remaining(part.objects.values(), loss, recognition)) for key, part in observed.slices.items()}
    return replace(observed, slices=slices)


def _remaining(lives: Iterable[Live], loss: Loss, recognition: Recognition) -> Iterator[Live]:
    """Everything that is not replaceable, and of what is, every object that is not lost."""
    positions = Counter[str]()
    for live in lives:
        if recognition.is_replaceable(live):
            group = recognition.subject(live.id, live.labels).name
            positions[group] += 1
            if positions[group] % loss.divisor == loss.remainder:
                continue
        yield live
