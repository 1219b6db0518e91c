"""Passes: look, think, choose, act. `sync` and `run` make the same ones; they differ in when the next begins and when it is the last."""

import gc
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

import anyio

from engine.blueprint import Blueprint, holes
from engine.errors import ClusterError
from engine.event import Event, RootWarning
from engine.guard import Limits
from engine.ids import ResourceId
from engine.memo import Memo
from engine.observed import Live, Observed, World
from engine.operation import Operation
from engine.plan import Plan
from engine.resource import Body
from engine.result import Result
from engine.runtime.apply import always, apply, unheard
from engine.runtime.clock import Clock
from engine.runtime.debounce import Debounce
from engine.runtime.failed_calls import FailedCalls
from engine.runtime.provider import Observation, Provider, Scope
from engine.runtime.rejections import Rejections, is_collision
from engine.tick import Plans, plan_all
from engine.verb import Verb
from engine.verdict import earliest
from engine.world import assemble, propose, with_foreign

SHORTEST_PAUSE = 0.2
"""Seconds between two passes while things move."""

MANY = 2000
"""Objects beyond which thinking takes long enough to be felt by whatever else runs on the loop, such as the renewal of the lease."""

TELLING = 5.0
"""Seconds that the telling of a pass may take; what is not told by then is not told."""

TELLERS = 4


EventBuilder = Callable[[Sequence[RootWarning], Sequence[Result]], tuple[Event, ...]]
"""What people are told of a pass: of faults that are news, and of what was done."""


def no_events(faults: Sequence[RootWarning], results: Sequence[Result]) -> tuple[Event, ...]:
    """No events."""
    return ()


@dataclass(frozen=True, slots=True)
class Engine:
    """What a pass needs: where it looks and writes, what roots mean, and how far it may go."""

    provider: Provider
    clock: Clock
    scope: Scope
    blueprints: Sequence[Blueprint]
    configuration: Any
    limits: Limits = Limits()
    concurrency: int = 24
    events_of: EventBuilder = no_events


@dataclass(slots=True, eq=False)
class Memory:
    """What one process remembers from pass to pass: it makes passes cheaper, or writes fewer; none of it is needed.

    What failed under its hands is more than that: a fact, which goes into what is seen.
    """

    memo: Memo = field(default_factory=Memo)
    world: World | None = None
    """What was seen last."""
    states: Debounce = field(default_factory=Debounce)
    rejections: Rejections = field(default_factory=Rejections)
    foreign: dict[ResourceId, set[ResourceId]] = field(default_factory=dict)
    """Root -> names that it wants and that others turned out to hold."""
    failed_calls: FailedCalls = field(default_factory=FailedCalls)
    faults: frozenset[RootWarning] = frozenset()
    """The faults that people have been told of."""


@dataclass(frozen=True, slots=True, eq=False)
class Pass:
    """What a look brought: the world, what to make of it, and what is news in it."""

    now: datetime
    took: float
    """Seconds that it took."""
    world: World
    planned: Plans
    unchanged: frozenset[ResourceId]
    """The roots of which nothing has changed since the look before."""

    @property
    def quiet(self) -> bool:
        """Whether nothing has changed at all."""
        return len(self.unchanged) == len(self.world.roots)

    @property
    def wake_at(self) -> datetime | None:
        """The first moment at which time alone will change a plan."""
        return earliest(plan.wake_at for plan in self.planned.plans if plan.wake_at and plan.wake_at > self.now)


def tune_gc() -> None:
    """Let Python's cyclic collector run rarely: it takes four fifths of the time in which big lists are parsed, for nothing."""
    gc.set_threshold(100_000, 50, 100)


async def look(engine: Engine, memory: Memory, manifests: Sequence[Body] = ()) -> Pass:
    """See what is there and planned it, as if the manifests were applied. Raises `Unreachable`, `Unauthorized` when nothing can be seen."""
    began = engine.clock.monotonic()
    sighting = await engine.provider.observe(engine.scope)
    foreign = {root: await _met_again(engine.provider, ids) for root, ids in memory.foreign.items()}
    memory.foreign = {root: {there.id for there in lives} for root, lives in foreign.items()}
    now = engine.clock.now()

    def think() -> Pass:
        return _think(engine, memory, sighting, foreign, manifests, now)

    seen = await anyio.to_thread.run_sync(think) if len(sighting.children) > MANY else think()
    return replace(seen, took=engine.clock.monotonic() - began)


async def _met_again(provider: Provider, ids: Iterable[ResourceId]) -> list[Live]:
    """Those of other people's objects that are still in the way."""
    return [there for id in sorted(ids) if (there := await provider.look(id)) is not None]


def _think(
    engine: Engine,
    memory: Memory,
    sighting: Observation,
    foreign: Mapping[ResourceId, Sequence[Live]],
    manifests: Sequence[Body],
    now: datetime,
) -> Pass:
    before = {observed.root.id: observed for observed in memory.world.roots} if memory.world else {}
    seen = assemble(
        engine.blueprints,
        sighting.roots,
        sighting.children,
        sighting.incomplete,
        memory.world,
        references=sighting.references,
        unserved=sighting.unserved,
        failed_calls=memory.failed_calls.known,
    )
    memory.world = seen
    unchanged = frozenset(each.root.id for each in seen.roots if _is_same(each, before.get(each.root.id)))
    world = propose(seen, manifests, engine.scope.references)
    for root, lives in foreign.items():
        world = with_foreign(world, root, lives)
    return Pass(now, 0.0, world, plan_all(engine.blueprints, world, now, engine.configuration, memory.memo, engine.limits), unchanged)


def _is_same(observed: Observed, before: Observed | None) -> bool:
    """Whether this root and everything of it is as it was: what has not changed is the same object."""
    return (
        before is not None
        and observed.root is before.root
        and observed.slices.keys() == before.slices.keys()
        and all(part is before.slices[key] for key, part in observed.slices.items())
    )


def choose(seen: Pass, memory: Memory, at: float) -> tuple[Plan, ...]:
    """What of the plans is carried out now: nothing that a guard objects to, no state in motion, nothing that was refused as it stands.

    A root that does not exist yet is made alone: the names of its children are not known before its uid is. Where nothing may be done
    because no root is seen, what somebody has deleted is let go all the same: it waits for nobody but us.
    """
    plans = seen.planned.plans
    if seen.planned.objections:
        roots = {observed.root.id for observed in seen.world.roots}
        plans = tuple(plan for plan in plans if plan.root not in roots)
    willing = (_first_things(plan) for plan in plans if not plan.objections)
    allowed = [_without(plan, lambda operation: memory.rejections.stand(operation, at)) for plan in willing]
    due = memory.states.due(_states(allowed), at, seen.now.strftime("%Y-%m-%dT%H:%M:%SZ"))
    steady = (
        plan if _is_at_rest(plan, seen) else _without(plan, lambda operation: operation.verb is Verb.STATUS and operation.key not in due)
        for plan in allowed
    )
    chosen = tuple(plan for plan in steady if plan.operations)
    memory.states.written(state.key for state in _states(chosen))
    return chosen


def _states(plans: Iterable[Plan]) -> list[Operation]:
    return [operation for plan in plans for operation in plan.operations if operation.verb is Verb.STATUS]


def _first_things(plan: Plan) -> Plan:
    making = tuple(operation for operation in plan.operations if operation.verb is Verb.CREATE and operation.id == plan.root)
    return replace(plan, operations=making) if making else plan


def _is_at_rest(plan: Plan, seen: Pass) -> bool:
    """Whether states are all that is left to do, nothing more is to be expected, and nothing has moved: then they are final."""
    return plan.root in seen.unchanged and not plan.pending and all(operation.verb is Verb.STATUS for operation in plan.operations)


def _without(plan: Plan, put_off: Callable[[Operation], bool]) -> Plan:
    """The plan without what is put off, and without what comes after that."""
    left_out: set[str] = set()
    for operation in plan.operations:  # Ordered: whatever comes before has been decided on.
        if not left_out.isdisjoint(operation.after) or put_off(operation):
            left_out.add(operation.key)
    return replace(plan, operations=tuple(each for each in plan.operations if each.key not in left_out)) if left_out else plan


async def act(
    engine: Engine,
    memory: Memory,
    seen: Pass,
    plans: Sequence[Plan],
    *,
    on_result: Callable[[Result], None] = unheard,
    may: Callable[[], bool] = always,
) -> list[Result]:
    """Carry out what was chosen of the plans of a look, remember what was refused or does not last, and tell about it."""
    results = await apply(plans, engine.provider, engine.clock, concurrency=engine.concurrency, on_result=on_result, may=may)
    for in_vain in memory.rejections.note(results, engine.clock.monotonic()):
        results.append(in_vain)
        on_result(in_vain)
    _meet(memory, plans, results)
    if not seen.planned.objections:
        unclear = {one.kind.name for one in engine.blueprints if holes(one, seen.world.incomplete, engine.configuration)}
        memory.failed_calls.note(seen.planned.plans, results, engine.clock.now(), unclear)
    await tell(engine.provider, engine.events_of(_news(seen, memory), results))
    return results


def _news(seen: Pass, memory: Memory) -> list[RootWarning]:
    """The faults that nobody has been told of: each is told once, and again when the root has been edited and still has it.

    Those of a manifest that is only proposed are for whoever proposes it.
    """
    roots = {observed.root.id: observed.root for observed in seen.world.roots if observed.root.uid and observed.proposal is None}
    found = frozenset(fault for plan in seen.planned.plans if plan.root in roots for fault in _faults(roots[plan.root], plan))
    news, memory.faults = sorted(found - memory.faults), found
    return news


def _faults(root: Live, plan: Plan) -> Iterator[RootWarning]:
    for problem in plan.problems:
        yield RootWarning(root.id, root.uid, root.generation, problem)
    for alarm in plan.alarms:
        yield RootWarning(root.id, root.uid, root.generation, alarm.text, alarm.reason)


def _meet(memory: Memory, plans: Sequence[Plan], results: Iterable[Result]) -> None:
    """Remember who turned out to hold a name that we want, so that the next plan knows."""
    roots = {id(operation): plan.root for plan in plans for operation in plan.operations}
    for result in results:
        if is_collision(result):
            memory.foreign.setdefault(roots[id(result.operation)], set()).add(result.operation.id)


async def tell(provider: Provider, events: Sequence[Event]) -> None:
    """Write the events, as well as can be: they are for people, and never a reason to stop."""
    limit = anyio.CapacityLimiter(TELLERS)

    async def write(event: Event) -> None:
        async with limit:
            try:
                await provider.record(event)
            except ClusterError:
                return

    with anyio.move_on_after(TELLING):
        async with anyio.create_task_group() as tellers:
            for event in events:
                tellers.start_soon(write, event)


class Backoff:
    """How long to pause between two passes: briefly while things move, ever longer while they do not.

    A patient one is told of changes: having nothing to do, it waits for one, or for time to change something.
    """

    def __init__(self, longest: float, *, patient: bool = False) -> None:
        self._longest = longest
        self._pause = SHORTEST_PAUSE
        self._patient = patient

    def pause(self, engine: Engine, memory: Memory, seen: Pass, *, moved: bool, idle: bool = False) -> float:
        """Seconds until the next pass: sooner when a state is due, or when time itself changes a plan; never so soon that we only look."""
        self._pause = SHORTEST_PAUSE if moved else min(self._longest, self._pause * 2)
        pauses = [self._longest if self._patient and idle else self._pause]
        if seen.wake_at:
            pauses.append((seen.wake_at - engine.clock.now()) / timedelta(seconds=1))
        if (due := memory.states.next_due) is not None:
            pauses.append(due - engine.clock.monotonic())
        return max(min(pauses), min(SHORTEST_PAUSE, self._longest), seen.took)
