"""Forecast: what happens after the first pass, until everything is settled or nothing moves."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Final

from engine.blueprint import Blueprint, root_of
from engine.choice import executable
from engine.composition import compose
from engine.forecast.cluster_model import Assumption, ClusterModel
from engine.forecast.store import ForecastStore
from engine.guard import Limits
from engine.ids import ResourceId
from engine.memo import Memo
from engine.observed import Live, World
from engine.operation import Operation
from engine.plan import Plan
from engine.proposal import propose
from engine.resource import Body
from engine.tick import Plans, plan_all
from engine.verb import Verb
from engine.world import assemble, with_foreign

SECOND: Final = timedelta(seconds=1)
"""The simulated time between two passes."""

QUIET_PASSES: Final = 2
"""After this many passes in which nothing changes, time is moved on to when a plan changes by itself."""

MAX_PASSES: Final = 1000
"""The default of how many passes are computed."""

LONGEST: Final = timedelta(hours=24)
"""How much simulated time a forecast covers."""


class End(StrEnum):
    """How a forecast ends."""

    SETTLED = "settled"
    """Nothing is left to do or to wait for."""
    STUCK = "stuck"
    """Something is left that nothing will ever change."""
    UNFINISHED = "unfinished"
    """There is more to come than was computed."""


@dataclass(frozen=True, slots=True, eq=False)
class ForecastPass:
    """One pass: when it is made, and the operations that are executed in it, by root."""

    at: datetime
    operations: Mapping[ResourceId, tuple[Operation, ...]]
    """Only roots with operations."""


@dataclass(frozen=True, slots=True, eq=False)
class Forecast:
    """All passes from the first one to the end."""

    passes: tuple[ForecastPass, ...]
    end: End
    assumptions: frozenset[Assumption]
    last: Plans
    """The plans at the end: what is still deferred or pending."""

    def operations(self) -> Iterator[Operation]:
        """Every operation, in order."""
        for each in self.passes:
            for operations in each.operations.values():
                yield from operations


def forecast(
    blueprints: Sequence[Blueprint],
    world: World,
    manifests: Sequence[Body],
    now: datetime,
    configuration: Any,
    model: ClusterModel,
    *,
    graceful: frozenset[str] = frozenset({"Pod"}),
    limits: Limits = Limits(),  # noqa: B008
    max_passes: int = MAX_PASSES,
) -> Forecast:
    """The forecast for a world as it was observed (with or without the proposals), as if the manifests were applied."""
    return _Simulation(blueprints, world, manifests, now, configuration, model, graceful, limits).run(max_passes)


class _Simulation:
    def __init__(
        self,
        blueprints: Sequence[Blueprint],
        world: World,
        manifests: Sequence[Body],
        now: datetime,
        configuration: Any,
        model: ClusterModel,
        graceful: frozenset[str],
        limits: Limits,
    ) -> None:
        self.blueprints, self.manifests, self.configuration = blueprints, manifests, configuration
        self.model, self.limits = model, limits
        self.unserved, self.incomplete = world.unserved, world.incomplete
        self.looked_up = {observed.root.id: tuple(observed.looked_up) for observed in world.roots if observed.looked_up}
        self.known_foreign = {
            observed.root.id: tuple(observed.foreign) for observed in world.roots if observed.foreign and observed.root.uid
        }
        self.root_kinds = frozenset(blueprint.kind.key for blueprint in blueprints)
        self.reference_kinds = frozenset(
            kind.key for blueprint in blueprints for kind in (*blueprint.references(configuration),)
        )
        self.listed_children = frozenset(live.id for live in _children(world))
        self.store = ForecastStore(_lives(world), now, graceful)
        self.store.take_changes()
        self.memo = Memo()
        self.previous: World | None = None

    def run(self, max_passes: int) -> Forecast:
        passes: list[ForecastPass] = []
        assumptions: set[Assumption] = set()
        quiet, until = 0, self.store.now + LONGEST
        planned = Plans(())
        end = End.UNFINISHED
        for _ in range(max_passes):
            world = self._world()
            planned = plan_all(self.blueprints, world, self.store.now, self.configuration, self.memo, self.limits)
            chosen = [plan for plan in executable(world, planned) if plan.operations]
            for plan in chosen:
                for operation in plan.operations:
                    self.store.execute(operation)
            if chosen:
                passes.append(ForecastPass(self.store.now, {plan.root: plan.operations for plan in chosen}))
            answered = self.model.answer(self.store)
            assumptions |= answered
            quiet = 0 if chosen or answered else quiet + 1
            self.store.now += SECOND
            if quiet >= QUIET_PASSES:
                wake_at = min((plan.wake_at for plan in planned.plans if plan.wake_at and plan.wake_at >= self.store.now), default=None)
                if wake_at is None or wake_at > until:
                    end = _end(planned)
                    break
                self.store.now, quiet = wake_at, 0
        return Forecast(tuple(passes), end, frozenset(assumptions), planned)

    def _world(self) -> World:
        self.store.take_changes if False else None
        lives = self.store.lives.values()
        roots = [live for live in lives if not self.root_kinds.isdisjoint(live.id.keys())]
        references = [live for live in lives if not self.reference_kinds.isdisjoint(live.id.keys())]
        children = [live for live in lives if self._is_child(live)]
        self.previous = assemble(
            self.blueprints,
            roots,
            children,
            self.incomplete,
            self.previous,
            references=references,
            unserved=self.unserved,
        )
        foreign = {root: [live for id in ids if (live := self.store.find(id)) is not None] for root, ids in self.known_foreign.items()}
        world = with_foreign(propose(self.previous, self.manifests), self.blueprints, foreign)
        if self.looked_up:
            world = replace(world, roots=tuple(self._with_lookups(observed) for observed in world.roots))
        return compose(world, self.blueprints, self.configuration, self.memo)

    def _with_lookups(self, observed: Any) -> Any:
        ids = self.looked_up.get(observed.root.id)
        return replace(observed, looked_up={id: self.store.find(id) for id in ids}) if ids else observed

    def _is_child(self, live: Live) -> bool:
        return live.id in self.listed_children or (self.root_kinds.isdisjoint(live.id.keys()) and root_of(self.blueprints, live) is not None)


def _lives(world: World) -> Iterator[Live]:
    seen: dict[ResourceId, Live] = {}
    for live in world.references.objects.values():
        seen[live.id] = live
    for observed in world.roots:
        for live in observed.lives():
            seen[live.id] = live
        for looked in observed.looked_up.values():
            if looked is not None:
                seen.setdefault(looked.id, looked)
    for live in world.orphans:
        seen[live.id] = live
    yield from (live for live in seen.values() if live.uid)


def _children(world: World) -> Iterator[Live]:
    for observed in world.roots:
        for slice in observed.slices.values():
            yield from slice.objects.values()
        yield from observed.foreign.values()
    yield from world.orphans


def _end(planned: Plans) -> End:
    is_left = any(plan.pending or plan.deferred or plan.operations for plan in planned.plans)
    return End.STUCK if is_left else End.SETTLED
