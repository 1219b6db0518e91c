"""Passes: observe and plan. `execution` carries them out; `sync` and `run` differ only in when the next begins."""

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Generic, TypeVar

import anyio
import anyio.to_thread
from msgspec import Struct, field
from msgspec.structs import replace

from engine.blueprint import Blueprint, C, C_co, relevant_incomplete
from engine.event import EventBuilder, Publication, ignore_publication, no_events
from engine.guard import Limits
from engine.ids import ResourceId
from engine.intent import NOTHING, Intent
from engine.memo import Memo, Preempted, Steps, differences
from engine.namespaces import namespaces_with_creates, with_phases
from engine.observed import NOTHING_UNLISTED, Observed, Unlisted, World, by_root
from engine.plan import next_change, noteworthy
from engine.proposal import compose, propose
from engine.reason import earliest
from engine.resource import Body
from engine.runtime.clock import Clock, calling_when
from engine.runtime.foreign import Candidate, disappeared, unlisted
from engine.runtime.garbage_collection import tune_gc, without_collections
from engine.runtime.logs import Log
from engine.runtime.memory import Memory, sizes_of_planned
from engine.runtime.provider import TRANSIENT, Observation, Provider, Scope
from engine.runtime.verdicts import Verdicts
from engine.tick import Plans, last_plan, plan_all
from engine.world import assemble, with_foreign
from engine.world_update import updated, with_trials, with_trials_of_new

T = TypeVar("T")

MANY_OBJECTS = 2000
"""With more objects than these to plan anew plans are computed in a thread: it takes long enough to delay the renewal of the lease."""
ATTEMPT = 1000
"""Results that a pass over a large root computes at least before it is interrupted: that takes a tenth of a second."""
ROUNDS = 2
"""How often a preview asks for verdicts: what has to be accepted before it is created may be created with objects to be tried."""


def unlimited_memory() -> int | None:
    """The default for `Engine.memory_for_objects`."""
    return None


class Engine(Struct, Generic[C], frozen=True):
    """The fixed arguments of every pass."""

    provider: Provider
    clock: Clock
    scope: Scope
    blueprints: Sequence[Blueprint[C]]
    configuration: C
    limits: Limits = Limits()
    concurrency: int | None = None
    """How many operations are sent at the same time at most; None: as many as the API server answers in good time."""
    events_of: EventBuilder = no_events
    """The Kubernetes Events to publish after a pass, for one root at a time."""
    log: Log | None = None
    """Where it is reported that Events were dropped; None: it is not reported."""
    on_events: Callable[[Publication], None] = ignore_publication
    """Told after every pass how many Events were written and dropped."""
    reads_namespaces: bool = False
    """Whether the namespaces in which objects are to be created are read first; otherwise a refused create says what they lack."""
    looks_up_new: bool = True
    """Whether the names that a root without any object needs are looked up first; otherwise a refused create says which are taken."""
    tries: bool = True
    """Whether the API server is asked, before running pods are deleted by an update, if it accepts a pod of the new template."""
    tries_new: bool = False
    """Whether it is also asked about pods that replace none; otherwise a refused create says that it does not accept them."""
    memory_for_objects: Callable[[], int | None] = unlimited_memory
    """How many bytes the process has now for the objects that it works on; None: it is not known, and not limited."""
    planning: anyio.CapacityLimiter | None = None
    """How many plans are computed in threads at a time, in the whole process; None: it makes one pass at a time."""


class Pass(Struct, Generic[C_co], frozen=True, eq=False):
    """The first half of a pass: the observed world and the plans for it."""

    now: datetime
    took: float
    """Seconds that observing and planning took, without the trials in between."""
    world: World
    planned: Plans
    changed: frozenset[ResourceId]
    """The roots for which something has changed since the previous pass."""
    configuration: C_co
    """What was planned with."""
    memo: Memo = field(default_factory=Memo)
    """What was computed, for a forecast that begins with this pass. It belongs to the maker of the passes."""
    observing: float = 0.0
    """Seconds of `took` in which nothing was planned yet."""

    @property
    def planning(self) -> float:
        """Seconds that planning took."""
        return self.took - self.observing

    @property
    def quiet(self) -> bool:
        """Whether nothing at all has changed since the previous pass."""
        return not self.changed

    @property
    def wake_at(self) -> datetime | None:
        """The first time at which a plan changes although no object does; None if there is none."""
        moments = map(next_change, noteworthy(self.planned.plans))
        return earliest(moment for moment in moments if moment and moment > self.now)


async def observe_and_plan(
    engine: Engine[C], memory: Memory, intent: Intent = NOTHING, urgent: Callable[[], Awaitable[None]] | None = None
) -> Pass[C]:
    """List what is in scope and plan for it with this intent. An object that no list shows is read by its name before it counts as absent.

    When `urgent` returns while a large root is planned (`Portions`), the pass begins again without it; its planning goes on in a later one.
    Raises `Unauthorized`, `Unreachable` when nothing can be listed, and transient errors of reading a foreign object.
    """
    began, result = engine.clock.monotonic(), None
    while result is None:
        lost = engine.clock.monotonic() - began
        try:
            result = await _observe_and_plan(engine, memory, intent, urgent)
        except Preempted:
            memory.portions.interrupt()
    memory.portions.end()
    memory.completed = memory.world
    return replace(result, took=result.took + lost)


async def _observe_and_plan(
    engine: Engine[C], memory: Memory, intent: Intent, urgent: Callable[[], Awaitable[None]] | None = None
) -> Pass[C]:
    """One attempt of `observe_and_plan`. Raises `Preempted`, too."""
    previous = memory.completed
    began, steps = engine.clock.monotonic(), memory.steps
    with steps.waiting():
        observation = await engine.provider.observe(engine.scope)
        await memory.foreign.refresh(engine.provider)
        memory.record = await engine.provider.get(intent.record.id) if intent.record is not None else None
    if (changes := observation.changes_since(memory.observed)) is not None:
        memory.refusals.note_changes(changes.lives, engine.clock.monotonic())
    memory.lookups.want(engine.blueprints, observation, intent.manifests, engine.configuration, memory.memo)
    with steps.waiting():
        await memory.lookups.refresh(engine.provider, engine.clock.monotonic())
    if engine.log is not None:
        for id, error in memory.lookups.new_refusals().items():
            engine.log.warning("not read", object=id, error=error)
    now, observed_at = engine.clock.now(), engine.clock.monotonic()

    async def planned(*, again: bool = False) -> Pass[C]:
        world = _updated(engine, memory, observation, intent)
        if world is None:
            world = await in_thread(partial(_assembled, engine, memory, observation, intent), len(observation.children))
        sizes = sizes_of_planned(memory, engine.blueprints, engine.configuration, world, intent, now)
        if not again:
            memory.portions.begin(sizes or {}, observed_at)
            if previous is None:
                memory.not_looked_up = frozenset(memory.portions.waiting)
        waiting = memory.portions.waiting
        count = len(observation.children) if sizes is None else sum(size for root, size in sizes.items() if root not in waiting)
        plan = partial(_plan, engine, memory, observation, world, intent, now, previous)
        makes_much = count > MANY_OBJECTS and (previous is None or not memory.not_looked_up <= waiting)
        compute = partial(_first_plan, plan) if makes_much else plan
        if again:
            return await in_thread(compute, count)
        held = memory.portions.held
        memory.portions.awaited = (memory.portions.awaited | _edited(previous, world, held)) & held
        if urgent is None or not memory.portions.may_be_interrupted:
            return await in_thread(compute, count)
        memory.steps.is_preempted = bool(memory.portions.awaited)
        return await interrupted_by(urgent, memory.steps, partial(in_thread, partial(begun, memory.steps, compute), count))

    async def in_thread(compute: Callable[[], T], objects: int) -> T:
        """The result; computed in a thread if it is about many objects."""
        return await anyio.to_thread.run_sync(compute, limiter=engine.planning) if objects > MANY_OBJECTS else compute()

    async def planned_again(earlier: Pass[C]) -> Pass[C]:
        again = await planned(again=True)
        return replace(again, changed=earlier.changed | again.changed)

    if engine.tries:
        memory.verdicts.prepare(engine.provider, of_new=engine.tries_new)
    result, asked = await planned(), set[Candidate]()
    while await _look_up(engine, memory, previous, result, asked):
        result = await planned_again(result)
    memory.not_looked_up = memory.not_looked_up & memory.portions.waiting
    memory.foreign.note_observed()
    if engine.reads_namespaces and await _look_up_namespaces(engine, memory, result):
        result = await planned_again(result)
    asking = 0.0
    for _ in range(ROUNDS if engine.tries_new else 1):
        asked_at = engine.clock.monotonic()
        with steps.waiting():
            has_new_answers = engine.tries and await memory.verdicts.ask(engine.provider, engine.clock, result.planned.plans)
        asking += engine.clock.monotonic() - asked_at
        if not has_new_answers:
            break
        result = await planned_again(result)
    return replace(result, took=engine.clock.monotonic() - began - asking, observing=observed_at - began)


async def interrupted_by(urgent: Callable[[], Awaitable[None]], steps: Steps, work: Callable[[], Awaitable[T | None]]) -> T:
    """The result of the work. Raises `Preempted` if it is None: it was interrupted, once `urgent` had returned, after `ATTEMPT` results.

    `steps` may be interrupted from the beginning.
    """

    def interrupt() -> None:
        steps.is_preempted = True

    try:
        async with calling_when(urgent, interrupt):
            result = await work()
    finally:
        steps.is_preempted = False
    if result is None:
        raise Preempted
    return result


def _edited(before: World | None, now: World, roots: Collection[ResourceId]) -> frozenset[ResourceId]:
    """Those of these roots that have been created, edited or deleted between two observations."""
    if not roots:
        return frozenset()
    from engine.runtime.steps import is_edited  # Only in a process that keeps running.

    old, new = by_root(before.roots if before is not None else ()), by_root(now.roots)
    pairs = ((old.get(root), each) for root in roots if (each := new.get(root)) is not None)
    return frozenset(each.root.id for was, each in pairs if was is None or is_edited(was.root, each.root))


def begun(steps: Steps, compute: Callable[[], T]) -> T | None:
    """The result of a computation; None if it was interrupted. It begins here: others may have been computed before it had its turn.

    What interrupts it is caught here: outside of the thread its traceback would keep all that it was about to make.
    """
    steps.begin(ATTEMPT)
    try:
        return compute()
    except Preempted:
        return None


def _first_plan(plan: Callable[[], Pass[C]]) -> Pass[C]:
    """The pass over many objects that were not planned before: nearly all that is computed stays."""
    with without_collections():
        return plan()


async def _look_up_namespaces(engine: Engine[C], memory: Memory, current: Pass[C]) -> bool:
    """Look up the namespaces in which something is created. Returns whether the pass has to be planned anew."""
    names = namespaces_with_creates(noteworthy(current.planned.plans)) | memory.namespaces.closed.keys()
    with memory.steps.waiting():
        return await memory.namespaces.look_up(engine.provider, sorted(names), engine.clock.monotonic())


async def _look_up(engine: Engine[C], memory: Memory, previous: World | None, current: Pass[C], asked: set[Candidate]) -> bool:
    """Look up the objects that may exist although no list by label shows them, except those that this pass has `asked` for.

    Returns whether one does: then the pass has to be planned anew, and what it needs then may have lost its labels, too.

    The first pass of a process looks up everything that it needs (of roots without any object only with `Engine.looks_up_new`), later ones
    what has disappeared since the pass before: in the ordinary case that is nothing. A root that the first pass put off is looked up when
    it is planned.
    """
    assert memory.world is not None
    candidates = set(disappeared(previous, memory.world, memory.foreign.deleted)) if previous is not None else set()
    if previous is None or memory.not_looked_up:
        planned = (plan for plan in current.planned.plans if plan.root not in memory.portions.waiting)
        plans = [plan for plan in planned if previous is None or plan.root in memory.not_looked_up]
        candidates.update(unlisted(engine.blueprints, current.world, plans, engine.configuration, also_new=engine.looks_up_new))
    new = candidates - asked
    asked |= new
    try:
        with memory.steps.waiting():
            seen = await memory.foreign.look_up(engine.provider, new)
    except TRANSIENT as error:  # What is not known is learned when a create is refused.
        if engine.log is not None:
            engine.log.warning("names not read", error=error)
        return False
    if engine.log is not None:
        for kind, unread in sorted(seen.unread.items()):
            engine.log.warning("names not read", kind=kind, error=unread)
    return seen.is_new


def _plan(
    engine: Engine[C], memory: Memory, observation: Observation, world: World, intent: Intent, now: datetime, previous: World | None
) -> Pass[C]:
    """The pass over an observation, with `took` still 0. Remembers the observed world, without the intent; `previous`: that before."""
    memory.world = world
    memory.observed, memory.failures = observation.token, memory.failed_calls.version
    memory.world = with_trials(memory.world, memory.verdicts.of, memory.verdicts.take_changed())
    proposed = propose(memory.world, intent.manifests, engine.scope.references, intent.replicas)
    composed = compose(memory.lookups.added_to(proposed, memory.memo), engine.blueprints, engine.configuration, memory.memo)
    memory.foreign.forget_listed(composed)
    memory.namespaces.forget_gone(observation.roots)
    if engine.tries_new:
        composed = with_trials_of_new(composed, memory.verdicts.of)
    with_names = with_foreign(composed, engine.blueprints, memory.foreign.known, memory.memo)
    world = with_phases(with_names, memory.namespaces.closed, memory.memo)
    if (most := engine.memory_for_objects()) is not None:
        from engine.memory_budget import with_allowances  # Only in a process that keeps running.

        world = with_allowances(world, engine.blueprints, engine.configuration, most, memory.memo)
    if memory.record is not None or observation.incomplete:
        world = replace(world, record=memory.record, unlisted=observation.incomplete)
    put_off = {root: last_plan(memory.memo, root) for root in memory.portions.waiting}
    planned = plan_all(
        engine.blueprints,
        world,
        now,
        engine.configuration,
        memory.memo,
        engine.limits,
        focus=intent.focus,
        removals=intent.removals,
        record=intent.record,
        beside=intent.beside,
        carried={**memory.carried, **put_off} if put_off else memory.carried,
        put_off=put_off.keys(),
    )
    only_proposed = _proposed(world, memory.world)
    changed = _changed(memory.world, previous) | (only_proposed - memory.proposed)
    memory.proposed = only_proposed
    return Pass(now, 0.0, world, planned, changed, engine.configuration, memory.memo)


def _updated(engine: Engine[C], memory: Memory, observation: Observation, intent: Intent) -> World | None:
    """The observed world, made from that of the last pass and from what has changed since; None if everything has to be looked at."""
    last, changes = memory.world, observation.changes_since(memory.observed)
    if last is None or changes is None or last.unserved != observation.unserved:
        return None
    if last.incomplete != _incomplete(engine, observation, intent.manifests):
        return None
    failed = memory.failed_calls.changed_since(memory.failures)
    return updated(engine.blueprints, last, changes, memory.failed_calls.known, failed, memory.verdicts.of)


def _assembled(engine: Engine[C], memory: Memory, observation: Observation, intent: Intent) -> World:
    """The observed world, assembled from everything."""
    return assemble(
        engine.blueprints,
        observation.roots,
        observation.children,
        _incomplete(engine, observation, intent.manifests),
        memory.world,
        references=observation.references,
        unserved=observation.unserved,
        failed_calls=memory.failed_calls.known,
        trials_of=memory.verdicts.of,
    )


def _changed(observed: World, previous: World | None) -> frozenset[ResourceId]:
    """The roots for which something has changed since the previous observed world."""
    before, now = by_root(previous.roots if previous is not None else ()), by_root(observed.roots)
    different = {id: each for id in differences(before, now) if (each := now.get(id)) is not None}
    return frozenset(id for id, each in different.items() if not _is_unchanged(each, before.get(id)))


def _proposed(world: World, observed: World) -> frozenset[ResourceId]:
    """The roots that do not exist: manifests alone propose them, or other roots, whose changes are theirs."""
    if len(world.roots) == len(observed.roots):
        return frozenset()
    return frozenset(set(by_root(world.roots).roots).difference(by_root(observed.roots).roots))


def _incomplete(engine: Engine[C], observation: Observation, manifests: Sequence[Body]) -> Mapping[str, Unlisted]:
    """The kinds that could not be listed completely and that matter for the roots that exist or are proposed."""
    if not observation.incomplete:
        return NOTHING_UNLISTED
    present = {root.id.kind for root in observation.roots} | {str(manifest["kind"]) for manifest in manifests}
    return relevant_incomplete(engine.blueprints, observation.incomplete, observation.unserved, present, engine.configuration)


def _is_unchanged(observed: Observed, previous: Observed | None) -> bool:
    """Whether the root and all its objects are the same Python objects as before: `assemble` keeps those that did not change."""
    return (
        previous is not None
        and observed.root is previous.root
        and observed.slices.keys() == previous.slices.keys()
        and all(slice is previous.slices[key] for key, slice in observed.slices.items())
    )


async def preview(engine: Engine[C], intent: Intent = NOTHING, verdicts: Verdicts | None = None) -> Pass[C]:
    """What a `sync` would observe and plan first: the same pass. Writes nothing. `verdicts` keeps what the server says of new templates.

    Raises `Unauthorized`, and `Unreachable` when nothing can be listed.
    """
    tune_gc()
    return await observe_and_plan(engine, Memory(Memo(intent.memo), intent.world, verdicts=verdicts or Verdicts()), intent)
