"""Loop: `engine run`. Makes passes while it holds the lease, until it is stopped; a failed pass does not end it.

With shards there is a loop for each shard that the process holds, and one set of watches for all of them.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Set
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from typing import Generic

import anyio
from msgspec.structs import replace

from engine.blueprint import C, root_of
from engine.errors import EngineError
from engine.ids import ResourceId
from engine.memo import Memo, Steps
from engine.observed import World, by_root, unlisted_texts
from engine.operation import Outcome
from engine.plan import noteworthy
from engine.runtime.apply import Sending
from engine.runtime.backoff import REST_OF_EDITS, SHORTEST_PAUSE, Backoff, shortest_pause
from engine.runtime.calls import always
from engine.runtime.execution import Publishing, WriterMemory, begin, choose, execute, note_sent, publish, sender
from engine.runtime.garbage_collection import tune_gc
from engine.runtime.lease import DISABLED, Lease
from engine.runtime.logs import Log, tagged
from engine.runtime.observers import JoinedPasses, LeaseObserver, LoopObserver, Observers
from engine.runtime.passes import Engine, Pass, observe_and_plan
from engine.runtime.portions import LARGE, MOST, Portions
from engine.runtime.progress import InternalErrors, LoggedProgress, Progress
from engine.runtime.provider import DividingProvider, Provider, WatchingProvider
from engine.runtime.refusals import FEW, Refusals, look_for_room
from engine.runtime.rejections import Rejections
from engine.runtime.shard_leases import ShardClaim, establish_layout, held_together
from engine.runtime.sharding import Term, hold_shards
from engine.runtime.steps import SentPlan, is_edited
from engine.shards import Shard
from engine.world_update import LiveChange

SHORTEST_RETRY_PAUSE = 2.0
"""Seconds between a failed pass and the next one."""

LONGEST_RETRY_PAUSE = 60.0
"""Seconds between two passes after many have failed in a row."""

IDLE = 1.0
"""Seconds without a change after which the process counts as idle."""

RELOAD_INTERVAL = 5.0
"""Seconds between two looks at the configuration."""

Reload = Callable[[Engine[C]], Awaitable[Engine[C] | None]]
"""Returns the given engine with another configuration if that has changed, otherwise None. It logs what it refuses."""


async def run(
    engine: Engine[C],
    lease: Lease | None,
    log: Log,
    *,
    interval: float = 60.0,
    stop: anyio.CancelScope | None = None,
    progress: Progress | None = None,
    reload: Reload[C] | None = None,
    observer: LoopObserver[C] | None = None,
    shards: int = 1,
) -> None:
    """Make passes while the lease is ours, at least every `interval` seconds and sooner while objects change, until `stop` is cancelled.

    On cancellation calls in progress end first, and the lease is given back. Without a lease (None) it warns once and always writes.
    `reload` is asked every `RELOAD_INTERVAL` seconds, whether the lease is ours or not; a new configuration is used from the next pass on.
    `observer` is notified of leadership and of every pass. `shards`: into how many shards the namespaces are divided; with more than one,
    `lease` is that of the first shard, and this process holds its share of them.
    """
    tune_gc()
    progress, observer = progress or LoggedProgress(log), observer or Observers()
    loop = _Loop(engine, log, interval, progress, observer)
    with stop or anyio.CancelScope():
        async with anyio.create_task_group() as tasks:
            if lease is not None and shards > 1:
                await _run_sharded(_Sharded(loop), lease, shards, reload)
                return
            if reload is not None:
                tasks.start_soon(follow_configuration, engine, reload, loop.reconfigure, log)
            if lease is None:
                log.warning(DISABLED)
                loop.observer.leading(True)
                await loop.make_passes(always)
            else:
                await _run_as_leader(loop, lease)


async def _run_as_leader(loop: "_Loop[C]", lease: Lease) -> None:
    """Acquire the lease and make passes while it is ours, for ever."""
    claim, on_wait = ShardClaim(replace(lease, steps=loop.memory.steps)), loop.progress.waiting_for_lease
    while True:
        try:
            await establish_layout(claim, 1, on_wait)
            async with held_together(claim, lambda count: tuple(range(count)), patience=None, on_wait=on_wait) as hold:
                if len(hold.leaderships) > 1:
                    continue
                loop.log.info("leading", lease=lease, identity=lease.identity)
                loop.observer.leading(True)
                if isinstance(loop.observer, LeaseObserver):
                    loop.observer.holds(lease.name, True)
                await loop.make_passes(hold.may_write)
        except EngineError as error:
            loop.log.warning("not leading", error=error)
        loop.observer.leading(False)
        if isinstance(loop.observer, LeaseObserver):
            loop.observer.holds(lease.name, False)
        await lease.clock.sleep(lease.durations.retry)


async def follow_configuration(engine: Engine[C], reload: Reload[C], use: Callable[[Engine[C]], None], log: Log) -> None:
    """Call `use` with every new configuration, for ever. `engine` has the configuration that is in use now."""
    while True:
        await engine.clock.sleep(RELOAD_INTERVAL)
        try:
            reloaded = await reload(engine)
        except Exception as error:
            log.error("configuration not reloaded", error=error, exc_info=not isinstance(error, EngineError))
            continue
        if reloaded is not None:
            engine = reloaded
            use(engine)


class _Sharded(Generic[C]):
    """The loops of the shards that this process holds."""

    def __init__(self, template: "_Loop[C]") -> None:
        self.template = template
        """Its engine has the configuration in use, and all namespaces."""
        self.passes = JoinedPasses(template.observer)
        self.planning = anyio.CapacityLimiter(1)
        """Plans are computed one shard at a time: they would only take processor time from each other."""
        self.loops: dict[Shard, _Loop[C]] = {}
        self.part_of: Callable[[Shard], Provider] | None = None
        """Returns the provider of a shard; None: all shards use that of the template."""

    def reconfigure(self, engine: Engine[C]) -> None:
        """Use a new configuration for all shards."""
        self.template.engine = engine
        for shard, loop in self.loops.items():
            scope = replace(engine.scope, shard=shard)
            # The same object while the kinds are the same: then the watches go on.
            scope = loop.engine.scope if scope == loop.engine.scope else scope
            shared = partial(self._share, engine.memory_for_objects)
            loop.reconfigure(replace(engine, provider=loop.engine.provider, scope=scope, planning=self.planning, memory_for_objects=shared))

    def _share(self, memory_for_objects: Callable[[], int | None]) -> int | None:
        """How many bytes the objects of each shard may take: the memory of the process, divided among the shards that it holds."""
        most = memory_for_objects()
        return most // max(1, len(self.loops)) if most is not None else None

    def _engine_of(self, shard: Shard) -> Engine[C]:
        """The engine for a shard, with a provider of its own."""
        engine = self.template.engine
        provider = self.part_of(shard) if self.part_of is not None else engine.provider
        shared = partial(self._share, engine.memory_for_objects)
        scope = replace(engine.scope, shard=shard)
        return replace(engine, provider=provider, scope=scope, planning=self.planning, memory_for_objects=shared)

    async def work(self, term: Term, may_write: Callable[[], bool]) -> None:
        """Make passes over a shard until it is to be given back."""
        template, shard = self.template, term.shard
        log = tagged(template.log, shard=shard.index)
        observer = self.passes.observer(shard)
        progress = template.progress if not isinstance(template.progress, LoggedProgress) else LoggedProgress(log)
        loop = _Loop(self._engine_of(shard), log, template.interval, progress, observer, leaving=term.leaving, steps=term.steps)
        self.loops[shard] = loop
        try:
            await loop.make_passes(may_write)
        finally:
            del self.loops[shard]
            self.passes.forget(shard)


async def _run_sharded(sharded: _Sharded[C], lease: Lease, count: int, reload: Reload[C] | None) -> None:
    """Hold a share of the shards and make passes over each of them, for ever."""
    loop = sharded.template
    provider = loop.engine.provider
    async with AsyncExitStack() as stack:
        tasks = await stack.enter_async_context(anyio.create_task_group())
        if reload is not None:
            tasks.start_soon(follow_configuration, loop.engine, reload, sharded.reconfigure, loop.log)
        if isinstance(provider, DividingProvider):
            sharded.part_of = await stack.enter_async_context(provider.dividing(count))
        await hold_shards(lease, count, sharded.work, loop.log, observer=loop.observer, on_wait=loop.progress.waiting_for_lease)


class _Loop(Generic[C]):
    """The state of one loop. It is kept when the lease is lost, for it is only memory."""

    def __init__(
        self,
        engine: Engine[C],
        log: Log,
        interval: float,
        progress: Progress,
        observer: LoopObserver[C],
        *,
        leaving: anyio.Event | None = None,
        steps: Steps | None = None,
    ) -> None:
        self.engine = engine
        self.log = log
        self.interval = interval
        self.progress = progress
        self.observer = observer
        # Half an interval: a pass that the interval begins tries again what was rejected, and passes in quick succession do not.
        rejections, refusals = Rejections(patience=interval / 2), Refusals(FEW)
        self.memory = WriterMemory(Memo(steps=steps), rejections=rejections, refusals=refusals, portions=Portions(LARGE, MOST))
        self.internal_errors = InternalErrors(log)
        self.blocked: set[tuple[str, str]] = set()
        """What was logged as `blocked` and still applies: the root, or empty for all of them, and the reason."""
        self.reconfigured: Engine[C] | None = None
        """The engine with the configuration to use from the next pass on; None if it has not changed."""
        self.is_reconfigured = anyio.Event()
        self.rest = 0.0
        """Seconds after the last pass before which the next one does not begin, whatever changes."""
        self.rest_of_edits = 0.0
        """The same for the pass after an edit."""
        self.sent: Set[ResourceId] = frozenset()
        """The roots of the plans that were being sent when the last pass began, and of those that it has begun."""
        self.root_kinds = {blueprint.kind.name for blueprint in engine.blueprints}
        self.sending: Sending | None = None
        """What sends plans beside the passes; None: each pass sends its own."""
        self.has_room = anyio.Event()
        """Set when a quota has changed where calls were refused because there was no room."""
        self.last: Pass[C] | None = None
        """The last pass that was executed."""
        self.leaving = leaving or anyio.Event()
        """Set when the passes are to end after the current one."""

    def reconfigure(self, engine: Engine[C]) -> None:
        """Use the configuration of that engine from the next pass on."""
        self.reconfigured = engine
        self.is_reconfigured.set()

    async def make_passes(self, may_write: Callable[[], bool]) -> None:
        """Make passes until the loop is to end: at every change if the provider watches, else with growing pauses while nothing changes.

        When a new configuration needs other kinds, the watches of the old ones end, and everything is listed again.
        """
        while not self.leaving.is_set():
            self._use_new_configuration()
            provider = self.engine.provider
            if not isinstance(provider, WatchingProvider):
                await self._repeat(may_write, Backoff(self.interval), self._pause)
                continue
            async with provider.watching(self.engine.scope), self._sending_beside(may_write):
                await self._repeat(may_write, Backoff(self.interval, watching=True), partial(self._until_changed, provider))

    @asynccontextmanager
    async def _sending_beside(self, may_write: Callable[[], bool]) -> AsyncIterator[None]:
        """Send the plans of passes while the block runs, publish their Events, and look for room.

        At its end Events are published, calls in progress end, and the rest is left.
        """
        sending = self.sending = sender(self.engine, self.memory, on_result=self.progress.applied, may_write=may_write)
        publishing = self.memory.publishing = Publishing()

        async def publish_events(flush: bool) -> None:
            await publish(self.engine, self.memory, sending, flush=flush)

        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(sending.run)
                tasks.start_soon(publishing.run, publish_events)
                tasks.start_soon(look_for_room, self.engine.provider, self.engine.clock, self.memory.refusals, self._note_room, self.log)
                yield
                await publishing.finish()
                tasks.cancel_scope.cancel()
        finally:
            self.sending, self.last, self.memory.carried, self.memory.publishing = None, None, {}, None

    def _note_room(self) -> None:
        self.has_room.set()

    def _use_new_configuration(self) -> None:
        """Plan with the new configuration from now on, if there is one.

        What is left of plans that were made with another one is dropped.
        """
        if self.reconfigured is not None:
            if self.sending is not None:
                self.sending.drop(lambda sent: True)
            self.engine, self.reconfigured, self.is_reconfigured = self.reconfigured, None, anyio.Event()
            self.memory.forget_computed()

    def _needs_other_kinds(self) -> bool:
        """Whether the new configuration needs other kinds than are watched."""
        return self.reconfigured is not None and self.reconfigured.scope is not self.engine.scope

    async def _repeat(self, may_write: Callable[[], bool], backoff: Backoff, pause: Callable[[float], Awaitable[object]]) -> None:
        """Make passes as long as the kinds stay the same; `pause` waits between two of them.

        After failed passes the pauses double from `SHORTEST_RETRY_PAUSE`.
        """
        retry_pause = SHORTEST_RETRY_PAUSE
        while not (self.leaving.is_set() or self._needs_other_kinds()):
            self._use_new_configuration()
            try:
                await pause(await self._pass(may_write, backoff))
                retry_pause = SHORTEST_RETRY_PAUSE
            except Exception as error:
                seconds = min(LONGEST_RETRY_PAUSE, self.interval, retry_pause)
                retry_pause = min(LONGEST_RETRY_PAUSE, retry_pause * 2)
                self.observer.failed(error)
                self.log.error("pass failed", error=error, retry_in=seconds, exc_info=not isinstance(error, EngineError))
                await self._sleep(seconds, self.leaving.wait)

    async def _until_changed(self, provider: WatchingProvider, seconds: float) -> None:
        """Wait for a change, at most `seconds`, and at least for the shortest pause so that one pass sees changes made together."""
        shortest = min(self.rest, seconds)
        at_least = min(self.rest_of_edits, shortest)
        await self._pause(at_least)
        if shortest > at_least and not await self._pause(shortest - at_least, self._edited):
            return
        if seconds - shortest > IDLE and await self._pause(IDLE, provider.changed):
            provider.compact()
            shortest += IDLE
        await self._pause(seconds - shortest, *self._news(provider))

    def _news(self, provider: WatchingProvider) -> list[Callable[[], Awaitable[None]]]:
        """What a pass is made for: a change, while plans are sent of another root than theirs, the end of such a plan, or room."""
        if self.sending is None or not self.memory.carried:
            return [provider.changed, self.has_room.wait]
        return [partial(provider.changed, self._concerns_others), self.sending.wait_for_end, self.has_room.wait]

    async def _edited(self) -> None:
        """Wait until a root for which nothing is sent has been created, edited or deleted since the last observation.

        Its user waits for it, whatever else changes.
        """
        provider = self.engine.provider
        if isinstance(provider, WatchingProvider):
            await provider.changed(self._is_edit, keeping=True)
        else:
            await anyio.sleep_forever()

    def _is_edit(self, change: LiveChange) -> bool:
        """Whether a change is the creation, an edit or the end of a root for which nothing is sent."""
        old, new = change
        if change.id.kind not in self.root_kinds or change.id in self.sent:
            return False
        return old is None or new is None or is_edited(old, new)

    def _concerns_others(self, change: LiveChange) -> bool:
        """Whether a change is about a root for which nothing is sent, or an edit or the end of a root."""
        old, new = change
        if change.id in self.memory.carried:
            return old is None or new is None or is_edited(old, new)
        live = new or old
        return live is None or root_of(self.engine.blueprints, live) not in self.memory.carried

    async def _pause(self, seconds: float, *changes: Callable[[], Awaitable[None]]) -> bool:
        """Wait that many seconds, until one of these returns, until there is a new configuration, or until the loop is to end.

        Returns whether the time has passed.
        """
        return await self._sleep(seconds, *changes, self.is_reconfigured.wait, self.leaving.wait)

    async def _sleep(self, seconds: float, *changes: Callable[[], Awaitable[None]]) -> bool:
        """Wait that many seconds, or until one of these returns. Returns whether the time has passed."""
        has_passed = False
        with self.memory.steps.waiting():
            async with anyio.create_task_group() as tasks:

                async def end_when(change: Callable[[], Awaitable[None]]) -> None:
                    await change()
                    tasks.cancel_scope.cancel()

                for change in changes:
                    tasks.start_soon(end_when, change)
                await self.engine.clock.sleep(seconds)
                has_passed = True
                tasks.cancel_scope.cancel()
        return has_passed

    async def _pass(self, may_write: Callable[[], bool], backoff: Backoff) -> float:
        """Make one pass. Returns the longest pause until the next one, in seconds."""
        if self.sending is not None and self.last is not None and (self.sending.plans or self.sending.ended):
            self.observer.passed(self.last, await note_sent(self.engine, self.memory, self.last, self.sending))
        before, self.has_room, self.sent = self.memory.completed, anyio.Event(), frozenset(self.memory.carried)
        current = await observe_and_plan(self.engine, self.memory, urgent=self._edited)
        self._drop_edited(before)
        self.internal_errors.note(current.planned.plans)
        self._log_blocked(current)
        for root, tried, why in self.memory.verdicts.take_unanswered():
            self.log.warning("not tried", root=str(root), tried=tried, error=why)
        planned_at = self.engine.clock.monotonic()
        chosen = choose(current, self.memory, planned_at)
        self.progress.planned(current.planned.plans, sum(len(plan.operations) for plan in chosen))
        self.observer.planned(current, chosen)
        if self.sending is None:
            results = await execute(self.engine, self.memory, current, chosen, on_result=self.progress.applied, may_write=may_write)
        else:
            self.sent = self.sent.union(plan.root for plan in chosen)
            results = await begin(self.engine, self.memory, current, chosen, self.sending, self._edited)
        self.last = current
        now = self.engine.clock.monotonic()
        self.rest = shortest_pause(current, now - planned_at, has_backlog=self.memory.portions.has_backlog)
        if self.memory.portions.rest(self.rest, now):
            self.rest = SHORTEST_PAUSE
        self.rest_of_edits = min(REST_OF_EDITS if self.memory.portions.plans_large else max(REST_OF_EDITS, current.planning), self.rest)
        carried = self.memory.carried
        changed = any(root not in carried for root in current.changed) or any(
            result.outcome is Outcome.DONE and not carried for result in results
        )
        idle = not (changed if carried else chosen)
        seconds = backoff.pause(self.engine, self.memory, current, changed=changed, idle=idle, shortest=self.rest)
        self.progress.idle(current.planned.plans, seconds)
        self.observer.passed(current, results)
        return seconds

    def _drop_edited(self, before: World | None) -> None:
        """Send nothing more of plans for roots that others have edited or deleted since: the next pass makes others."""
        assert self.memory.world is not None
        if self.sending is None or before is None or not self.memory.carried:
            return
        old, new = by_root(before.roots), by_root(self.memory.world.roots)

        def is_outdated(sent: SentPlan) -> bool:
            was, now = old.get(sent.plan.root), new.get(sent.plan.root)
            return was is not None and (now is None or sent.note_edit(was.root, now.root))

        self.sending.drop(is_outdated)

    def _log_blocked(self, current: Pass[C]) -> None:
        """Log why something cannot be done before a user or operator acts: once, not in every pass."""
        blocked = {
            ("", f"{kind} objects could not be listed completely: {why}") for kind, why in unlisted_texts(current.world.incomplete).items()
        }
        blocked.update(("", objection.message) for objection in current.planned.objections)
        for plan in noteworthy(current.planned.plans):
            if plan.objections or plan.problems or plan.alarms:
                messages = (*(objection.message for objection in plan.objections), *plan.problems, *plan.faults)
                blocked.update((str(plan.root), message) for message in messages)
        for root, reason in sorted(blocked - self.blocked):
            self.log.warning("blocked", reason=reason, **({"root": root} if root else {}))
        self.blocked = blocked
