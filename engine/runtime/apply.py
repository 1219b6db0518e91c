"""Apply: sends the operations of plans to a provider, in the order of their edges. Decides nothing."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from math import inf

import anyio
from anyio.abc import TaskGroup
from anyio.lowlevel import checkpoint_if_cancelled

from engine.errors import EngineError
from engine.ids import ResourceId
from engine.operation import Creation, Operation, Outcome, Result
from engine.plan import Plan
from engine.runtime.call_limit import MOST, CallLimit
from engine.runtime.calls import Calls, always, ignore_call
from engine.runtime.clock import Clock
from engine.runtime.provider import Provider
from engine.runtime.refusals import Refusals
from engine.runtime.steps import SentPlan, SentStep, is_long, steps_of
from engine.runtime.turns import Turns

GRACE = 3.0
"""Seconds that calls in progress may take after a cancellation; less than the time between the renew deadline and the end of the lease."""
REPORTS = 8
"""How many statuses are written at a time: only people wait for them, and the components that start pods use the same server."""
REPORTS_BESIDE = 1
"""How many statuses are written at a time beside other operations: those of plans of which nothing else is left to do."""
REPORTING_TIME = 1.0
"""Seconds for which statuses are written after everything else is done. Others are left for the next pass, which sees what has changed."""
BEGINNING_TIME = 2.0
"""Seconds for which plans are begun. Those that are not begun by then are left for the next pass; those that are begun are completed."""


def ignore_result(result: Result) -> None:
    """The default for `on_result`."""


class Sending:
    """Sends the operations of plans, each after those named in its `after`, while `run` runs. Plans may be added meanwhile.

    As many are sent at a time as `call_limit` allows, at most `concurrency`; it learns from their answers. `may_write` is called before
    each call, `on_call` when it is sent. Operations after one that was not done are skipped with the reason; the others continue.

    Namespaces take turns, and in them roots (`Turns`). Of one root, what follows an operation is sent before other operations: the pods of
    a replica before the next replica. Plans are begun in their order, long ones last. Those that are not begun in time are left, as a
    whole. Statuses are sent when nothing else can be, at most `REPORTS` at a time, and `REPORTS_BESIDE` as soon as their plan is done but
    for them; when nothing else is left to do, those that are not sent within `REPORTING_TIME` are left. What `refusals` hold back of a root
    is left, with what comes after it.
    """

    def __init__(
        self,
        provider: Provider,
        clock: Clock,
        *,
        concurrency: int = MOST,
        call_limit: CallLimit | None = None,
        on_call: Callable[[Operation], None] = ignore_call,
        on_result: Callable[[Result], None] = ignore_result,
        may_write: Callable[[], bool] = always,
        refusals: Refusals | None = None,
    ) -> None:
        self.clock = clock
        self.on_result = on_result
        self.may_write = may_write
        self.most = concurrency
        self.call_limit = call_limit or CallLimit()
        self.plans: set[SentPlan] = set()
        """The plans that are not completed yet."""
        self.ended: list[SentPlan] = []
        """Those that have ended since they were last taken."""
        self._results: list[tuple[SentPlan, Result]] = []
        self._refusals = refusals or Refusals()
        self._calls = Calls(provider, clock, self.call_limit, may_write, on_call)
        self._changed = anyio.Event()
        """Set, and replaced, when a plan ends."""
        self._defect: Exception | None = None
        """An exception of our own code that has ended all plans, until it is raised."""
        self._ready: Turns[SentStep] = Turns()
        self._reports: Turns[SentStep] = Turns()
        """The steps that write statuses. Those that were taken in another way are still in it."""
        self._last_reports: Turns[SentStep] = Turns()
        """The same steps of plans of which nothing else is left to do."""
        self._reporting = 0
        """How many statuses are being written."""
        self._unreported = 0
        """How many steps of all plans that write no status have no result yet."""
        self._report_until = 0.0
        """The monotonic time after which no status is begun if nothing else is left to do."""
        self._begin_until = inf
        """The first monotonic time after which a plan is not begun any more."""
        self._working = 0
        """How many workers there are."""
        self._workers: TaskGroup | None = None

    @property
    def allowed(self) -> int:
        """How many workers there may be."""
        return min(self.most, self.call_limit.limit)

    def add(self, plans: Iterable[Plan], begin_for: float = BEGINNING_TIME) -> None:
        """Send these plans, too. Those that are not begun within `begin_for` seconds are left."""
        at = self.clock.monotonic()
        self._calls.try_again()
        self._report_until = at + REPORTING_TIME
        for plan in sorted(plans, key=is_long):
            steps = steps_of(plan, at + begin_for)
            if not steps:
                continue
            sent = steps[0].plan
            self.plans.add(sent)
            self._unreported += sent.unreported
            self._begin_until = min(self._begin_until, sent.begin_until)
            for step in steps:
                if not step.missing:
                    self._enqueue(step)
            self._end_if_done(sent)
        self._start()

    async def run(self, grace: float = GRACE) -> None:
        """Execute the steps with as many workers as are allowed, which take the next step that is ready, until it is cancelled.

        Then calls in progress have `grace` seconds to end.
        """
        async with anyio.create_task_group() as self._workers:
            self._start()
            try:
                await anyio.sleep_forever()
            except anyio.get_cancelled_exc_class():
                await self._calls.end(grace)
                raise
            finally:
                self._workers = None

    async def finish(self, grace: float = GRACE) -> None:
        """Execute all steps, in place of `run`."""
        if self.plans:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self.run, grace)
                await self.until(lambda: not self.plans)
                tasks.cancel_scope.cancel()

    async def until(self, holds: Callable[[], bool]) -> None:
        """Wait until that is true after a plan has ended. Raises an exception of our own code that has ended all plans."""
        while True:
            if self._defect is not None:
                defect, self._defect = self._defect, None
                raise defect
            if holds():
                return
            await self._changed.wait()

    async def wait_for_end(self) -> None:
        """Wait until there is a plan in `ended`."""
        await self.until(lambda: bool(self.ended))

    def take_results(self) -> list[tuple[SentPlan, Result]]:
        """The results since they were last taken, each with its plan."""
        results, self._results = self._results, []
        return results

    def take_ended(self) -> Sequence[SentPlan]:
        """The plans that have ended since they were last taken."""
        ended, self.ended = self.ended, []
        return ended

    def drop(self, holds: Callable[[SentPlan], bool]) -> None:
        """Send nothing more of these plans. They end when their calls in progress have."""
        dropped = [sent for sent in self.plans if holds(sent)]
        for sent in dropped:
            self._unreported -= sent.unreported
            sent.is_dropped, sent.open, sent.unreported = True, sent.sending, 0
        if dropped:
            for queue in (self._ready, self._reports, self._last_reports):
                queue.keep(lambda step: not step.plan.is_dropped)
        for sent in dropped:
            self._end_if_done(sent)

    def _enqueue(self, step: SentStep, *, first: bool = False) -> None:
        """Let a step wait for its turn; leave it if it is held back."""
        root, sent = step.plan.plan.root, step.plan
        if not step.is_report:
            if self._refusals.admits(root, step.operation, self.clock.monotonic()):
                self._ready.add(root, step, first=first)
            else:
                self._leave(step)
            return
        self._reports.add(root, step, first=first)
        if sent.unreported:
            sent.reports.append(step)
        else:
            self._last_reports.add(root, step, first=first)

    def _next(self) -> SentStep | None:
        """Take the step to execute next; None if none is ready, or only reports of which enough are being written."""
        step = self._first_ready()
        if step is not None:
            step.taken, step.plan.may_wait = True, False
            step.plan.sending += 1
            self._reporting += step.is_report
        return step

    def _first_ready(self) -> SentStep | None:
        """Remove the step to execute next from its queue."""
        if self._ready and self.clock.monotonic() > self._begin_until:
            self._leave_plans_not_begun()
        if self._ready:
            if self._reporting < REPORTS_BESIDE and (report := _not_taken(self._last_reports)) is not None:
                return report
            return self._ready.take()
        if self._reports and not self._unreported and self.clock.monotonic() > self._report_until:
            self._leave_reports()
        return _not_taken(self._reports) if self._reporting < REPORTS else None

    def _leave_plans_not_begun(self) -> None:
        """Leave the plans of which nothing was sent in time, unless all of it are statuses."""
        at = self.clock.monotonic()
        self.drop(lambda sent: sent.may_wait and sent.begin_until < at)
        self._begin_until = min((sent.begin_until for sent in self.plans if sent.may_wait), default=inf)

    def _leave_reports(self) -> None:
        """Leave all statuses that are not being written."""
        left = [step for step in self._reports if not step.taken]
        self._reports, self._last_reports = Turns(), Turns()
        for step in left:
            step.plan.open -= 1
            self._end_if_done(step.plan)

    def _leave(self, step: SentStep) -> None:
        """Leave a step that no worker has taken, and what comes after it, to a later pass."""
        self._count(step)
        for dependent in _not_skipped_after(step):
            self._count(dependent)

    def _leave_refused(self, root: ResourceId) -> None:
        """Leave the steps of a root that are held back from now on."""
        at = self.clock.monotonic()
        left = [step for step in self._ready if step.plan.plan.root == root and not self._refusals.admits(root, step.operation, at)]
        ids = {id(step) for step in left}
        self._ready.keep(lambda step: id(step) not in ids)
        for step in left:
            self._leave(step)

    def _start(self) -> None:
        """Start a worker for each step that is ready, as long as there may be more."""
        workers = self._workers
        while workers is not None and self._working < self.allowed and (step := self._next()) is not None:
            self._working += 1
            workers.start_soon(self._work, step)

    async def _work(self, first: SentStep) -> None:
        """Perform this step and those that are ready after it; start other workers for what becomes ready meanwhile."""
        step: SentStep | None = first
        while step is not None:
            await checkpoint_if_cancelled()
            try:
                result = await self._calls.perform(
                    step.operation,
                    step.plan.uids,
                    is_busy=lambda: self._working >= self.allowed,
                    on_interrupted=partial(self._record, step),
                )
            except Exception as error:
                self._defect = error
                self.drop(lambda sent: True)
                self._close(step)
                break
            self._settle(step, result)
            step = self._next() if self._working <= self.allowed else None
            self._start()
        self._working -= 1

    def _settle(self, step: SentStep, result: Result) -> None:
        """Record the result of a step; make its dependents ready, or skip them."""
        self._record(step, result)
        if not step.is_report:
            self._report_until = self.clock.monotonic() + REPORTING_TIME
        if result.outcome is Outcome.DONE:
            if isinstance(result.operation, Creation) and result.uid:
                step.plan.uids[result.operation.id] = result.uid
            self._make_ready(step.dependents)
        else:
            self._skip_dependents(step, f"comes after {result.operation.verb} {result.operation.id}, which was not done: {result.error}")
        if self._refusals.note(step.plan.plan.root, result, self.clock.monotonic()):
            self._leave_refused(step.plan.plan.root)
        self._close(step)

    def _close(self, step: SentStep) -> None:
        """Count a step that was sent as done."""
        self._reporting -= step.is_report
        step.plan.sending -= 1
        self._count(step)
        self._end_if_done(step.plan)

    def _count(self, step: SentStep) -> None:
        """Count a step that has a result. Statuses of its plan go on when nothing else of it is left to do."""
        sent = step.plan
        sent.open -= 1
        if step.is_report or sent.is_dropped:
            return
        sent.unreported -= 1
        self._unreported -= 1
        if not sent.unreported:
            for report in sent.reports:
                self._last_reports.add(sent.plan.root, report)
            sent.reports.clear()

    def _end_if_done(self, sent: SentPlan) -> None:
        """End a plan of which every step has a result or is left."""
        if not sent.open and sent in self.plans:
            self.plans.remove(sent)
            self.ended.append(sent)
            self._changed.set()
            self._changed = anyio.Event()

    def _record(self, step: SentStep, result: Result) -> None:
        """Keep the result and report it."""
        self._results.append((step.plan, result))
        step.plan.results.append(result)
        self.on_result(result)

    def _make_ready(self, dependents: Iterable[SentStep]) -> None:
        """Count one more step before these as done. Those with none left are next: what has been begun is completed first."""
        ready = []
        for dependent in dependents:
            dependent.missing -= 1
            if not dependent.missing and not dependent.skipped and not dependent.plan.is_dropped:
                ready.append(dependent)
        for step in reversed(ready):
            self._enqueue(step, first=True)

    def _skip_dependents(self, failed: SentStep, why: str) -> None:
        """Skip all direct and indirect dependents of a step that was not done."""
        for step in () if failed.plan.is_dropped else _not_skipped_after(failed):
            self._record(step, Result(step.operation, Outcome.SKIPPED, error=EngineError(why)))
            self._count(step)


def _not_skipped_after(failed: SentStep) -> Iterator[SentStep]:
    """All direct and indirect dependents of a step that are not skipped yet; from now on they are."""
    pending = list(failed.dependents)
    while pending:
        step = pending.pop()
        if not step.skipped:
            step.skipped = True
            yield step
            pending.extend(step.dependents)


def _not_taken(reports: Turns[SentStep]) -> SentStep | None:
    """Remove the next of these steps that is not being sent; None if there is none."""
    while reports:
        if not (step := reports.take()).taken:
            return step
    return None
