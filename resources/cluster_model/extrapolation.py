"""Extrapolation: the forecast of whole sets from that of a sample, if replicas that are alike do the same in it, one after the other."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from engine.canonical import digest
from engine.forecast.cluster_model import Effects, Level, worst_first
from engine.forecast.forecast import End, Forecast, ForecastPass
from engine.ids import ResourceId
from engine.observed import EMPTY, Live
from engine.operation import Create, Creation, Operation, WriteStatus
from resources.base import kinds, names
from resources.cluster_model.likeness import ANY, Slot, slot_of, slot_of_body
from resources.cluster_model.renaming import Renaming
from resources.cluster_model.sample import Run, Sample, SampledSet

LONGEST_PAUSE: Final = timedelta(minutes=1)
"""A forecast in which nothing happens for longer is not extended: something happens at a fixed time then, whatever else there is to do."""
NOW: Final = timedelta()

EffectsOf = Callable[[ResourceId, int], Effects]
"""A set and the index of a replica in the sample -> what happens to the pods and domains of that replica."""


def extended(forecast: Forecast, sample: Sample, effects_of: EffectsOf) -> Forecast | None:
    """The forecast of the whole world from that of the sample; None if what the sample does cannot be extended with certainty.

    The result has no `objects`, and no statuses of the objects of the sampled sets.
    """
    if not forecast.is_finished or any(forecast.end_of(root) is not End.SETTLED for root in sample.sets) or _pauses(forecast):
        return None
    passes: dict[timedelta, dict[ResourceId, tuple[Operation, ...]]] = {}
    for root in dict.fromkeys(root for each in forecast.passes for root in each.operations):
        events: Sequence[_Event] | None = [_Event(each.after, each.operations[root]) for each in forecast.passes if root in each.operations]
        if (sampled := sample.sets.get(root)) is not None and events is not None:
            events = _of_whole_set(sampled, events)
        if events is None:
            return None
        for event in events:
            listed = passes.setdefault(event.at, {})
            listed[root] = (*listed.get(root, ()), *event.operations)
    effects = dict(forecast.effects)
    for root, sampled in sample.sets.items():
        if root in effects and (whole := _effects_of_whole_set(sampled, effects[root], effects_of)) is not None:
            effects[root] = whole
        elif root in effects:
            return None
    if forecast.collected:
        return None  # The garbage collector deletes with no operation: how much of the others is not seen in those of the sample.
    return replace(forecast, passes=tuple(ForecastPass(at, passes[at]) for at in sorted(passes)), effects=effects, objects=None)


def _pauses(forecast: Forecast) -> bool:
    times = [each.after for each in forecast.passes]
    return any(later - earlier > LONGEST_PAUSE for earlier, later in zip(times, times[1:], strict=False))


class _Event(Struct, frozen=True):
    """What a pass does to one set, or to one replica of it."""

    at: timedelta
    operations: tuple[Operation, ...]


class _Rhythm(Struct, frozen=True):
    """When the replicas of a run do what they do."""

    period: timedelta
    """How much later each is than the one before; 0 if all do the same at the same time."""
    in_turn: tuple[bool, ...]
    """For each event of a replica: whether it is later for the next replica."""
    rest: timedelta
    """From when on everything else is later by a period for each replica that is left out."""

    def delay(self, at: timedelta, run: Run) -> timedelta:
        """How much later than in the sample something else happens than an event in turn."""
        return len(run.left_out) * self.period if self.period and at >= self.rest else NOW


def _of_whole_set(sampled: SampledSet, events: Sequence[_Event]) -> list[_Event] | None:
    """The events of a whole set; None if the replicas of a run are not alike in what they do."""
    by_replica: dict[int | None, list[_Event]] = {}
    for event in events:
        for replica, operations in _divided(sampled.root, event.operations).items():
            by_replica.setdefault(replica, []).append(_Event(event.at, operations))
    rhythms: dict[Run, _Rhythm] = {}
    for run in sampled.runs:
        if (rhythm := _rhythm(sampled.root, [(replica, by_replica.get(replica, [])) for replica in run.repeated])) is None:
            return None
        rhythms[run] = rhythm
    whole = [*_of_sample(sampled, by_replica, rhythms)]
    for run in rhythms:
        whole.extend(_of_left_out(sampled, run, by_replica.get(run.repeated[-1], []), rhythms))
    return whole


def _divided(root: ResourceId, operations: Iterable[Operation]) -> Mapping[int | None, tuple[Operation, ...]]:
    """The operations by the replica of their object, without statuses of replicas; None: on the set, and on what its replicas share."""
    divided: dict[int | None, tuple[Operation, ...]] = {}
    for operation in operations:
        replica = names.replica_of(root, operation.id) if operation.id != root else None
        if replica is None or not isinstance(operation, WriteStatus):
            divided[replica] = (*divided.get(replica, ()), operation)
    return divided


def _rhythm(root: ResourceId, histories: Sequence[tuple[int, Sequence[_Event]]]) -> _Rhythm | None:
    """The rhythm of replicas that follow one another; None if they do not do the same, in turn or all at the same time."""
    signatures = [[_signature(Renaming(root, {replica: 0}), event.operations) for event in events] for replica, events in histories]
    created = [_created(Renaming(root, {replica: 0}), events) for replica, events in histories]
    if any(each != signatures[0] for each in signatures) or any(each != created[0] for each in created):
        return None
    times = [[event.at for event in events] for _, events in histories]
    steps = {tuple(later - earlier for earlier, later in zip(*pair, strict=True)) for pair in zip(times, times[1:], strict=False)}
    periods = {each for step in steps for each in step if each}
    if len(steps) != 1 or len(periods) > 1 or any(period < NOW for period in periods):
        return None
    step, period = steps.pop(), next(iter(periods), NOW)
    in_turn = [at for at, each in zip(times[-1], step, strict=True) if each]
    if in_turn and in_turn[-1] - in_turn[0] > 2 * period:
        return None  # Not one after the other: each begins again after others.
    return _Rhythm(period, tuple(map(bool, step)), in_turn[0] + period if in_turn else NOW)


def _signature(renaming: Renaming, operations: Iterable[Operation]) -> Counter[tuple[object, ...]]:
    """What operations do, for comparison with those on another replica."""
    return Counter(
        (each.verb, each.cause, each.id._replace(name=_stable_name(renaming, each)), tuple(sorted(change.path for change in each.changes)))
        for each in operations
    )


def _created(renaming: Renaming, events: Iterable[_Event]) -> Counter[str]:
    """What is created in all events together: the order of the pods of a clique depends on uids."""
    return Counter(_stable_body(renaming, operation) for event in events for operation in event.operations)


def _stable_body(renaming: Renaming, operation: Operation) -> str:
    """A digest of what is created, without its name; that of a gang has names of pods, which depend on uids, and is left out."""
    if not isinstance(operation, Creation) or operation.id.kind == kinds.PODGANG.name:
        return ""
    return digest(renaming.value({**operation.manifest, "metadata": {**operation.manifest["metadata"], "name": ""}}))


def _stable_name(renaming: Renaming, operation: Operation) -> str:
    """The name with the index of the first replica; of a pod without what depends on uids."""
    name = renaming.text(operation.id.name)
    return f"{name.rpartition('-')[0]}-{ANY}" if operation.id.kind == kinds.POD.name else name


def _of_sample(sampled: SampledSet, by_replica: Mapping[int | None, Sequence[_Event]], rhythms: Mapping[Run, _Rhythm]) -> Iterator[_Event]:
    """The events of the sample under the names and at the times that they have in the whole set."""
    first = {replica: run for run in sampled.runs for replica in run.repeated}
    for replica, events in by_replica.items():
        own = first.get(replica) if replica is not None else None
        renaming = sampled.from_sample if replica is None else _to_whole_set(sampled, replica, events)
        for number, event in enumerate(events):
            is_in_turn = own is not None and rhythms[own].in_turn[number]
            at = event.at + _delay(event.at, rhythms, own if is_in_turn else None)
            yield _Event(at, tuple(map(renaming.operation, event.operations)))


def _to_whole_set(sampled: SampledSet, replica: int, events: Iterable[_Event]) -> Renaming:
    """From a replica of the sample to itself in the whole set, where the names of new pods end otherwise."""
    index = sampled.indices[replica]
    plain = Renaming(sampled.root, {replica: index})
    texts = _new_pods(sampled.observed.root.uid, plain, _slots(sampled, index), events) if index != replica else {}
    return Renaming(sampled.root, {replica: index}, texts)


def _slots(sampled: SampledSet, index: int) -> dict[Slot, Live]:
    """The pods of a replica of the whole set by clique and index."""
    lives = sampled.observed.slices.get(str(index), EMPTY).objects.values()
    return {slot_of(each): each for each in lives if each.id.kind == kinds.POD.name}


def _of_left_out(sampled: SampledSet, run: Run, events: Sequence[_Event], rhythms: Mapping[Run, _Rhythm]) -> Iterator[_Event]:
    """The events of the replicas that are left out: those of the last one that behaves alike, each in its turn."""
    rhythm = rhythms[run]
    for number, index in enumerate(run.left_out, start=1):
        model = _Model(sampled, run.repeated[-1], index, events)
        for event, is_in_turn in zip(events, rhythm.in_turn, strict=True):
            at = event.at + _delay(event.at, rhythms, run if is_in_turn else None) + (number * rhythm.period if is_in_turn else NOW)
            yield _Event(at, tuple(map(model.operation, event.operations)))


def _delay(at: timedelta, rhythms: Mapping[Run, _Rhythm], own: Run | None) -> timedelta:
    """How much later than in the sample an event is, because of replicas that are left out; those of its `own` run do not count."""
    return sum((rhythm.delay(at, run) for run, rhythm in rhythms.items() if run is not own), NOW)


class _Model:
    """A replica of the sample as the model of one that is left out."""

    def __init__(self, sampled: SampledSet, replica: int, index: int, events: Iterable[_Event]) -> None:
        slices, to_sample = sampled.observed.slices, sampled.to_sample
        own = slices.get(str(sampled.indices[replica]), EMPTY).objects.values()
        others = slices.get(str(index), EMPTY).objects
        plain = Renaming(sampled.root, {replica: index})
        slots = _slots(sampled, index)
        self._lives: dict[str, Live] = {}
        """Uid of an object of the model -> the object that corresponds to it."""
        texts: dict[str, str] = {}
        for each in own:
            id = to_sample.id(each.id)
            clique, number = slot_of(each)
            slot = (plain.text(to_sample.text(clique)), number)
            other = slots.get(slot) if id.kind == kinds.POD.name else others.get(plain.id(id))
            if other is not None:
                self._lives[each.uid] = other
                texts |= {each.uid: other.uid, id.name: other.id.name}
        texts |= _new_pods(sampled.observed.root.uid, plain, slots, events)
        self._renaming = Renaming(sampled.root, {replica: index}, texts)

    def operation(self, operation: Operation) -> Operation:
        """The operation on the replica that is left out."""
        renamed = self._renaming.operation(operation)
        live = self._lives.get(operation.expect.uid)
        if live is None or not operation.expect.revision:
            return renamed
        return replace(renamed, expect=replace(renamed.expect, revision=live.revision))


def _new_pods(identity: str, renaming: Renaming, existing: Mapping[Slot, Live], events: Iterable[_Event]) -> dict[str, str]:
    """Name of each first new pod of an index -> the name of the one in the other replica, whose `existing` pods these are.

    `identity`: the uid of the set; if it has none yet, names of pods are not known.
    """
    result: dict[str, str] = {}
    known: set[Slot] = set()
    for operation in (each for event in events for each in event.operations if identity):
        if isinstance(operation, Create) and operation.id.kind == kinds.POD.name:
            clique, number = slot_of_body(operation.manifest)
            slot = renaming.text(clique), number
            if slot not in known and number.isdecimal():
                predecessor = existing[slot].uid if slot in existing else ""
                result[operation.id.name] = names.pod(slot[0], identity, int(number), predecessor)
            known.add(slot)
    return result


def _effects_of_whole_set(sampled: SampledSet, effects: Effects, effects_of: EffectsOf) -> Effects | None:
    """The effects on a whole set; None if those on the replicas of a run are not alike."""
    counts, renaming = Counter(effects.counts), sampled.from_sample
    levels = [_renamed(level, renaming) for level in effects.levels]
    for run in sampled.runs:
        replica = run.repeated[-1]
        own = effects_of(sampled.root, replica)
        for other in run.repeated:
            alike = effects_of(sampled.root, other)
            if alike.counts != own.counts or {_renamed(each, Renaming(sampled.root, {other: replica})) for each in alike.levels} != set(
                own.levels
            ):
                return None
        counts.update({what: count * len(run.left_out) for what, count in own.counts.items()})
        levels.extend(_renamed(level, Renaming(sampled.root, {replica: index})) for index in run.left_out for level in own.levels)
    return Effects(dict(counts), worst_first(levels))


def _renamed(level: Level, renaming: Renaming) -> Level:
    return replace(level, id=renaming.id(level.id))
