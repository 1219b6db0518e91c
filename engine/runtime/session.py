"""Session: one shot. Pass, plan and act until all is settled, or until all that is left waits for something that has a name."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

import anyio

from engine.errors import EngineError, ServerFault, Throttled, Unreachable
from engine.observed import Observed
from engine.operation import Operation
from engine.plan import Alarm, Objection, Plan, Wait
from engine.resource import Body
from engine.result import Outcome, Result
from engine.runtime.lease import Lease, held
from engine.runtime.passes import SHORTEST_PAUSE, Backoff, Engine, Memory, Pass, act, choose, look, tune_gc
from engine.runtime.progress import NoProgress, Progress
from engine.tick import Plans
from engine.world import empty

LONGEST_PAUSE = 2.0
"""Seconds between two passes while nothing moves."""

GLANCES = 5
"""How many looks in a row must be incomplete before we stop hoping for a better one."""

PASSING = (Unreachable, ServerFault, Throttled)
"""FailedCalls of a server that may be over at the next look."""


class Ending(StrEnum):
    """How a session ended, worst first."""

    INTERRUPTED = "interrupted"
    FAILED = "failed"
    """Something could not be done, cannot be understood, or did not settle in time."""
    DENIED = "denied"
    """A guard objects to a plan."""
    INCOMPLETE = "incomplete"
    """Not everything could be seen; all that could be judged is done."""
    DONE = "done"


@dataclass(frozen=True, slots=True, eq=False)
class Report:
    """What a session did, and how it left things."""

    seen: Pass
    """The last look: what it plans and what it waits for is what is left."""
    results: tuple[Result, ...]
    interrupted: bool = False
    timed_out: bool = False
    error: EngineError | None = None
    """What ended the session before its time, after it had begun."""

    @property
    def ending(self) -> Ending:
        """How it ended: the worst that can be said of it."""
        if self.interrupted:
            return Ending.INTERRUPTED
        if self.error or self.timed_out or self.problems or self.failures or self.collisions or self.blocked:
            return Ending.FAILED
        if self.objections:
            return Ending.DENIED
        return Ending.INCOMPLETE if self.incomplete else Ending.DONE

    @property
    def plans(self) -> tuple[Plan, ...]:
        """The last plan of every root."""
        return self.seen.planned.plans

    @property
    def pending(self) -> tuple[Wait, ...]:
        """What is not as wanted yet, and whose turn it is."""
        return tuple(waiting for plan in self.plans for waiting in plan.pending)

    @property
    def problems(self) -> tuple[str, ...]:
        """The user's faults."""
        return tuple(problem for plan in self.plans for problem in plan.problems)

    @property
    def objections(self) -> tuple[Objection, ...]:
        """What the guards say: of everything, and of single plans."""
        return (*self.seen.planned.objections, *(objection for plan in self.plans for objection in plan.objections))

    @property
    def incomplete(self) -> Mapping[str, str]:
        """Kind -> why not all of it was seen."""
        return self.seen.world.incomplete

    @property
    def collisions(self) -> tuple[Wait, ...]:
        """Objects that cannot be made because others have their names."""
        return tuple(held for plan, observed in _pairs(self.seen) for held in plan.deferred if _is_collision(held, observed))

    @property
    def blocked(self) -> tuple[Alarm, ...]:
        """What stays as it is until people do something about it."""
        return tuple(alarm for plan in self.plans for alarm in plan.alarms if alarm.blocking)

    @property
    def failures(self) -> tuple[Result, ...]:
        """Of what is still to be done: what was tried, and how it went the last time."""
        last = {result.operation.key: result for result in self.results if result.outcome is not Outcome.SKIPPED}
        tried = (last.get(operation.key) for plan in self.plans if not plan.objections for operation in plan.operations)
        return tuple(result for result in tried if result is not None and result.outcome is not Outcome.DONE)

    @property
    def undone(self) -> tuple[Operation, ...]:
        """What was planned last and not even tried: after an interruption, what it has cut off."""
        tried = {id(result.operation) for result in self.results}
        return tuple(operation for plan in self.plans for operation in plan.operations if id(operation) not in tried)


async def preview(engine: Engine, manifests: Sequence[Body] = ()) -> Pass:
    """What the first pass of a `sync` would find and plan: the same look, and nothing else.

    Raises `Unreachable` and `Unauthorized` when nothing can be seen.
    """
    tune_gc()
    return await look(engine, Memory(), manifests)


async def sync(
    engine: Engine,
    lease: Lease,
    manifests: Sequence[Body] = (),
    *,
    wait: bool = True,
    patience: float = 300.0,
    stop: anyio.CancelScope | None = None,
    progress: Progress | None = None,
) -> Report:
    """Make passes, as the holder of the lease, until all is settled; without `wait`, until there is nothing left that we could do.

    At most for `patience` seconds. Cancelling `stop` lets calls under way end and reports what has been done. Raises `LeaseTaken` when
    another holder does not let go within one lease duration, and what the cluster raises as long as nothing has been seen; later
    errors are in the report.
    """
    tune_gc()
    session = _Session(engine, manifests, wait, patience, progress or NoProgress())
    with stop or anyio.CancelScope() as scope:
        try:
            async with held(lease, patience=lease.durations.lease, on_wait=session.progress.contested) as leadership:
                await session.run(leadership.sure)
        except EngineError as error:
            if session.seen is None:
                raise
            session.error = error
    seen = session.seen or Pass(engine.clock.now(), 0.0, empty(), Plans(()), frozenset())
    return Report(seen, tuple(session.results), scope.cancelled_caught, session.timed_out, session.error)


class _Session:
    """The state of one session."""

    def __init__(self, engine: Engine, manifests: Sequence[Body], wait: bool, patience: float, progress: Progress) -> None:
        self.engine = engine
        self.manifests = manifests
        self.wait = wait
        self.patience = patience
        self.progress = progress
        self.memory = Memory()
        self.seen: Pass | None = None
        self.results: list[Result] = []
        self.incomplete_looks = 0
        self.idle_looks = 0
        """How many looks in a row have brought nothing to do."""
        self.timed_out = False
        self.error: EngineError | None = None

    async def run(self, may: Callable[[], bool]) -> None:
        """Pass after pass, until it is over or takes too long."""
        clock, pace = self.engine.clock, Backoff(LONGEST_PAUSE)
        give_up_at = clock.monotonic() + self.patience
        while True:
            seen = self.seen = await self._look(give_up_at)
            self.incomplete_looks = self.incomplete_looks + 1 if seen.world.incomplete else 0
            chosen = choose(seen, self.memory, clock.monotonic())
            self.idle_looks = 0 if chosen else self.idle_looks + 1
            self.progress.planned(seen.planned.plans, sum(len(plan.operations) for plan in chosen))
            results = await act(self.engine, self.memory, seen, chosen, on_result=self._note, may=may)
            if not chosen and self._is_over(seen):
                return
            if clock.monotonic() >= give_up_at:
                self.timed_out = True
                return
            moved = not seen.quiet or any(result.outcome is Outcome.DONE for result in results)
            pause = min(pace.pause(self.engine, self.memory, seen, moved=moved), max(0.0, give_up_at - clock.monotonic()))
            self.progress.resting(seen.planned.plans, pause)
            await clock.sleep(pause)

    def _note(self, result: Result) -> None:
        self.results.append(result)
        self.progress.done(result)

    async def _look(self, give_up_at: float) -> Pass:
        """Pass; once we are under way, a server that stumbles is given time to get up."""
        clock, pause = self.engine.clock, SHORTEST_PAUSE
        while True:
            try:
                return await look(self.engine, self.memory, self.manifests)
            except PASSING:
                if self.seen is None or clock.monotonic() >= give_up_at:
                    raise
            await clock.sleep(pause)
            pause = min(LONGEST_PAUSE, pause * 2)

    def _is_over(self, seen: Pass) -> bool:
        """Whether, nothing being left to do now, nothing is worth waiting for either."""
        if seen.planned.objections:
            return True
        if self.memory.states.next_due is not None:
            return False
        if seen.world.incomplete:
            return self.incomplete_looks >= GLANCES
        if self.wait and any(_awaited(plan, observed) for plan, observed in _pairs(seen)):
            return False
        # What is held until further notice may be held because something is about to happen: look once more whether it does.
        return self.idle_looks > 1 or not any(plan.deferred for plan in seen.planned.plans)


def _pairs(seen: Pass) -> Iterator[tuple[Plan, Observed]]:
    """Each plan with what it was made from; one for strays is made from nothing that is a root's."""
    by_root = {observed.root.id: observed for observed in seen.world.roots}
    return ((plan, by_root[plan.root]) for plan in seen.planned.plans if plan.root in by_root)


def _awaited(plan: Plan, observed: Observed) -> bool:
    """Whether this root settles if we wait: it has something to wait for, and nothing stands in its way.

    Where something was refused, objected to, not understood, or has a name that others hold, waiting for the rest is no use.
    """
    if plan.operations or plan.objections or plan.problems or any(alarm.blocking for alarm in plan.alarms):
        return False
    if any(_is_collision(held, observed) for held in plan.deferred):
        return False
    return bool(plan.pending) or any(_is_passing(held, observed) for held in plan.deferred)


def _is_collision(held: Wait, observed: Observed) -> bool:
    """Whether it is held because of an object that is not ours, and stays."""
    neighbour = observed.foreign.get(held.id)
    return neighbour is not None and neighbour.deleting_since is None


def _is_passing(held: Wait, observed: Observed) -> bool:
    """Whether it is held only for now: until a certain time, or until an object of that name has gone."""
    there = observed.find(held.id) or observed.foreign.get(held.id) or observed.references.objects.get(held.id)
    return held.until is not None or (there is not None and there.deleting_since is not None)
