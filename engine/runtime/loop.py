"""Loop: for ever. Hold the lease, look, plan, act, sleep until something may have changed; no failure of a pass ends it."""

from collections.abc import Awaitable, Callable
from functools import partial

import anyio

from engine.errors import EngineError
from engine.result import Outcome
from engine.runtime.lease import Lease, held
from engine.runtime.logs import Log
from engine.runtime.passes import SHORTEST_PAUSE, Backoff, Engine, Memory, Pass, act, choose, look, tune_gc
from engine.runtime.progress import Lines, Progress
from engine.runtime.provider import WatchingProvider
from engine.runtime.rejections import Rejections

LONGEST_BACKOFF = 60.0
"""Seconds at most between attempts while passes fail."""


async def run(
    engine: Engine,
    lease: Lease,
    log: Log,
    *,
    interval: float = 60.0,
    stop: anyio.CancelScope | None = None,
    progress: Progress | None = None,
) -> None:
    """Make passes whenever the lease is ours, at least every `interval` seconds, sooner while things move, until `stop` is cancelled.

    Calls under way then come to their end, and the lease is given back. What was refused is tried again every interval.
    """
    tune_gc()
    loop = _Loop(engine, log, interval, progress or Lines(log))
    with stop or anyio.CancelScope():
        while True:
            try:
                async with held(lease, on_wait=loop.progress.contested) as leadership:
                    log.info("leading", lease=f"{lease.namespace}/{lease.name}", identity=lease.identity)
                    await loop.lead(leadership.sure)
            except EngineError as error:
                log.warning("not leading", error=error)
            await engine.clock.sleep(lease.durations.retry)


class _Loop:
    """The state of one loop; it outlives the loss of the lease, for it is only memory."""

    def __init__(self, engine: Engine, log: Log, interval: float, progress: Progress) -> None:
        self.engine = engine
        self.log = log
        self.interval = interval
        self.progress = progress
        # Shorter than the interval, so that each pass that comes by the interval asks again, and those in quick succession do not.
        self.memory = Memory(rejections=Rejections(patience=interval / 2))
        self.said: set[str] = set()

    async def lead(self, may: Callable[[], bool]) -> None:
        """Pass after pass: at every change where the provider notices them, else ever more rarely while nothing moves."""
        provider = self.engine.provider
        if not isinstance(provider, WatchingProvider):
            await self._passes(may, Backoff(self.interval), self.engine.clock.sleep)
            return
        async with provider.following(self.engine.scope):
            await self._passes(may, Backoff(self.interval, patient=True), partial(self._until_changed, provider))

    async def _passes(self, may: Callable[[], bool], pace: Backoff, rest: Callable[[float], Awaitable[None]]) -> None:
        """One pass after the other; one that fails is followed by a longer and longer pause."""
        failed = 0
        while True:
            try:
                await rest(await self._pass(may, pace))
                failed = 0
            except Exception as error:
                failed += 1
                pause = min(LONGEST_BACKOFF, self.interval, 2.0**failed)
                self.log.error("pass failed", error=error, again_in=pause, exc_info=not isinstance(error, EngineError))
                await self.engine.clock.sleep(pause)

    async def _until_changed(self, provider: WatchingProvider, pause: float) -> None:
        """Rest until something has changed, a moment at least, so that what changes together is looked at together."""
        at_once = min(SHORTEST_PAUSE, pause)
        await self.engine.clock.sleep(at_once)
        async with anyio.create_task_group() as waits:

            async def wait() -> None:
                await provider.changed()
                waits.cancel_scope.cancel()

            waits.start_soon(wait)
            await self.engine.clock.sleep(pause - at_once)
            waits.cancel_scope.cancel()

    async def _pass(self, may: Callable[[], bool], pace: Backoff) -> float:
        """One pass. Returns how many seconds may go by until the next."""
        seen = await look(self.engine, self.memory)
        self._say_what_is_new(seen)
        chosen = choose(seen, self.memory, self.engine.clock.monotonic())
        self.progress.planned(seen.planned.plans, sum(len(plan.operations) for plan in chosen))
        results = await act(self.engine, self.memory, seen, chosen, on_result=self.progress.done, may=may)
        moved = not seen.quiet or any(result.outcome is Outcome.DONE for result in results)
        pause = pace.pause(self.engine, self.memory, seen, moved=moved, idle=not chosen)
        self.progress.resting(seen.planned.plans, pause)
        return pause

    def _say_what_is_new(self, seen: Pass) -> None:
        """Warn of what users and operators should know: once, not with every pass."""
        warnings = {f"{kind} objects were not seen completely: {why}" for kind, why in seen.world.incomplete.items()}
        warnings.update(objection.message for objection in seen.planned.objections)
        for plan in seen.planned.plans:
            warnings.update(f"{plan.root}: {objection.message}" for objection in plan.objections)
            warnings.update(f"{plan.root}: {problem}" for problem in plan.problems)
        for warning in sorted(warnings - self.said):
            self.log.warning("held back", reason=warning)
        self.said = warnings
