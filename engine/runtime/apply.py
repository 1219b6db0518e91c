"""Apply: plans become calls, each as soon as what it comes after is done. Nothing is decided here."""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

import anyio
from anyio.lowlevel import checkpoint_if_cancelled

from engine.errors import AlreadyExists, ClusterError, Conflict, EngineError, Invalid, NotFound, ServerFault, Throttled, Unreachable
from engine.ids import ResourceId
from engine.observed import Live
from engine.operation import BoundOwner, Operation, Unknown
from engine.plan import Plan
from engine.result import Outcome, Result
from engine.runtime.clock import Clock
from engine.runtime.provider import Provider
from engine.verb import Verb

GRACE = 3.0
"""Seconds for calls under way to end once we are told to stop; less than a lease lasts beyond the moment at which we give it up."""

ATTEMPTS = 6
"""How often a call is made that the server asks us to make later."""

LONGEST_WAIT = 30.0
"""Seconds that we wait at most before trying again, whatever the server asks for."""

SILENCE = 8
"""After so many calls in a row without an answer the server is away, and the rest is for a later pass."""

MAKES = frozenset({Verb.CREATE, Verb.REPLACE})

OUTDATED: Mapping[Verb, tuple[type[ClusterError], ...]] = {
    Verb.CREATE: (Conflict,),
    # A finalizer is released by a JSON patch that tests what it takes away: where that has changed, the patch is invalid.
    Verb.RELEASE: (Conflict, NotFound, Invalid),
}
"""The answers that say no more than that the object is not as it was judged; of verbs not named: that it changed or has gone."""


def unheard(result: Result) -> None:
    """For when nobody listens."""


def always() -> bool:
    """For when nobody can forbid it."""
    return True


async def apply(
    plans: Iterable[Plan],
    provider: Provider,
    clock: Clock,
    *,
    concurrency: int = 24,
    grace: float = GRACE,
    on_result: Callable[[Result], None] = unheard,
    may: Callable[[], bool] = always,
) -> list[Result]:
    """Make the calls of the plans, at most `concurrency` at a time, each after those that its edges name.

    What comes after an operation that did not happen is skipped, and says why; everything else goes on. `may` is intended right before
    each call whether we still may write. When cancelled, nothing new begins and calls under way have `grace` seconds to end;
    `on_result` has then heard of everything that was tried.
    """
    walk = _Walk(provider, clock, on_result, may, [step for plan in plans for step in _steps(plan)])
    await walk.run(concurrency, grace)
    return walk.results


@dataclass(slots=True, eq=False)
class _Step:
    """An operation, how many must still come before it, and which come after it."""

    operation: Operation
    uids: dict[ResourceId, str]
    missing: int = 0
    dependents: list["_Step"] = field(default_factory=list)
    skipped: bool = False


def _steps(plan: Plan) -> list[_Step]:
    """The operations of a plan, tied together; they share the uids of what they make."""
    uids: dict[ResourceId, str] = {}
    steps = {operation.key: _Step(operation, uids) for operation in plan.operations}
    for step in steps.values():
        for before in (steps[key] for key in step.operation.after if key in steps):
            before.dependents.append(step)
            step.missing += 1
    return list(steps.values())


@dataclass(slots=True, eq=False)
class _Flight:
    """A call under way: out of reach of a cancellation, until its grace is over."""

    scope: anyio.CancelScope = field(default_factory=lambda: anyio.CancelScope(shield=True))
    landed: anyio.Event = field(default_factory=anyio.Event)


class _Walk:
    """The state of one walk: what may begin, what is under way, what came of the rest."""

    def __init__(
        self, provider: Provider, clock: Clock, on_result: Callable[[Result], None], may: Callable[[], bool], steps: list[_Step]
    ) -> None:
        self.provider = provider
        self.clock = clock
        self.on_result = on_result
        self.may = may
        self.steps = steps
        self.results: list[Result] = []
        self.flights: set[_Flight] = set()
        self.unanswered = 0
        self.finished = anyio.Event()
        self.ready, self.queue = anyio.create_memory_object_stream[_Step](math.inf)

    async def run(self, concurrency: int, grace: float) -> None:
        """Walk to the end, or as far as we are let. Workers share a queue: thousands of operations need no thousands of tasks."""
        with self.ready, self.queue:
            if not self.steps:
                return
            for step in self.steps:
                if not step.missing:
                    self.ready.send_nowait(step)
            async with anyio.create_task_group() as workers:
                for _ in range(min(concurrency, len(self.steps))):
                    workers.start_soon(self._work)
                try:
                    await self.finished.wait()
                except anyio.get_cancelled_exc_class():
                    await self._land(grace)
                    raise

    async def _land(self, grace: float) -> None:
        """Let what is in the air come down; what does not in time is cut off."""
        with anyio.move_on_after(grace, shield=True):
            for flight in tuple(self.flights):
                await flight.landed.wait()
        for flight in self.flights:
            flight.scope.cancel()

    async def _work(self) -> None:
        async for step in self.queue:
            await checkpoint_if_cancelled()
            self._settle(step, await self._perform(step))

    def _settle(self, step: _Step, result: Result) -> None:
        """Take note of a result, and let go or skip what comes after it."""
        self._note(result)
        if result.outcome is Outcome.DONE:
            if result.operation.verb in MAKES and result.live is not None:
                step.uids[result.operation.id] = result.live["metadata"]["uid"]
            self._let_go(step.dependents)
        else:
            self._skip(step, f"comes after {_spoken(result.operation)}, which did not happen: {result.error}")
        if len(self.results) == len(self.steps):
            self.ready.close()
            self.finished.set()

    def _note(self, result: Result) -> None:
        self.results.append(result)
        self.on_result(result)

    def _let_go(self, dependents: Iterable[_Step]) -> None:
        for dependent in dependents:
            dependent.missing -= 1
            if not dependent.missing and not dependent.skipped:
                self.ready.send_nowait(dependent)

    def _skip(self, failed: _Step, why: str) -> None:
        """Skip all that comes after a step that did not happen, however far down."""
        pending = list(failed.dependents)
        while pending:
            step = pending.pop()
            if not step.skipped:
                step.skipped = True
                self._note(Result(step.operation, Outcome.SKIPPED, error=EngineError(why)))
                pending.extend(step.dependents)

    async def _perform(self, step: _Step) -> Result:
        """Make the call, and make it again as long as the server asks us to come later."""
        result = await self._call(step)
        for _ in range(ATTEMPTS - 1):
            if not isinstance(result.error, Throttled):
                break
            await self.clock.sleep(min(result.error.retry_after or 1.0, LONGEST_WAIT))
            result = await self._call(step)
        return result

    async def _call(self, step: _Step) -> Result:
        """Make the call if we may; once begun, it is not torn by a cancellation but given its grace."""
        if not self.may():
            return Result(step.operation, Outcome.SKIPPED, error=EngineError("we no longer hold the lease"))
        if self.unanswered >= SILENCE:
            return Result(step.operation, Outcome.SKIPPED, error=Unreachable("the server has stopped answering"))
        flight = _Flight()
        self.flights.add(flight)
        try:
            with flight.scope:
                result = await _execute(step.operation, step.uids, self.provider)
                self.unanswered = self.unanswered + 1 if isinstance(result.error, Unreachable) else 0
                return result
        finally:
            self.flights.discard(flight)
            flight.landed.set()
        return Result(step.operation, Outcome.FAILED, error=Unreachable("interrupted before the server answered: it may have happened"))


async def _execute(operation: Operation, uids: Mapping[ResourceId, str], provider: Provider) -> Result:
    """The call, and its answer as one of the ways in which an operation may end."""
    try:
        return Result(operation, Outcome.DONE, await provider.execute(operation, uids))
    except AlreadyExists as error:
        return await _look_who_is_there(operation, uids, provider, error, otherwise=Outcome.CONFLICT)
    except (ServerFault, Unreachable) as error:
        if operation.verb is Verb.CREATE:
            return await _look_who_is_there(operation, uids, provider, error, otherwise=Outcome.FAILED)
        return Result(operation, Outcome.FAILED, error=error)
    except ClusterError as error:
        stale = isinstance(error, OUTDATED.get(operation.verb, (Conflict, NotFound)))
        return Result(operation, Outcome.CONFLICT if stale else Outcome.FAILED, error=error)


async def _look_who_is_there(
    operation: Operation, uids: Mapping[ResourceId, str], provider: Provider, error: ClusterError, *, otherwise: Outcome
) -> Result:
    """A create did not simply succeed: it may have, earlier, and the answer was lost. The object that has the name tells.

    If it is the one we intended for, the operation is done. If it is another, its name is taken: the result carries that object, so that
    the next plan knows of it.
    """
    try:
        found = await provider.look(operation.id)
    except ClusterError:
        return Result(operation, Outcome.FAILED, error=error)
    if found is None:
        return Result(operation, otherwise, error=error)
    if _is_what_was_asked_for(found, operation, uids):
        return Result(operation, Outcome.DONE, found.body)
    taken = AlreadyExists(f"{operation.id} {_held_by(found)}")
    # What roots share is made by whichever of them comes first: the others look again, and join.
    return Result(operation, Outcome.CONFLICT, None if _is_shared(operation) else found.body, taken)


def _is_shared(operation: Operation) -> bool:
    return bool(operation.owners) and not any(reference.owner.controller for reference in operation.owners)


def _is_what_was_asked_for(found: Live, operation: Operation, uids: Mapping[ResourceId, str]) -> bool:
    """Whether it stays, has the owners that we would have set, and every label that we intended for."""
    owners = {(_uid(reference, uids), reference.owner.controller) for reference in operation.owners}
    labels = operation.body.get("metadata", {}).get("labels", {})
    return (
        found.deleting_since is None
        and owners <= {(owner.uid, owner.controller) for owner in found.owners}
        and labels.items() <= found.labels.items()
    )


def _uid(reference: BoundOwner, uids: Mapping[ResourceId, str]) -> str | None:
    return uids.get(reference.uid.id) if isinstance(reference.uid, Unknown) else reference.uid


def _held_by(found: Live) -> str:
    """Who has the name, for people."""
    if found.deleting_since is not None:
        return "is still being deleted"
    if owner := found.controller:
        return f"exists and belongs to {owner.kind}/{owner.name}"
    return "exists and is not ours"


def _spoken(operation: Operation) -> str:
    return f"{operation.verb} {operation.id}"
