"""Session: `engine sync`. Makes passes until every root is settled, or until nothing is left that it could do or wait for."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass
from enum import StrEnum

import anyio

from engine.errors import EngineError
from engine.observed import Observed
from engine.operation import Operation
from engine.plan import Alarm, Objection, Plan, Wait
from engine.resource import Body
from engine.result import Outcome, Result
from engine.runtime.apply import always
from engine.runtime.backoff import SHORTEST_PAUSE, Backoff
from engine.runtime.internal_errors import InternalErrors
from engine.runtime.lease import Leadership, Lease, held
from engine.runtime.logs import Log
from engine.runtime.memory import Memory
from engine.runtime.passes import Engine, Pass, choose, execute, observe_and_plan, tune_gc
from engine.runtime.progress import NoProgress, Progress
from engine.runtime.provider import TRANSIENT
from engine.tick import Plans
from engine.world import empty

LONGEST_PAUSE = 2.0
"""Seconds between two passes while nothing changes."""

MAX_INCOMPLETE = 5
"""After this many incomplete observations in a row the session ends."""


class Ending(StrEnum):
    """How a session ended, worst first."""

    INTERRUPTED = "interrupted"
    FAILED = "failed"
    """An operation failed, a root is invalid or blocked, or something did not settle in time."""
    DENIED = "denied"
    """A guard objects to a plan."""
    INCOMPLETE = "incomplete"
    """Something could not be listed completely; everything else is done."""
    DONE = "done"


@dataclass(frozen=True, slots=True, eq=False)
class SyncReport:
    """What a session did, and what is left."""

    last_pass: Pass
    """Its plans are what is left to do and to wait for."""
    results: tuple[Result, ...]
    interrupted: bool = False
    timed_out: bool = False
    error: EngineError | None = None
    """The error that ended the session after its first pass."""

    @property
    def ending(self) -> Ending:
        """How it ended: the worst ending that applies."""
        if self.interrupted:
            return Ending.INTERRUPTED
        if self.error or self.timed_out or self.internal_errors:
            return Ending.FAILED
        if self.problems or self.failures or self.name_conflicts or self.blocking_alarms:
            return Ending.FAILED
        if self.objections:
            return Ending.DENIED
        return Ending.INCOMPLETE if self.incomplete else Ending.DONE

    @property
    def plans(self) -> tuple[Plan, ...]:
        """The last plan of every root."""
        return self.last_pass.planned.plans

    @property
    def pending(self) -> tuple[Wait, ...]:
        """What is not as desired yet because the cluster has to act."""
        return tuple(wait for plan in self.plans for wait in plan.pending)

    @property
    def problems(self) -> tuple[str, ...]:
        """What is wrong with roots as users have specified them, whether it has no effect or prevents everything."""
        return tuple(problem for plan in self.plans for problem in (*plan.problems, *plan.faults))

    @property
    def internal_errors(self) -> tuple[Exception, ...]:
        """Why plans could not be computed: defects of the engine."""
        return tuple(plan.error for plan in self.plans if plan.error is not None)

    @property
    def objections(self) -> tuple[Objection, ...]:
        """The guards' objections to the last pass and to its plans."""
        return (*self.last_pass.planned.objections, *(objection for plan in self.plans for objection in plan.objections))

    @property
    def incomplete(self) -> Mapping[str, str]:
        """Kind -> why it could not be listed completely."""
        return self.last_pass.world.incomplete

    @property
    def name_conflicts(self) -> tuple[Wait, ...]:
        """Objects that cannot be created because a foreign object has the name."""
        return tuple(
            wait for plan, observed in _with_observed(self.last_pass) for wait in plan.deferred if _is_name_conflict(wait, observed)
        )

    @property
    def blocking_alarms(self) -> tuple[Alarm, ...]:
        """Alarms that last until a user or operator acts."""
        return tuple(alarm for plan in self.plans for alarm in plan.alarms if alarm.blocking)

    @property
    def failures(self) -> tuple[Result, ...]:
        """The last result of each operation that is still planned, was tried, and was not done."""
        last = {result.operation.key: result for result in self.results if result.outcome is not Outcome.SKIPPED}
        tried = (last.get(operation.key) for plan in self.plans if not plan.objections for operation in plan.operations)
        return tuple(result for result in tried if result is not None and result.outcome is not Outcome.DONE)

    @property
    def not_started(self) -> tuple[Operation, ...]:
        """Operations of the last plans without a result; after an interruption, those that it prevented."""
        tried = {id(result.operation) for result in self.results}
        return tuple(operation for plan in self.plans for operation in plan.operations if id(operation) not in tried)


async def preview(engine: Engine, manifests: Sequence[Body] = ()) -> Pass:
    """What a `sync` would observe and plan first. Writes nothing.

    Objects that seem to have been deleted are looked up by name: one that exists has lost its labels, which are restored, or is foreign.
    `sync` learns this when its create is refused. Raises `Unauthorized`, and `Unreachable` when nothing can be listed.
    """
    tune_gc()
    memory = Memory()
    current = await observe_and_plan(engine, memory, manifests)
    await memory.foreign.look_up(engine.provider, current.planned.plans)
    return await observe_and_plan(engine, memory, manifests) if memory.foreign.known else current


async def sync(
    engine: Engine,
    lease: Lease | None,
    manifests: Sequence[Body] = (),
    *,
    wait: bool = True,
    patience: float = 300.0,
    stop: anyio.CancelScope | None = None,
    progress: Progress | None = None,
    log: Log | None = None,
) -> SyncReport:
    """Make passes while holding the lease (None: without one) until every root is settled.

    `wait=False`: end when nothing is left to do now. `patience`: seconds after which it ends in any case. When `stop` is cancelled, calls
    in progress end and the report says what was done. Internal errors are written to `log`. Raises `LeaseTaken` when somebody else holds
    the lease for one lease duration, and errors of the cluster before the first pass; later errors are in the report.
    """
    tune_gc()
    session = _Session(engine, manifests, wait, patience, progress or NoProgress(), log)
    with stop or anyio.CancelScope() as scope:
        try:
            async with _leading(lease, session.progress) as leadership:
                await session.run(leadership.may_write if leadership else always)
        except EngineError as error:
            if session.last_pass is None:
                raise
            session.error = error
    last_pass = session.last_pass or Pass(engine.clock.now(), 0.0, empty(), Plans(()), frozenset())
    return SyncReport(last_pass, tuple(session.results), scope.cancelled_caught, session.timed_out, session.error)


def _leading(lease: Lease | None, progress: Progress) -> AbstractAsyncContextManager[Leadership | None]:
    """Hold the lease while the block runs; without a lease just run it."""
    if lease is None:
        return nullcontext()
    return held(lease, patience=lease.durations.lease, on_wait=progress.waiting_for_lease)


class _Session:
    """The state of one session."""

    def __init__(self, engine: Engine, manifests: Sequence[Body], wait: bool, patience: float, progress: Progress, log: Log | None) -> None:
        self.engine = engine
        self.manifests = manifests
        self.wait = wait
        self.patience = patience
        self.progress = progress
        self.memory = Memory()
        self.internal_errors = InternalErrors(log) if log else None
        self.last_pass: Pass | None = None
        self.results: list[Result] = []
        self.incomplete_passes = 0
        """How many passes in a row could not list everything."""
        self.idle_passes = 0
        """How many passes in a row had nothing to do."""
        self.timed_out = False
        self.error: EngineError | None = None

    async def run(self, may_write: Callable[[], bool]) -> None:
        """Make passes until the session is over or has taken too long."""
        clock, backoff = self.engine.clock, Backoff(LONGEST_PAUSE)
        give_up_at = clock.monotonic() + self.patience
        while True:
            current = self.last_pass = await self._observe_and_plan(give_up_at)
            self.incomplete_passes = self.incomplete_passes + 1 if current.world.incomplete else 0
            chosen = choose(current, self.memory, clock.monotonic())
            self.idle_passes = 0 if chosen else self.idle_passes + 1
            self.progress.planned(current.planned.plans, sum(len(plan.operations) for plan in chosen))
            results = await execute(self.engine, self.memory, current, chosen, on_result=self._record, may_write=may_write)
            if not chosen and self._is_over(current):
                return
            if clock.monotonic() >= give_up_at:
                self.timed_out = True
                return
            changed = not current.quiet or any(result.outcome is Outcome.DONE for result in results)
            seconds = backoff.pause(self.engine, self.memory, current, changed=changed)
            seconds = min(seconds, max(0.0, give_up_at - clock.monotonic()))
            self.progress.idle(current.planned.plans, seconds)
            await clock.sleep(seconds)

    def _record(self, result: Result) -> None:
        """Keep the result and report it."""
        self.results.append(result)
        self.progress.applied(result)

    async def _observe_and_plan(self, give_up_at: float) -> Pass:
        """Observe and plan. After the first pass, transient errors are retried until `give_up_at`."""
        clock, pause = self.engine.clock, SHORTEST_PAUSE
        while True:
            try:
                current = await observe_and_plan(self.engine, self.memory, self.manifests)
            except TRANSIENT:
                if self.last_pass is None or clock.monotonic() >= give_up_at:
                    raise
            else:
                if self.internal_errors:
                    self.internal_errors.note(current.planned.plans)
                return current
            await clock.sleep(pause)
            pause = min(LONGEST_PAUSE, pause * 2)

    def _is_over(self, current: Pass) -> bool:
        """Whether nothing is worth waiting for, given that nothing is left to do now."""
        if current.planned.objections:
            return True
        if self.memory.debounce.next_due is not None:
            return False
        if current.world.incomplete:
            return self.incomplete_passes >= MAX_INCOMPLETE
        if self.wait and any(_may_settle(plan, observed) for plan, observed in _with_observed(current)):
            return False
        # What is deferred may depend on something that is about to happen: make one more pass to see whether it does.
        return self.idle_passes > 1 or not any(plan.deferred for plan in current.planned.plans)


def _with_observed(current: Pass) -> Iterator[tuple[Plan, Observed]]:
    """Each plan of a root with the observation it was made from. Plans for orphans have none and are left out."""
    by_root = {observed.root.id: observed for observed in current.world.roots}
    return ((plan, by_root[plan.root]) for plan in current.planned.plans if plan.root in by_root)


def _may_settle(plan: Plan, observed: Observed) -> bool:
    """Whether the root settles if we wait: it waits for something, and nothing needs a user or operator.

    Waiting is useless where an operation was rejected, a guard objects, the root is invalid, or a name is taken.
    """
    if plan.operations or plan.objections or plan.problems or plan.error or any(alarm.blocking for alarm in plan.alarms):
        return False
    if any(_is_name_conflict(wait, observed) for wait in plan.deferred):
        return False
    return bool(plan.pending) or any(_ends_by_itself(wait, observed) for wait in plan.deferred)


def _is_name_conflict(wait: Wait, observed: Observed) -> bool:
    """Whether the object is deferred because a foreign object has its name and is not being deleted."""
    foreign = observed.foreign.get(wait.id)
    return foreign is not None and foreign.deleting_since is None


def _ends_by_itself(wait: Wait, observed: Observed) -> bool:
    """Whether the object is deferred until a known time, or until an object of its name has been deleted."""
    existing = observed.find(wait.id) or observed.foreign.get(wait.id) or observed.references.objects.get(wait.id)
    return wait.until is not None or (existing is not None and existing.deleting_since is not None)
