"""Calls: sends single operations to a provider. Each answer of the server becomes a result; a doubtful one is looked up."""

import random
from collections.abc import Callable, Mapping

import anyio
from msgspec import Struct, field
from msgspec.structs import replace

from engine.errors import (
    AlreadyExists,
    ClusterError,
    Conflict,
    EngineError,
    Forbidden,
    Invalid,
    NotFound,
    ServerFault,
    Throttled,
    Unreachable,
)
from engine.ids import ResourceId
from engine.observed import Live
from engine.operation import BoundOwner, Create, Creation, Operation, Outcome, Result, Unknown, WriteStatus, is_shared
from engine.paths import stamp
from engine.runtime.call_limit import CallLimit
from engine.runtime.clock import Clock
from engine.runtime.provider import Provider
from engine.verb import Verb

ATTEMPTS = 6
"""How often an operation is sent while the server answers 429. No other layer repeats a throttled write."""
LONGEST_WAIT = 30.0
"""Longest pause in seconds before a throttled operation is sent again, whatever Retry-After says."""
MAX_UNANSWERED = 8
"""After this many calls in a row without an answer the rest of the plans is skipped."""
CHANGED_MEANWHILE: Mapping[Verb, tuple[type[ClusterError], ...]] = {
    Verb.CREATE: (Conflict,),
    # A finalizer is released by a JSON patch that tests what it removes; the server answers Invalid when the test fails.
    Verb.RELEASE: (Conflict, NotFound, Invalid),
}
"""Verb -> the errors which mean that the object changed after it was observed. For verbs not listed: Conflict and NotFound."""


def always() -> bool:
    """The default for `may_write`: true."""
    return True


def ignore_call(_: Operation) -> None:
    """The default for `on_call`."""


class _Call(Struct, eq=False):
    """A call in progress, shielded from cancellation until its grace period is over."""

    scope: anyio.CancelScope = field(default_factory=lambda: anyio.CancelScope(shield=True))
    ended: anyio.Event = field(default_factory=anyio.Event)


class Calls:
    """The calls in progress.

    `may_write` is called before each of them, `on_call` when it is sent; `call_limit` learns from their answers.
    """

    def __init__(
        self,
        provider: Provider,
        clock: Clock,
        call_limit: CallLimit,
        may_write: Callable[[], bool] = always,
        on_call: Callable[[Operation], None] = ignore_call,
    ) -> None:
        self._provider, self._clock, self._call_limit, self._may_write, self._on_call = provider, clock, call_limit, may_write, on_call
        self._calls: set[_Call] = set()
        self._unanswered = 0
        """How many calls in a row had no answer."""

    def try_again(self) -> None:
        """Send calls although the last ones had no answer."""
        self._unanswered = 0

    async def end(self, grace: float) -> None:
        """Wait for the calls in progress, then cancel those that have not ended within `grace` seconds."""
        with anyio.move_on_after(grace, shield=True):
            for call in tuple(self._calls):
                await call.ended.wait()
        for call in self._calls:
            call.scope.cancel()

    async def perform(
        self,
        operation: Operation,
        uids: Mapping[ResourceId, str],
        *,
        is_busy: Callable[[], bool],
        on_interrupted: Callable[[Result], None],
    ) -> Result:
        """The result of an operation that is sent up to `ATTEMPTS` times while the server answers 429.

        `uids` are those of the objects that its plan has created; `is_busy` says whether as many calls are in progress as may be.
        On cancellation between two attempts `on_interrupted` receives the result.
        """
        result = await self._call(operation, uids, is_busy)
        for _ in range(ATTEMPTS - 1):
            if not isinstance(result.error, Throttled):
                break
            await self._wait_to_retry(operation, result.error, on_interrupted)
            result = await self._call(operation, uids, is_busy)
        return result

    async def _wait_to_retry(self, operation: Operation, error: Throttled, on_interrupted: Callable[[Result], None]) -> None:
        """Wait for Retry-After, or a little longer so that the workers do not all come back at once."""
        try:
            await self._clock.sleep(min(error.retry_after or 1.0, LONGEST_WAIT) * random.uniform(1.0, 1.2))
        except anyio.get_cancelled_exc_class():
            on_interrupted(Result(operation, Outcome.FAILED, error=EngineError(f"interrupted before it was sent again: {error}")))
            raise

    async def _call(self, operation: Operation, uids: Mapping[ResourceId, str], is_busy: Callable[[], bool]) -> Result:
        """The result of one call. Once sent it is not cancelled before its grace period is over."""
        if not self._may_write():
            return Result(operation, Outcome.SKIPPED, error=EngineError("we no longer hold the lease"))
        if self._unanswered >= MAX_UNANSWERED:
            return Result(operation, Outcome.SKIPPED, error=Unreachable("the server has stopped answering"))
        call = _Call()
        self._calls.add(call)
        try:
            with call.scope:
                began, busy = self._clock.monotonic(), is_busy()
                self._on_call(operation)
                result = await self._execute(operation, uids)
                ended = self._clock.monotonic()
                self._call_limit.answered(began, ended, result.error, busy=busy)
                self._unanswered = self._unanswered + 1 if isinstance(result.error, Unreachable) else 0
                return replace(result, owner_uid=_owner_uid(operation, uids), sent=(began, ended))
        finally:
            self._calls.discard(call)
            call.ended.set()
        interrupted = "interrupted before the server answered: the write may have been applied"
        return Result(operation, Outcome.FAILED, error=Unreachable(interrupted))

    async def _execute(self, operation: Operation, uids: Mapping[ResourceId, str]) -> Result:
        """The server's answer to one call as a result of the operation."""
        try:
            answer = await self._provider.execute(self._timed(operation), uids)
            # Only its uid is kept: the answers to the operations of a large plan would take more memory than everything observed.
            return Result(operation, Outcome.DONE, uid=answer["metadata"]["uid"] if answer is not None else "")
        except AlreadyExists as error:
            if isinstance(operation, Creation):
                return await result_of_create(operation, uids, self._provider, error, otherwise=Outcome.CONFLICT)
            return Result(operation, Outcome.CONFLICT, error=error)
        except (ServerFault, Unreachable) as error:
            if isinstance(operation, Create):
                return await result_of_create(operation, uids, self._provider, error, otherwise=Outcome.FAILED)
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
        return replace(operation, patch=stamp(operation.patch, self._clock.now().strftime("%Y-%m-%dT%H:%M:%SZ")))


async def result_of_create(
    operation: Creation, uids: Mapping[ResourceId, str], provider: Provider, error: ClusterError, *, otherwise: Outcome
) -> Result:
    """The result of a create that did not plainly succeed, judged by the object that has the name now.

    DONE if it is the object that we meant to create: an earlier answer was lost. CONFLICT with the existing object if the name is
    taken. `otherwise` if there is no such object. `uids`: those of the objects that the same plan has created.
    """
    try:
        existing = await provider.get(operation.id)
    except Forbidden as forbidden:
        return Result(operation, Outcome.FAILED, error=Forbidden(f"{error}; who has the name is not known: {forbidden}"))
    except ClusterError:
        return Result(operation, Outcome.FAILED, error=error)
    if existing is None:
        return Result(operation, otherwise, error=error)
    if _is_the_intended_object(existing, operation, uids):
        return Result(operation, Outcome.DONE, uid=existing.uid)
    conflict = AlreadyExists(f"{operation.id} {_status_of(existing)}")
    # An object that roots share is created by whichever root comes first; the others join it in their next pass.
    return Result(operation, Outcome.CONFLICT, None if is_shared(operation) else existing, conflict)


def _is_the_intended_object(existing: Live, operation: Creation, uids: Mapping[ResourceId, str]) -> bool:
    """Whether the object is not being deleted and has every owner and label that the operation sets."""
    owners = {(_uid(reference, uids), reference.owner.controller) for reference in operation.owners}
    labels = operation.manifest.get("metadata", {}).get("labels", {})
    return (
        existing.deleting_since is None
        and owners <= {(owner.uid, owner.controller) for owner in existing.owners}
        and labels.items() <= existing.labels.items()
    )


def _uid(reference: BoundOwner, uids: Mapping[ResourceId, str]) -> str | None:
    """The uid of an owner; None if the same plan creates it and has not yet."""
    return uids.get(reference.uid.id) if isinstance(reference.uid, Unknown) else reference.uid


def _owner_uid(operation: Operation, uids: Mapping[ResourceId, str]) -> str:
    """The uid of the first owner that the operation gives the object, which may be in `uids`; empty if it gives none."""
    first = next(iter(operation.owners), None)
    return (_uid(first, uids) or "") if first is not None else ""


def _status_of(existing: Live) -> str:
    """Who has the name, as the end of a message."""
    if existing.deleting_since is not None:
        return "is still being deleted"
    if owner := existing.controller:
        return f"exists and belongs to {owner.kind}/{owner.name}"
    return "exists and is not ours"
