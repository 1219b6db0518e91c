"""Faults: failures that a test injects into requests and watches, each a given number of times."""

from typing import Literal

from msgspec import Struct

from grove_sandbox.http.access import ANY, Action
from grove_sandbox.types.status import StatusError

How = Literal["answer", "cut", "slow", "drop", "expire"]
_REASONS = {
    400: "BadRequest",
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFound",
    409: "Conflict",
    410: "Expired",
    429: "TooManyRequests",
    500: "InternalError",
    503: "ServiceUnavailable",
    504: "Timeout",
}


class InjectedFault(Struct, frozen=True):
    """A failure of the requests, or of the events of watches, that match it.

    `answer`: refuse with `code`; `cut`: close the connection without an answer; `slow`: wait `seconds` of the sandbox's clock.
    With `committed` the write is made first, and only the answer is lost: the case that makes retries dangerous.
    `drop`: leave an event of a watch out; `expire`: end a watch with the 410 of a forgotten revision (verb `watch` in both).
    """

    how: How
    verb: str = ANY
    resource: str = ANY
    """`pods`, `pods/status`, or `*`."""
    name: str = ANY
    times: int = 1
    """How many matching requests (or events) fail."""
    skip: int = 0
    """How many matching ones pass first."""
    committed: bool = False
    code: int = 500
    reason: str = ""
    """The Status reason; empty: the usual one of the code."""
    message: str = ""
    retry_after: int | None = None
    """Whole seconds for the `Retry-After` header."""
    seconds: float = 0.0

    def matches(self, action: Action, name: str) -> bool:
        """Whether the fault is meant for that action on the object of that name."""
        pairs = ((self.verb, action.verb), (self.resource, action.target), (self.name, name))
        return all(pattern in (ANY, value) for pattern, value in pairs)

    def status(self) -> StatusError:
        """The refusal of an `answer`."""
        reason = self.reason or _REASONS.get(self.code, "InternalError")
        message = self.message or f"injected fault: {self.code}"
        return StatusError(self.code, reason, message, details={}, retry_after=self.retry_after)


class _Pending(Struct):
    fault: InjectedFault
    passed: int = 0
    taken: int = 0


class FaultInjector:
    """The faults that are still to happen, oldest first. A request gets one of them at most."""

    def __init__(self) -> None:
        self._pending: list[_Pending] = []

    def inject(self, *faults: InjectedFault) -> None:
        """Add faults."""
        self._pending += (_Pending(fault) for fault in faults)

    def clear(self) -> None:
        """Remove all faults."""
        self._pending = []

    @property
    def pending(self) -> tuple[InjectedFault, ...]:
        """The faults that have not happened as often as they are meant to."""
        return tuple(pending.fault for pending in self._pending)

    def take(self, action: Action, name: str, how: tuple[How, ...]) -> InjectedFault | None:
        """The first fault of those kinds that matches the action, counted as having happened once more."""
        for pending in self._pending:
            if pending.fault.how not in how or not pending.fault.matches(action, name):
                continue
            if pending.passed < pending.fault.skip:
                pending.passed += 1
                continue
            pending.taken += 1
            self._pending = [each for each in self._pending if each.taken < each.fault.times]
            return pending.fault
        return None
