"""Apply: sends the operations of plans to a provider, in the order of their edges. Decides nothing."""

import random
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from math import inf

import anyio
from anyio.abc import TaskGroup
from anyio.lowlevel import checkpoint_if_cancelled
from msgspec import Struct, field
from msgspec.structs import replace

from engine.errors import (
    AlreadyExists,
    ClusterError,
    Conflict,
    EngineError,
    Invalid,
    NotFound,
    ServerFault,
    Throttled,
    Unreachable,
)
from engine.ids import ResourceId
from engine.operation import Create, Creation, Operation, Outcome, Result, WriteStatus
from engine.paths import stamp
from engine.plan import Plan
from engine.runtime.call_limit import MOST, CallLimit
from engine.runtime.clock import Clock
from engine.runtime.doubtful_creates import result_of_create
from engine.runtime.provider import Provider
from engine.verb import Verb

GRACE = 3.0
"""Seconds that calls in progress may take after a cancellation; less than the time between the renew deadline and the end of the lease."""
ATTEMPTS = 6
"""How often an operation is sent while the server answers 429. No other layer repeats a throttled write."""
LONGEST_WAIT = 30.0
"""Longest pause in seconds before a throttled operation is sent again, whatever Retry-After says."""
MAX_UNANSWERED = 8
"""After this many calls in a row without an answer the rest of the plans is skipped."""
REPORTS = 8
"""How many statuses are written at a time: nothing waits for them but people, and whoever starts pods uses the same server."""
REPORTING_TIME = 1.0
"""Seconds for which statuses are written after everything else is done. Others are left for the next pass, which sees what has changed."""
BEGINNING_TIME = 2.0
"""Seconds for which plans are begun. Those that are not begun by then are left for the next pass; those that are begun are completed."""
CHANGED_MEANWHILE: Mapping[Verb, tuple[type[ClusterError], ...]] = {
    Verb.CREATE: (Conflict,),
    # A finalizer is released by a JSON patch that tests what it removes; the server answers Invalid when the test fails.
    Verb.RELEASE: (Conflict, NotFound, Invalid),
}
"""Verb -> the errors which mean that the object changed after it was observed. For verbs not listed: Conflict and NotFound."""


def ignore_result(result: Result) -> None:
    """The default for `on_result`."""


def always() -> bool:
    """The default for `may_write`: true."""
    return True


async def apply(
    plans: Iterable[Plan],
    provider: Provider,
    clock: Clock,
    *,
    concurrency: int = MOST,
    call_limit: CallLimit | None = None,
    grace: float = GRACE,
    begin_for: float = BEGINNING_TIME,
    on_result: Callable[[Result], None] = ignore_result,
    may_write: Callable[[], bool] = always,
) -> list[Result]:
    """Send all operations, each after those named in its `after`. Returns a result for each but those that are left.

    As many are sent at a time as `call_limit` allows, at most `concurrency`; it learns from their answers.

    What follows an operation is sent before other operations: the pods of a replica before the next replica. Plans are begun in their
    order, for `begin_for` seconds; those that are not begun by then are left, as a whole. Statuses are sent when nothing else can be, at
    most `REPORTS` at a time; those that are not sent within `REPORTING_TIME` are left.
    Operations after one that was not done are skipped with the reason; the others continue. `may_write` is called before each call.
    On cancellation no operation is started, calls in progress have `grace` seconds to end, and `on_result` receives the result of every
    operation that was started.
    """
    steps = [step for plan in plans for step in _steps(plan)]
    execution = _Execution(provider, clock, on_result, may_write, steps, concurrency, call_limit or CallLimit())
    await execution.run(grace, begin_for)
    return execution.results


class _PlanState(Struct, eq=False):
    """What the steps of a plan share."""

    may_wait: bool
    """Whether the next pass may carry it out as well as this one: nothing of it was sent yet, and not all of it are statuses."""
    uids: dict[ResourceId, str] = field(default_factory=dict)
    """The uids of the objects that the plan has created."""


class _Step(Struct, eq=False):
    """An operation, the number of steps that must be done before it, and the steps that come after it."""

    operation: Operation
    plan: _PlanState
    missing: int = 0
    dependents: list["_Step"] = field(default_factory=list)
    skipped: bool = False

    @property
    def is_report(self) -> bool:
        """Whether it writes a status."""
        return isinstance(self.operation, WriteStatus)


def _steps(plan: Plan) -> list[_Step]:
    """The operations of a plan, linked by their edges."""
    state = _PlanState(may_wait=any(not isinstance(operation, WriteStatus) for operation in plan.operations))
    steps = {operation.key: _Step(operation, state) for operation in plan.operations}
    for step in steps.values():
        for before in (steps[key] for key in step.operation.after if key in steps):
            before.dependents.append(step)
            step.missing += 1
    return list(steps.values())


class _Call(Struct, eq=False):
    """A call in progress, shielded from cancellation until its grace period is over."""

    scope: anyio.CancelScope = field(default_factory=lambda: anyio.CancelScope(shield=True))
    ended: anyio.Event = field(default_factory=anyio.Event)


class _Execution:
    """The state of one `apply`: steps that are ready, calls in progress, results."""

    def __init__(
        self,
        provider: Provider,
        clock: Clock,
        on_result: Callable[[Result], None],
        may_write: Callable[[], bool],
        steps: list[_Step],
        most: int,
        call_limit: CallLimit,
    ) -> None:
        self.provider = provider
        self.clock = clock
        self.on_result = on_result
        self.may_write = may_write
        self.steps = steps
        self.most = most
        self.call_limit = call_limit
        self.results: list[Result] = []
        self.calls: set[_Call] = set()
        self.unanswered = 0
        """How many calls in a row had no answer."""
        self.finished = anyio.Event()
        self.ready: deque[_Step] = deque()
        self.reports: deque[_Step] = deque()
        """The steps that write statuses."""
        self.reporting = 0
        """How many statuses are being written."""
        self.report_until = 0.0
        """The monotonic time after which no status is begun."""
        self.begin_until: float = inf
        """The monotonic time after which no plan is begun."""
        self.left = 0
        """How many steps are left."""
        self.working = 0
        """How many workers there are."""

    @property
    def allowed(self) -> int:
        """How many workers there may be."""
        return min(self.most, self.call_limit.limit)

    async def run(self, grace: float, begin_for: float) -> None:
        """Execute the steps with as many workers as are allowed, which take the next step that is ready until there is none."""
        if not self.steps:
            return
        self.report_until = self.clock.monotonic() + REPORTING_TIME
        self.begin_until = self.clock.monotonic() + begin_for
        for step in self.steps:
            if not step.missing:
                self._queue_of(step).append(step)
        async with anyio.create_task_group() as workers:
            self._start(workers)
            try:
                await self.finished.wait()
            except anyio.get_cancelled_exc_class():
                await self._end_calls(grace)
                raise

    def _next(self) -> _Step | None:
        """Take the step to execute next; None if none is ready, or only reports of which enough are being written."""
        step = self._first_ready()
        if step is not None:
            step.plan.may_wait = False
        return step

    def _first_ready(self) -> _Step | None:
        """Remove the step to execute next from its queue."""
        if self.ready and self.clock.monotonic() > self.begin_until:
            self._leave_plans_not_begun()
        if self.ready:
            return self.ready.popleft()
        if self.reports and self.clock.monotonic() > self.report_until and self._has_done_all_else():
            self.left += len(self.reports)
            self.reports.clear()
        if self.reports and self.reporting < REPORTS:
            self.reporting += 1
            return self.reports.popleft()
        return None

    def _leave_plans_not_begun(self) -> None:
        """Leave the plans of which nothing was sent yet, unless all of it are statuses."""
        self.begin_until = inf
        self.ready = deque(step for step in self.ready if not step.plan.may_wait)
        self.reports = deque(step for step in self.reports if not step.plan.may_wait)
        self.left = sum(step.plan.may_wait for step in self.steps)

    def _has_done_all_else(self) -> bool:
        """Whether nothing but statuses is to be written any more."""
        return len(self.results) + self.left + self.reporting + len(self.reports) == len(self.steps)

    def _start(self, workers: TaskGroup) -> None:
        """Start a worker for each step that is ready, as long as there may be more."""
        while self.working < self.allowed and (step := self._next()) is not None:
            self.working += 1
            workers.start_soon(self._work, step, workers)

    async def _end_calls(self, grace: float) -> None:
        """Wait for the calls in progress, then cancel those that have not ended within `grace` seconds."""
        with anyio.move_on_after(grace, shield=True):
            for call in tuple(self.calls):
                await call.ended.wait()
        for call in self.calls:
            call.scope.cancel()

    async def _work(self, first: _Step, workers: TaskGroup) -> None:
        """Perform this step and those that are ready after it; start other workers for what becomes ready meanwhile."""
        step: _Step | None = first
        while step is not None:
            await checkpoint_if_cancelled()
            result = await self._perform(step)
            self.reporting -= step.is_report
            self._settle(step, result)
            step = self._next() if self.working <= self.allowed else None
            self._start(workers)
        self.working -= 1
        if len(self.results) + self.left == len(self.steps):
            self.finished.set()

    def _settle(self, step: _Step, result: Result) -> None:
        """Record the result of a step; make its dependents ready, or skip them."""
        self._record(result)
        if not step.is_report:
            self.report_until = self.clock.monotonic() + REPORTING_TIME
        if result.outcome is Outcome.DONE:
            if isinstance(result.operation, Creation) and result.uid:
                step.plan.uids[result.operation.id] = result.uid
            self._make_ready(step.dependents)
        else:
            self._skip_dependents(step, f"comes after {result.operation.verb} {result.operation.id}, which was not done: {result.error}")

    def _record(self, result: Result) -> None:
        """Keep the result and report it."""
        self.results.append(result)
        self.on_result(result)

    def _make_ready(self, dependents: Iterable[_Step]) -> None:
        """Count one more step before these as done. Those with none left are next: what has been begun is completed first."""
        ready = []
        for dependent in dependents:
            dependent.missing -= 1
            if not dependent.missing and not dependent.skipped:
                ready.append(dependent)
        for step in reversed(ready):
            self._queue_of(step).appendleft(step)

    def _queue_of(self, step: _Step) -> deque[_Step]:
        """Where the step waits once it is ready."""
        return self.reports if step.is_report else self.ready

    def _skip_dependents(self, failed: _Step, why: str) -> None:
        """Skip all direct and indirect dependents of a step that was not done."""
        pending = list(failed.dependents)
        while pending:
            step = pending.pop()
            if not step.skipped:
                step.skipped = True
                self._record(Result(step.operation, Outcome.SKIPPED, error=EngineError(why)))
                pending.extend(step.dependents)

    async def _perform(self, step: _Step) -> Result:
        """The result of an operation that is sent up to `ATTEMPTS` times while the server answers 429."""
        result = await self._call(step)
        for _ in range(ATTEMPTS - 1):
            if not isinstance(result.error, Throttled):
                break
            await self._wait_to_retry(step, result.error)
            result = await self._call(step)
        return result

    async def _wait_to_retry(self, step: _Step, error: Throttled) -> None:
        """Wait for Retry-After, or a little longer so that the workers do not all come back at once."""
        try:
            await self.clock.sleep(min(error.retry_after or 1.0, LONGEST_WAIT) * random.uniform(1.0, 1.2))
        except anyio.get_cancelled_exc_class():
            self._record(Result(step.operation, Outcome.FAILED, error=EngineError(f"interrupted before it was sent again: {error}")))
            raise

    async def _call(self, step: _Step) -> Result:
        """The result of one call. Once sent it is not cancelled before its grace period is over."""
        if not self.may_write():
            return Result(step.operation, Outcome.SKIPPED, error=EngineError("we no longer hold the lease"))
        if self.unanswered >= MAX_UNANSWERED:
            return Result(step.operation, Outcome.SKIPPED, error=Unreachable("the server has stopped answering"))
        call = _Call()
        self.calls.add(call)
        try:
            with call.scope:
                began, busy = self.clock.monotonic(), self.working >= self.allowed
                result = await self._execute(step.operation, step.plan.uids)
                self.call_limit.answered(began, self.clock.monotonic(), result.error, busy=busy)
                self.unanswered = self.unanswered + 1 if isinstance(result.error, Unreachable) else 0
                return result
        finally:
            self.calls.discard(call)
            call.ended.set()
        return Result(step.operation, Outcome.FAILED, error=Unreachable("interrupted before the server answered: it may have happened"))

    async def _execute(self, operation: Operation, uids: Mapping[ResourceId, str]) -> Result:
        """The server's answer to one call as a result of the operation."""
        try:
            answer = await self.provider.execute(self._timed(operation), uids)
            # Only its uid is kept: the answers to the operations of a large plan would take more memory than everything observed.
            return Result(operation, Outcome.DONE, uid=answer["metadata"]["uid"] if answer is not None else "")
        except AlreadyExists as error:
            if isinstance(operation, Creation):
                return await result_of_create(operation, uids, self.provider, error, otherwise=Outcome.CONFLICT)
            return Result(operation, Outcome.CONFLICT, error=error)
        except (ServerFault, Unreachable) as error:
            if isinstance(operation, Create):
                return await result_of_create(operation, uids, self.provider, error, otherwise=Outcome.FAILED)
            return Result(operation, Outcome.FAILED, error=error)
        except ClusterError as error:
            conflict = isinstance(error, CHANGED_MEANWHILE.get(operation.verb, (Conflict, NotFound)))
            return Result(operation, Outcome.CONFLICT if conflict else Outcome.FAILED, error=error)

    def _timed(self, operation: Operation) -> Operation:
        """The operation with the time of sending in place of every `NOW`; only statuses contain it.

        Results keep the operation of the plan: what is compared from pass to pass must not contain a time.
        """
        if not isinstance(operation, WriteStatus):
            return operation
        return replace(operation, patch=stamp(operation.patch, self.clock.now().strftime("%Y-%m-%dT%H:%M:%SZ")))
