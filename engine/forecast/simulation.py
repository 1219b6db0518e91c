"""Simulation: computes a forecast, pass by pass, with the planner and the choice of operations that `sync` and `run` use; its outcome."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final, Generic

from msgspec import Struct
from msgspec.structs import replace

from engine.answer import NOT_MADE, FailedCall
from engine.blueprint import Blueprint, C, root_of
from engine.canonical import digest
from engine.focus import concerned
from engine.forecast.cluster_model import Assumption, ClusterModel
from engine.forecast.forecast import Forecast, ForecastPass, is_left
from engine.forecast.store import SYNTHETIC, ForecastStore
from engine.guard import Limits
from engine.ids import Kind, ResourceId
from engine.intent import Intent
from engine.memo import Memo
from engine.namespaces import with_phases
from engine.observed import Live, Observed, World, live
from engine.operation import Create, Creation, Delete, Operation, Patch, Replace, body_of
from engine.ownership import with_owned
from engine.plan import Plan, changed
from engine.proposal import compose, propose
from engine.tick import Plans, executable, plan_all
from engine.world import as_listed, assemble, with_foreign
from engine.world_update import with_trials_of_new

FROM: Final = 64
"""The number of passes after which repetitions are looked for. Most forecasts end before."""
COUNTERS: Final = frozenset({"resourceVersion", "generation", "observedGeneration", "managedFields"})
"""The fields that grow with every change."""
TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT")

Change = tuple[Live | None, Live | None]
"""An object before and after a pass; None where it does not exist."""
BETWEEN_PASSES: Final = timedelta(seconds=1)
"""The simulated time between two passes."""
QUIET_PASSES: Final = 2
"""After this many passes in which nothing changes, the time moves on to when a plan changes by itself."""
LONGEST: Final = timedelta(hours=24)
"""The longest simulated time."""
MAX_WORK: Final = 250_000
"""A forecast that is not finished ends when its passes have looked at more objects than this in all, changed ones counted `CHANGE` times.

A count and not a time: the same input gives the same forecast everywhere.
"""
CHANGE: Final = 40
"""An object that has changed costs as much as so many that have not: what depends on it is planned anew."""
MAX_PASSES: Final = 5_000
"""A forecast that is not finished ends after so many passes, however few objects there are."""


class Repetition:
    """Compares the objects after each pass with those after an earlier one, but for times, revisions, and uids and names made from them.

    The earlier pass is the last whose number is a power of two, so that a repetition of any length is found.
    """

    def __init__(self) -> None:
        self._passes = 0
        self._difference: Counter[str] = Counter()
        """Digest of an object -> how many more such objects there are than after the earlier pass; without zeros."""
        self._acting: dict[ResourceId, None] = {}
        self._names: dict[str, str] = {}
        """Name of an object whose name ends at random -> what stands for it."""
        self.roots: frozenset[ResourceId] = frozenset()
        """The roots with operations that repeat; empty if nothing does."""

    def is_found(self, changes: Iterable[Change], acting: Iterable[ResourceId]) -> bool:
        """Whether the objects are the same as after the earlier pass, and operations have been executed since.

        `changes`: what the pass has changed. `acting`: the roots with operations other than statuses in it.
        """
        self._passes += 1
        if self._passes > FROM:
            self._acting.update(dict.fromkeys(acting))
            counted = [(live, step) for change in changes for live, step in zip(change, (-1, 1), strict=True) if live is not None]
            self._names.update(name for live, _ in counted for name in _random_name(live))
            for live, step in counted:
                self._count(live, step)
            if self._acting and not self._difference:
                self.roots = frozenset(self._acting)
                return True
        if self._passes >= FROM and self._passes.bit_count() == 1:
            self._difference, self._acting = Counter(), {}
        return False

    def _count(self, live: Live, step: int) -> None:
        key = self._digest(live)
        self._difference[key] += step
        if not self._difference[key]:
            del self._difference[key]

    def _digest(self, live: Live) -> str:
        """A digest of what makes two objects the same."""
        return digest(self._stable({**live.body, "kind": [live.id.group, live.id.kind]}))

    def _stable(self, value: Any) -> Any:
        if isinstance(value, str):
            if value.startswith(SYNTHETIC):
                return SYNTHETIC
            return "" if TIME.match(value) else self._names.get(value, value)
        if isinstance(value, Mapping):
            return {key: self._stable(each) for key, each in value.items() if key not in COUNTERS}
        if isinstance(value, list | tuple):
            return [self._stable(each) for each in value]
        return value


def _random_name(live: Live) -> Iterator[tuple[str, str]]:
    """The name of an object, if it ends at random, and what stands for it."""
    if prefix := live.body["metadata"].get("generateName"):
        yield live.id.name, f"{prefix}*"


def forecast(
    blueprints: Sequence[Blueprint[C]],
    world: World,
    intent: Intent,
    now: datetime,
    configuration: C,
    model: ClusterModel,
    *,
    limits: Limits = Limits(),  # noqa: B008
    max_work: float = MAX_WORK,
    max_passes: float = MAX_PASSES,
) -> Forecast:
    """The forecast for a world with this intent; `world` is the one that the first pass was planned for."""
    simulation = _Simulation(blueprints, world, intent, now, configuration, model, limits)
    return simulation.forecast(max_work, max_passes)


class _Roles(Struct, frozen=True, eq=False):
    """The lists of an observation that have an object."""

    live: Live
    is_root: bool
    is_child: bool
    is_reference: bool


class _Simulation(Generic[C]):
    """A cluster in memory, in which the engine makes its passes."""

    def __init__(
        self,
        blueprints: Sequence[Blueprint[C]],
        world: World,
        intent: Intent,
        now: datetime,
        configuration: C,
        model: ClusterModel,
        limits: Limits,
    ) -> None:
        self.blueprints, self.intent, self.configuration = blueprints, intent, configuration
        self.model, self.limits, self.first = model, limits, world
        self.memo, self.previous, self.last = Memo(intent.memo), as_listed(world), world
        self.root_keys = _keys(blueprint.kind for blueprint in blueprints)
        self.reference_keys = _keys(kind for blueprint in blueprints for kind in blueprint.references(configuration))
        self.children = frozenset(live.id for live in _children(world))
        """The children as they were listed, some of which labels do not show as children."""
        self.looked_up = {observed.root.id: tuple(observed.looked_up) for observed in world.roots if observed.looked_up}
        """Root -> the ids of the objects that were looked up for it."""
        self.foreign = {observed.root.id: tuple(observed.foreign) for observed in world.roots if observed.foreign}
        """Root -> the ids of its foreign objects."""
        self.trials = {observed.root.id: replace(observed.trials, are_made=False) for observed in world.roots if observed.trials.verdicts}
        """What is known of the trials for roots: the server stays with what it has said, and accepts everything else."""
        self.tried: dict[ResourceId, tuple[FailedCall, ...]] = {}
        """The roots with something deferred for which a pass has been made: none of their calls fails."""
        self.began = now
        self.roles: dict[ResourceId, _Roles] = {}
        self.store = ForecastStore(existing(world), now, model.is_graceful)
        model.begin(self.store)

    def forecast(self, max_work: float, max_passes: float) -> Forecast:
        """Make passes until nothing changes any more, until everything repeats, or until that is too much work."""
        passes: list[ForecastPass] = []
        assumptions: set[Assumption] = set()
        work, count, is_finished, repetition = 0, 0, False, Repetition()
        planned, quiet = Plans(()), 0
        while not is_finished and work <= max_work and count < max_passes:
            planned, chosen = self._plan()
            made = self._execute(chosen)
            if made:
                passes.append(ForecastPass(self.store.now - self.began, made))
            self.tried.update((plan.root, ()) for plan in planned.plans if plan.deferred and not (plan.objections or plan.error))
            answers = self.model.answer(self.store)
            assumptions |= answers
            quiet = 0 if chosen or answers else quiet + 1
            self.store.now += BETWEEN_PASSES
            if quiet >= QUIET_PASSES:
                is_finished, quiet = not self._move_on(planned), 0
            differences = self.store.take_differences()
            work, count = work + len(self.store.lives) + CHANGE * len(differences), count + 1
            is_finished |= repetition.is_found(differences, (plan.root for plan in chosen if changed(plan)))
        plans = {plan.root: plan for plan in planned.plans}
        concerned_roots = concerned(self.first, self.intent.focus).union(*(each.operations for each in passes))
        effects = {root: effects for root, effects in self.model.effects().items() if root in concerned_roots}
        is_finished &= self.model.is_known(self.store) or not any(map(is_left, plans.values()))
        assumed, ended = frozenset(assumptions), self.store.lives
        end = Forecast(self.began, tuple(passes), is_finished, plans, effects, assumed, ended, repetition.roots, self.last)
        return replace(end, objections=planned.objections, collected=self._collected(end))

    def _collected(self, end: Forecast) -> int:
        """How many of the first objects are gone that nothing of ours has deleted; not those that were being deleted already."""
        deleted = {operation.id for operation in end.operations() if isinstance(operation, Delete | Replace)}
        return sum(
            live.deleting_since is None and live.id not in self.store.lives and live.id not in deleted
            for live in existing(self.first)
            if live.id in self.children
        )

    def _plan(self) -> tuple[Plans, list[Plan]]:
        """A pass: all plans, and those with operations to execute now."""
        world = self.last = self._world()
        intent = self.intent
        planned = plan_all(
            self.blueprints,
            world,
            self.store.now,
            self.configuration,
            self.memo,
            self.limits,
            focus=intent.focus,
            removals=intent.removals,
            record=intent.record,
        )
        return planned, [plan for plan in executable(world, planned) if plan.operations]

    def _execute(self, chosen: Iterable[Plan]) -> dict[ResourceId, tuple[Operation, ...]]:
        """Make the calls of these plans. Returns those that succeed, by root: of roots that need one name the first gets it.

        What would have the object as its owner that could not be created is not created either.
        """
        made: dict[ResourceId, tuple[Operation, ...]] = {}
        for plan in chosen:
            taken: set[ResourceId] = set()
            ownerless: set[ResourceId] = set()
            for operation in plan.operations:
                existing = self.store.find(operation.id)
                if isinstance(operation, Create) and existing is not None and existing.controller is not None:
                    taken.add(operation.id)
                    continue
                if (
                    taken
                    and isinstance(operation, Create)
                    and not (taken | ownerless).isdisjoint(each.owner.id for each in operation.owners)
                ):
                    ownerless.add(operation.id)
                    continue
                self.model.sent(plan.root, operation, existing)
                self.store.execute(operation)
            if taken:
                self.foreign[plan.root] = (*self.foreign.get(plan.root, ()), *sorted(taken))
            made[plan.root] = tuple(each for each in plan.operations if each.id not in taken | ownerless) if taken else plan.operations
        return made

    def _move_on(self, planned: Plans) -> bool:
        """Let the time pass until a plan changes by itself. False if none does."""
        wake_at = min((plan.wake_at for plan in planned.plans if plan.wake_at and plan.wake_at >= self.store.now), default=None)
        if wake_at is None or wake_at - self.began > LONGEST:
            return False
        self.store.now = wake_at
        return True

    def _world(self) -> World:
        """What a pass observes, assembled as `engine.runtime.passes` does."""
        roles = [(live, self._roles_of(live)) for live in self.store.lives.values()]
        self.previous = assemble(
            self.blueprints,
            [live for live, role in roles if role.is_root],
            [live for live, role in roles if role.is_child],
            self.first.incomplete,
            self.previous,
            references=[live for live, role in roles if role.is_reference],
            unserved=self.first.unserved,
            failed_calls=self.tried,
            trials_of=lambda root: self.trials.get(root, NOT_MADE),
        )
        proposed = propose(self.previous, self.intent.manifests, replicas=self.intent.replicas)
        if self.looked_up:
            proposed = replace(proposed, roots=tuple(self._with_lookups(observed) for observed in proposed.roots))
        composed = compose(proposed, self.blueprints, self.configuration, self.memo)
        if self.trials:
            composed = with_trials_of_new(composed, lambda root: self.trials.get(root, NOT_MADE))
        world = with_foreign(composed, self.blueprints, dict(self._foreign()), self.memo)
        record = self.store.find(self.intent.record.id) if self.intent.record is not None else None
        return with_phases(replace(world, record=record) if record is not None else world, self.first.closed_namespaces, self.memo)

    def _roles_of(self, live: Live) -> _Roles:
        """The lists that have an object; computed once for each of its versions."""
        known = self.roles.get(live.id)
        if known is None or known.live is not live:
            keys = live.id.keys()
            is_root = not self.root_keys.isdisjoint(keys)
            is_child = not is_root and (live.id in self.children or root_of(self.blueprints, live) is not None)
            known = self.roles[live.id] = _Roles(live, is_root, is_child, not self.reference_keys.isdisjoint(keys))
        return known

    def _foreign(self) -> Iterator[tuple[ResourceId, list[Live]]]:
        """The foreign objects of each root that still exist. Roots are not among them: of those `compose` knows whose they are."""
        for root, ids in self.foreign.items():
            yield root, [live for id in ids if (live := self.store.find(id)) is not None and not self._roles_of(live).is_root]

    def _with_lookups(self, observed: Observed) -> Observed:
        """The observation with the objects that were looked up for the first pass, as they are now."""
        ids = self.looked_up.get(observed.root.id)
        if not ids:
            return observed
        known = {id: self.store.find(id) for id in ids}
        facts = (observed, tuple(known), *known.values())
        return self.memo.scope(observed.root.id).recall("lookups", facts, lambda: replace(observed, looked_up=known))


def _keys(kinds: Iterable[Kind]) -> frozenset[str]:
    return frozenset(kind.key for kind in kinds)


def existing(world: World) -> Iterator[Live]:
    """Every object of the world that exists, each once: roots that are only proposed are left out."""
    lives = {live.id: live for live in world.references.objects.values()}
    for observed in world.roots:
        lives.update((live.id, live) for live in observed.looked_up.values() if live is not None)
    for observed in world.roots:
        lives.update((live.id, live) for live in observed.lives())
    lives.update((live.id, live) for live in world.orphans)
    if world.record is not None:
        lives[world.record.id] = world.record
    return (live for live in lives.values() if live.uid)


def _children(world: World) -> Iterator[Live]:
    """The objects of the roots, the foreign ones and the orphans."""
    for observed in world.roots:
        yield from (live for live in observed.lives() if live is not observed.root)
    yield from world.orphans


Write = Creation | Patch
"""Operations that set fields of an object's main body."""


def outcome(world: World, concerned: World, forecast: Forecast) -> tuple[Live, ...]:
    """The objects that exist at the end: those of the forecast, which was made for the `concerned` part of the world, and all others.

    They have the field ownership that a server would record, so that what a later manifest leaves out is removed.
    """
    before = {each.id for each in existing(concerned)}
    others = {each.id: each for each in existing(world) if each.id not in before}
    writes: dict[ResourceId, list[Write]] = {}
    for operation in forecast.operations():
        if isinstance(operation, Write):
            writes.setdefault(operation.id, []).append(operation)
    final = {each.id: _written(each, writes) for each in forecast.final}
    return tuple((others | final).values())


def _written(existing: Live, writes: Mapping[ResourceId, list[Write]]) -> Live:
    """The object with the ownership of what the forecast has written."""
    if existing.id not in writes:
        return existing
    body = existing.body
    for operation in writes[existing.id]:
        if isinstance(operation, Creation):
            body = {**body, "metadata": {key: value for key, value in body["metadata"].items() if key != "managedFields"}}
        body = with_owned(body, body_of(operation))
    return live(body)
