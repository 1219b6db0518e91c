"""Session: `engine sync`. Makes passes until every root is settled, or until nothing is left that it could do or wait for.

It holds the lease (with shards: those of the namespaces that it works on) only while it writes. While it waits for the cluster it observes
without the lease, and takes it again when a pass has something to do; that pass is then made anew, for another process may have written in
between.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from typing import Generic

import anyio
from anyio.lowlevel import checkpoint_if_cancelled
from msgspec.structs import replace

from engine.approval.ledger import Ledger
from engine.blueprint import C
from engine.errors import ClusterError, EngineError, Interrupted, LeaseTaken, TimedOut
from engine.ids import ResourceId
from engine.intent import NOTHING, Intent
from engine.memo import Memo
from engine.operation import Outcome, Result, WriteStatus
from engine.plan import Plan, changed
from engine.proposal import proposed_root
from engine.runtime.backoff import SHORTEST_PAUSE, Backoff
from engine.runtime.calls import always
from engine.runtime.clock import cancelled_at
from engine.runtime.execution import WriterMemory, choose, execute, has_unrecorded_warnings, note_unexecuted
from engine.runtime.garbage_collection import tune_gc
from engine.runtime.lease import Lease
from engine.runtime.logs import Log
from engine.runtime.observers import LoopObserver
from engine.runtime.passes import Engine, Pass, observe_and_plan
from engine.runtime.progress import InternalErrors, NoProgress, Progress
from engine.runtime.provider import TRANSIENT
from engine.runtime.settling import is_removing, may_settle, with_observed
from engine.runtime.shard_leases import ShardClaim, held_together
from engine.runtime.sync_report import SyncReport
from engine.runtime.verdicts import Verdicts
from engine.scalers import scalers, unmet
from engine.shards import shards_of
from engine.tick import Plans
from engine.world import empty

LONGEST_PAUSE = 2.0
"""Seconds between two passes while nothing changes."""

MAX_INCOMPLETE = 5
"""After this many incomplete observations in a row the session ends."""


async def sync(
    engine: Engine[C],
    lease: Lease | None,
    intent: Intent = NOTHING,
    *,
    wait: bool = True,
    patience: float = 300.0,
    lock_timeout: float | None = None,
    stop: anyio.CancelScope | None = None,
    progress: Progress | None = None,
    log: Log | None = None,
    ledger: Ledger | None = None,
    verdicts: Verdicts | None = None,
    observer: LoopObserver[C] | None = None,
    before_writing: Callable[[Pass[C]], Awaitable[None]] | None = None,
) -> SyncReport[C]:
    """Make passes until every root is settled; those that write hold the lease (None: no lease is used).

    It writes and waits for the roots in the focus of the intent only, for removed ones until they are gone. `wait=False`: end when nothing
    is left to do now. `patience`: seconds after which it ends in any case. `lock_timeout`: seconds to wait for another holder of the lease
    (None: a little longer than the lease of a dead one lasts). When `stop` is cancelled, calls in
    progress end and the report says what was done. Internal errors are written to `log`.
    `verdicts`: what the server has said of new templates when this sync was previewed; it is not asked again.
    With a `ledger`, only what it approves is done: everything else is left, and in the report.
    `observer` is notified of passes that write, of their results, and of the error with which the session ends; where that, the end of the
    time or `stop` cuts a pass short, also of what was done of it.
    `before_writing` is called once, with the first pass that changes anything but statuses, before its first operation.

    Raises, before the first pass, `LeaseTaken` when another process keeps the lease, `TimedOut`, and errors of the cluster; later ones are
    in the report. A process that takes the lease while we wait does not end the session: it does what is to be done, and we report.
    """
    tune_gc()
    session = _Session(engine, lease, intent, wait, patience, lock_timeout, progress or NoProgress(), log, ledger, verdicts, observer)
    session.before_writing = before_writing
    with stop or anyio.CancelScope() as scope:
        try:
            async with cancelled_at(engine.clock, session.give_up_at) as limit:
                await checkpoint_if_cancelled()
                await session.run()
            if limit.cancelled_caught:
                session.time_out()
                session.tell_cut_short(TimedOut("the time was over"))
        except Exception as error:
            session.tell_end(error)
            if session.last_pass is None or not isinstance(error, EngineError):
                raise
            session.error = error
    if scope.cancelled_caught:
        session.tell_cut_short(Interrupted("it was interrupted"))
    return session.report(interrupted=scope.cancelled_caught)


class _Session(Generic[C]):
    """The state of one session."""

    def __init__(
        self,
        engine: Engine[C],
        lease: Lease | None,
        intent: Intent,
        wait: bool,
        patience: float,
        lock_timeout: float | None,
        progress: Progress,
        log: Log | None,
        ledger: Ledger | None,
        verdicts: Verdicts | None,
        observer: LoopObserver[C] | None,
    ) -> None:
        self.engine = engine
        self.intent = intent
        self.asked = intent.removals.keys() | {proposed_root(manifest).id for manifest in intent.manifests}
        if intent.record is not None:
            self.asked |= {intent.record.id}
        self.wait = wait
        self.give_up_at = engine.clock.monotonic() + patience
        self.lock_timeout = _default_lock_timeout(lease) if lock_timeout is None else lock_timeout
        self.progress = progress
        self.ledger = ledger
        self.observer = observer
        self.before_writing: Callable[[Pass[C]], Awaitable[None]] | None = None
        """What is still to be called before anything but a status is written."""
        self.memory = WriterMemory(Memo(intent.memo), intent.world, verdicts=verdicts or Verdicts())
        self.lease = replace(lease, steps=self.memory.steps) if lease is not None else None
        self.backoff = Backoff(LONGEST_PAUSE)
        self.internal_errors = InternalErrors(log) if log else None
        self.last_pass: Pass[C] | None = None
        self.results: list[Result] = []
        self.reported = 0
        """How many of them the observer knows."""
        self.roots: dict[str, ResourceId] = {}
        """Key of each operation that was to be executed -> the root whose plan it was in."""
        self.incomplete_passes = 0
        """How many passes in a row could not list everything."""
        self.idle_passes = 0
        """How many passes in a row had nothing to do."""
        self.is_over = False
        self.is_executing = False
        self.timed_out = False
        self.error: EngineError | None = None
        self.transient_error: EngineError | None = None
        """Why the cluster cannot be observed, or the lease not be taken again, at the moment."""
        self.has_led = False
        """Whether the lease has been ours."""
        self.claim = ShardClaim(self.lease) if self.lease is not None else None
        """What is known of the leases that the session needs: one, or with shards those of the namespaces in scope."""
        self.lease_taken: LeaseTaken | None = None
        """Who keeps the lease from us at the moment, after it has been ours."""
        self.blocked_since: float | None = None
        """The time since which another process has the lease while only we can do what is left; None: none has it, or waiting helps."""

    async def run(self) -> None:
        """Write while there is something to write, and observe without the lease while there is not, until the session is over."""
        async with self._leading(self.lock_timeout) as may_write:
            await self._write(may_write)
        while not self.is_over:
            if work := await self._wait_for_work():
                await self._write_again(work)

    @asynccontextmanager
    async def _leading(self, lock_timeout: float) -> AsyncIterator[Callable[[], bool]]:
        """Hold the leases while the block runs, and yield what says whether we may write. Without a lease just run the block."""
        if self.claim is None:
            yield always
            return
        on_wait = self.progress.waiting_for_lease
        async with held_together(self.claim, self._needed_shards, patience=lock_timeout, on_wait=on_wait) as hold:
            self.has_led, self.lease_taken, self.blocked_since, self.transient_error = True, None, None, None
            yield hold.may_write

    def _needed_shards(self, count: int) -> Sequence[int]:
        """The shards of the namespaces in scope, if there are `count` shards."""
        scope = self.engine.scope
        return shards_of(scope.namespaces, count, cluster_scoped=any(not kind.namespaced for kind in scope.roots))

    async def _write(self, may_write: Callable[[], bool]) -> None:
        """Make passes and execute them, until one has nothing to do or achieves nothing: then the lease is of more use to others."""
        while True:
            current = await self._observe_and_plan()
            chosen = choose(current, self.memory, self.engine.clock.monotonic())
            self._note(current, chosen)
            if self.before_writing is not None and any(map(changed, chosen)):
                announce, self.before_writing = self.before_writing, None
                with self.memory.steps.waiting():
                    await announce(current)
            self.is_executing = True
            if self.observer is not None:
                self.observer.planned(current, chosen)
            results = await execute(self.engine, self.memory, current, chosen, on_result=self._record, may_write=may_write)
            self._tell_results(current)
            self.is_executing = False
            self._leave_to_scalers(current, results)
            self.is_over = not chosen and self._nothing_to_wait_for(current)
            if self.is_over or not any(result.outcome is Outcome.DONE for result in results):
                return
            await self._pause(current, changed=True)

    def _leave_to_scalers(self, current: Pass[C], results: Iterable[Result]) -> None:
        """Ask no longer for replicas that what scales them has, or has got: whoever scales it then decides, whatever else is left."""
        if asked := self.intent.replicas:
            known = scalers(self.engine.blueprints, current.world.roots, asked)
            self.intent = replace(self.intent, replicas=unmet(asked, known, results))

    def _tell_results(self, current: Pass[C]) -> None:
        """Notify the observer of the results that it does not know yet."""
        if self.observer is not None:
            self.observer.passed(current, self.results[self.reported :])
            self.reported = len(self.results)

    def tell_cut_short(self, why: EngineError) -> None:
        """Notify the observer why a pass was ended before all of it was carried out, if one was, and what was done of it."""
        if self.is_executing:
            self.tell_end(why)

    def tell_end(self, error: Exception) -> None:
        """Notify the observer of the error with which the session ends, and what was done of a pass that it cut short."""
        if self.observer is not None:
            self.observer.failed(error)
        if self.is_executing and self.last_pass is not None:
            self._tell_results(self.last_pass)

    async def _wait_for_work(self) -> Sequence[Plan]:
        """Make passes that write nothing until there is something to do, and return those plans; none if the session is over."""
        while self.last_pass is not None:
            await self._pause(self.last_pass, changed=not self.last_pass.quiet)
            current = await self._observe_and_plan()
            note_unexecuted(self.memory, current)
            work = choose(current, self.memory, self.engine.clock.monotonic())
            self._note(current, work)
            self.is_over = not work and self._nothing_to_wait_for(current)
            if self.is_over:
                return ()
            if work or has_unrecorded_warnings(current, self.memory):
                return work or current.planned.plans
        return ()

    async def _write_again(self, work: Sequence[Plan]) -> None:
        """Take the lease if no other process has it, and write. Otherwise go on waiting: its holder writes.

        Raises `LeaseTaken` when another has it for longer than the lock timeout and waiting does not help, and `EngineError` when we are
        no longer allowed to take it.
        """
        is_ours = False
        try:
            async with self._leading(0.0) as may_write:
                is_ours = True
                await self._write(may_write)
        except LeaseTaken as taken:
            self._note_taken(taken, is_blocking=not self.wait or self._is_ours_alone(work))
            if self.blocked_since is not None and self.engine.clock.monotonic() - self.blocked_since >= self.lock_timeout:
                raise
        except ClusterError as error:
            if is_ours:
                raise
            lease = self.claim.lease if self.claim is not None else self.lease
            failure = EngineError(f"the lease {lease} could not be taken again: {error}")
            if not isinstance(error, TRANSIENT):
                raise failure from error
            self.transient_error = failure

    def _note_taken(self, taken: LeaseTaken, *, is_blocking: bool) -> None:
        """Note that another process has the lease, and report it once for each holder. `is_blocking`: whether waiting does not help."""
        if not is_blocking:
            self.blocked_since = None
        elif self.blocked_since is None:
            self.blocked_since = self.engine.clock.monotonic()
        self.lease_taken, self.transient_error = taken, None
        if self.claim is not None and self.claim.current.is_new():
            self.progress.waiting_for_lease(self.claim.current.holder)

    def _is_ours_alone(self, work: Iterable[Plan]) -> bool:
        """Whether some of the work is to apply our manifests or to remove a root, which no other process does for us."""
        return any(
            (operation.id == plan.root or plan.root in self.intent.replicas) and not isinstance(operation, WriteStatus)
            for plan in work
            if plan.root in self.asked
            for operation in plan.operations
        )

    def _note(self, current: Pass[C], chosen: Sequence[Plan]) -> None:
        """Count the pass and report its plans, of which the chosen ones are to be executed."""
        self.last_pass = current
        self.incomplete_passes = self.incomplete_passes + 1 if current.world.incomplete else 0
        self.idle_passes = 0 if chosen else self.idle_passes + 1
        self.roots.update((operation.key, plan.root) for plan in chosen for operation in plan.operations)
        self.progress.planned(current.planned.plans, sum(len(plan.operations) for plan in chosen))

    def _record(self, result: Result) -> None:
        """Keep the result and report it."""
        self.results.append(result)
        if self.ledger is not None:
            self.ledger.note(result)
        self.progress.applied(result)

    async def _pause(self, current: Pass[C], *, changed: bool) -> None:
        """Wait until the next pass; while another process has the lease, as long as candidates for it wait."""
        seconds = self.backoff.pause(self.engine, self.memory, current, changed=changed)
        if self.lease is not None and (self.lease_taken or self.transient_error):
            seconds = max(seconds, self.lease.durations.retry)
        self.progress.idle(current.planned.plans, seconds)
        with self.memory.steps.waiting():
            await self.engine.clock.sleep(seconds)

    async def _observe_and_plan(self) -> Pass[C]:
        """Observe and plan. After the first pass, transient errors are retried for as long as the session lasts."""
        pause = SHORTEST_PAUSE
        while True:
            try:
                current = await observe_and_plan(self.engine, self.memory, self.intent)
            except TRANSIENT as error:
                if self.last_pass is None:
                    raise
                self.transient_error = error
            else:
                self.transient_error = None
                if self.internal_errors:
                    self.internal_errors.note(current.planned.plans)
                return self._limited(current)
            with self.memory.steps.waiting():
                await self.engine.clock.sleep(pause)
            pause = min(LONGEST_PAUSE, pause * 2)

    def _limited(self, current: Pass[C]) -> Pass[C]:
        """The pass with what was approved; everything else in it is deferred."""
        if self.ledger is None:
            return current
        known = {each.deviation for each in self.ledger.excess}
        limited = replace(current, planned=self.ledger.limited(current.world, current.planned))
        if new := [each for each in self.ledger.excess if each.deviation not in known]:
            self.progress.unapproved(new)
        return limited

    def _nothing_to_wait_for(self, current: Pass[C]) -> bool:
        """Whether nothing is worth waiting for, given that nothing is left to do now."""
        if current.planned.objections:
            return True
        plans = current.planned.plans
        if any(self.memory.debounce.delays(plan.operations) for plan in plans):
            return False
        if self.wait and any(map(self.memory.rejections.awaits_room, (each for plan in plans for each in plan.operations))):
            return False
        if current.world.incomplete:
            return self.incomplete_passes >= MAX_INCOMPLETE
        if self.wait and is_removing(current, self.intent):
            return False
        if self.wait and any(may_settle(plan, observed, current) for plan, observed in with_observed(current)):
            return False
        # What is deferred may depend on something that is about to happen: make one more pass to see whether it does.
        return self.idle_passes > 1 or not any(plan.deferred for plan in plans)

    def time_out(self) -> None:
        """Note that the time is over. Raises `LeaseTaken` or `TimedOut` if it was over before the first pass."""
        if self.last_pass is None:
            if self.claim is not None and not self.has_led and self.claim.current.was_read:
                raise LeaseTaken(f"the lease {self.claim.lease} is {self.claim.current.description}")
            raise TimedOut("the time was over before the cluster could be observed; nothing was written")
        self.timed_out, self.error = True, self.transient_error

    def report(self, *, interrupted: bool) -> SyncReport[C]:
        """What the session did and what is left."""
        last_pass = self.last_pass or Pass(self.engine.clock.now(), 0.0, empty(), Plans(()), frozenset(), self.engine.configuration)
        return SyncReport(
            last_pass,
            tuple(self.results),
            interrupted,
            self.timed_out,
            self.error,
            mid_pass=self.is_executing,
            lease_taken=str(self.lease_taken) if self.timed_out and self.lease_taken else "",
            roots=self.roots,
            unapproved=self.ledger.excess if self.ledger is not None else (),
        )


def _default_lock_timeout(lease: Lease | None) -> float:
    """One lease duration, and one retry period more: the lease of a dead holder expires that long after our first reading of it."""
    return lease.durations.lease + lease.durations.retry if lease is not None else 0.0
