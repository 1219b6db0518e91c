"""Loop: `engine run`. Makes passes while it holds the lease, until it is stopped; a failed pass does not end it."""

from collections.abc import Awaitable, Callable
from functools import partial

import anyio

from engine.errors import EngineError
from engine.result import Outcome
from engine.runtime.apply import always
from engine.runtime.backoff import SHORTEST_PAUSE, Backoff
from engine.runtime.internal_errors import InternalErrors
from engine.runtime.lease import DISABLED, Lease, held
from engine.runtime.logs import Log
from engine.runtime.memory import Memory
from engine.runtime.observers import LoopObserver, Observers
from engine.runtime.passes import Engine, Pass, choose, execute, observe_and_plan, tune_gc
from engine.runtime.progress import LoggedProgress, Progress
from engine.runtime.provider import WatchingProvider
from engine.runtime.rejections import Rejections

SHORTEST_RETRY_PAUSE = 2.0
"""Seconds between a failed pass and the next one."""

LONGEST_RETRY_PAUSE = 60.0
"""Seconds between two passes after many have failed in a row."""

RELOAD_INTERVAL = 5.0
"""Seconds between two looks at the configuration."""

Reload = Callable[[Engine], Awaitable[Engine | None]]
"""Returns the given engine with another configuration if that has changed, otherwise None. It logs what it refuses."""


async def run(
    engine: Engine,
    lease: Lease | None,
    log: Log,
    *,
    interval: float = 60.0,
    stop: anyio.CancelScope | None = None,
    progress: Progress | None = None,
    reload: Reload | None = None,
    observer: LoopObserver | None = None,
) -> None:
    """Make passes while the lease is ours, at least every `interval` seconds and sooner while objects change, until `stop` is cancelled.

    On cancellation calls in progress end first, and the lease is given back. Without a lease (None) it warns once and always writes.
    `reload` is asked every `RELOAD_INTERVAL` seconds, whether the lease is ours or not; a new configuration is used from the next pass on.
    `observer` is told of leadership and of every pass.
    """
    tune_gc()
    loop = _Loop(engine, log, interval, progress or LoggedProgress(log), observer or Observers())
    with stop or anyio.CancelScope():
        async with anyio.create_task_group() as tasks:
            if reload is not None:
                tasks.start_soon(loop.follow_configuration, reload)
            if lease is None:
                log.warning(DISABLED)
                loop.observer.leading(True)
                await loop.make_passes(always)
            else:
                await _run_as_leader(loop, lease)


async def _run_as_leader(loop: "_Loop", lease: Lease) -> None:
    """Acquire the lease and make passes while it is ours, for ever."""
    while True:
        try:
            async with held(lease, on_wait=loop.progress.waiting_for_lease) as leadership:
                loop.log.info("leading", lease=lease, identity=lease.identity)
                loop.observer.leading(True)
                await loop.make_passes(leadership.may_write)
        except EngineError as error:
            loop.log.warning("not leading", error=error)
        loop.observer.leading(False)
        await lease.clock.sleep(lease.durations.retry)


class _Loop:
    """The state of one loop. It is kept when the lease is lost, for it is only memory."""

    def __init__(self, engine: Engine, log: Log, interval: float, progress: Progress, observer: LoopObserver) -> None:
        self.engine = engine
        self.log = log
        self.interval = interval
        self.progress = progress
        self.observer = observer
        # Half an interval: a pass that the interval begins tries again what was rejected, and passes in quick succession do not.
        self.memory = Memory(rejections=Rejections(patience=interval / 2))
        self.internal_errors = InternalErrors(log)
        self.blocked: set[tuple[str, str]] = set()
        """What was logged as `blocked` and still applies: the root, or empty for all of them, and the reason."""
        self.reconfigured: Engine | None = None
        """The engine with the configuration to use from the next pass on; None if it has not changed."""
        self.is_reconfigured = anyio.Event()

    async def follow_configuration(self, reload: Reload) -> None:
        """Take over every new configuration, for ever."""
        while True:
            await self.engine.clock.sleep(RELOAD_INTERVAL)
            try:
                engine = await reload(self.reconfigured or self.engine)
            except Exception as error:
                self.log.error("configuration not reloaded", error=error, exc_info=not isinstance(error, EngineError))
                continue
            if engine is not None:
                self.reconfigured = engine
                self.is_reconfigured.set()

    async def make_passes(self, may_write: Callable[[], bool]) -> None:
        """Make passes for ever: at every change if the provider watches the cluster, else with growing pauses while nothing changes.

        When a new configuration needs other kinds, the watches of the old ones end, and everything is listed again.
        """
        while True:
            self._use_new_configuration()
            provider = self.engine.provider
            if not isinstance(provider, WatchingProvider):
                await self._repeat(may_write, Backoff(self.interval), self._pause)
                continue
            async with provider.watching(self.engine.scope):
                await self._repeat(may_write, Backoff(self.interval, watching=True), partial(self._until_changed, provider))

    def _use_new_configuration(self) -> None:
        """Plan with the new configuration from now on, if there is one."""
        if self.reconfigured is not None:
            self.engine, self.reconfigured, self.is_reconfigured = self.reconfigured, None, anyio.Event()
            self.memory.forget_computed()

    def _needs_other_kinds(self) -> bool:
        """Whether the new configuration needs other kinds than are watched."""
        return self.reconfigured is not None and self.reconfigured.scope is not self.engine.scope

    async def _repeat(self, may_write: Callable[[], bool], backoff: Backoff, pause: Callable[[float], Awaitable[None]]) -> None:
        """Make passes as long as the kinds stay the same; `pause` waits between two of them.

        After failed passes the pauses double from `SHORTEST_RETRY_PAUSE`.
        """
        retry_pause = SHORTEST_RETRY_PAUSE
        while not self._needs_other_kinds():
            self._use_new_configuration()
            try:
                await pause(await self._pass(may_write, backoff))
                retry_pause = SHORTEST_RETRY_PAUSE
            except Exception as error:
                seconds = min(LONGEST_RETRY_PAUSE, self.interval, retry_pause)
                retry_pause = min(LONGEST_RETRY_PAUSE, retry_pause * 2)
                self.observer.failed(error)
                self.log.error("pass failed", error=error, retry_in=seconds, exc_info=not isinstance(error, EngineError))
                await self.engine.clock.sleep(seconds)

    async def _until_changed(self, provider: WatchingProvider, seconds: float) -> None:
        """Wait for a change, at most `seconds`, and at least for the shortest pause so that one pass sees changes made together."""
        shortest = min(SHORTEST_PAUSE, seconds)
        await self.engine.clock.sleep(shortest)
        await self._pause(seconds - shortest, provider.changed)

    async def _pause(self, seconds: float, *changes: Callable[[], Awaitable[None]]) -> None:
        """Wait that many seconds, until one of these returns, or until there is a new configuration."""
        async with anyio.create_task_group() as tasks:

            async def end_when(change: Callable[[], Awaitable[None]]) -> None:
                await change()
                tasks.cancel_scope.cancel()

            for change in (*changes, self.is_reconfigured.wait):
                tasks.start_soon(end_when, change)
            await self.engine.clock.sleep(seconds)
            tasks.cancel_scope.cancel()

    async def _pass(self, may_write: Callable[[], bool], backoff: Backoff) -> float:
        """Make one pass. Returns the longest pause until the next one, in seconds."""
        current = await observe_and_plan(self.engine, self.memory)
        self.internal_errors.note(current.planned.plans)
        self._log_blocked(current)
        chosen = choose(current, self.memory, self.engine.clock.monotonic())
        self.progress.planned(current.planned.plans, sum(len(plan.operations) for plan in chosen))
        self.observer.planned(current, chosen)
        results = await execute(self.engine, self.memory, current, chosen, on_result=self.progress.applied, may_write=may_write)
        changed = not current.quiet or any(result.outcome is Outcome.DONE for result in results)
        seconds = backoff.pause(self.engine, self.memory, current, changed=changed, idle=not chosen)
        self.progress.idle(current.planned.plans, seconds)
        self.observer.passed(current, results)
        return seconds

    def _log_blocked(self, current: Pass) -> None:
        """Log why something cannot be done before a user or operator acts: once, not in every pass."""
        reasons = {("", f"{kind} objects could not be listed completely: {why}") for kind, why in current.world.incomplete.items()}
        reasons.update(("", objection.message) for objection in current.planned.objections)
        for plan in current.planned.plans:
            if plan.objections or plan.problems or plan.alarms:
                messages = (*(objection.message for objection in plan.objections), *plan.problems, *plan.faults)
                reasons.update((str(plan.root), message) for message in messages)
        for root, reason in sorted(reasons - self.blocked):
            self.log.warning("blocked", reason=reason, **({"root": root} if root else {}))
        self.blocked = reasons
