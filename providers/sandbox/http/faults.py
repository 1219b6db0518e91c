"""Faults: what a test asks to go wrong, and how often; the HTTP face makes it so."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal

import msgspec

from providers.sandbox.http.access import ANY, Act
from providers.sandbox.types.status import StatusError, bad_request

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


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that goes wrong with requests, or with the events of watches, that match.

    `answer`: refuse with `code`; `cut`: close the connection without a word; `slow`: take `seconds` of the sandbox's clock.
    With `committed` the write happens first, and only the answer is lost: the case that makes retries dangerous.
    `drop`: leave events of a watch out; `expire`: end a watch with the 410 of a forgotten revision (verb `watch` in both).
    """

    how: How
    verb: str = ANY
    resource: str = ANY
    """`pods`, `pods/status`, or a star."""
    name: str = ANY
    times: int = 1
    """How many requests (or events) it strikes before it is spent."""
    skip: int = 0
    """How many that match it lets pass first."""
    committed: bool = False
    code: int = 500
    reason: str = ""
    """The Status reason; empty: the usual one of the code."""
    message: str = ""
    retry_after: int | None = None
    """Whole seconds for the `Retry-After` header."""
    seconds: float = 0.0

    def strikes(self, act: Act, name: str) -> bool:
        """Whether it is about that act on the object of that name."""
        pairs = ((self.verb, act.verb), (self.resource, act.target), (self.name, name))
        return all(rule in (ANY, asked) for rule, asked in pairs)

    def status(self) -> StatusError:
        """What an `answer` says."""
        message = self.message or f"injected fault: {self.code}"
        return StatusError(
            self.code, self.reason or _REASONS.get(self.code, "InternalError"), message, details={}, retry_after=self.retry_after
        )


@dataclass(slots=True)
class _Armed:
    fault: Fault
    passed: int = 0
    struck: int = 0


class Faults:
    """The faults in wait, oldest first; each request meets at most one."""

    def __init__(self) -> None:
        self._armed: list[_Armed] = []

    def inject(self, *faults: Fault) -> None:
        """Let these go wrong from now on."""
        self._armed += (_Armed(fault) for fault in faults)

    def clear(self) -> None:
        """Nothing goes wrong any more."""
        self._armed = []

    @property
    def waiting(self) -> tuple[Fault, ...]:
        """Those that are not spent yet."""
        return tuple(armed.fault for armed in self._armed)

    def take(self, act: Act, name: str, how: tuple[How, ...]) -> Fault | None:
        """The first fault of those kinds that strikes this act; taking it counts as one time."""
        for armed in self._armed:
            if armed.fault.how in how and armed.fault.strikes(act, name) and not _lets_pass(armed):
                armed.struck += 1
                self._armed = [each for each in self._armed if each.struck < each.fault.times]
                return armed.fault
        return None


def _lets_pass(armed: _Armed) -> bool:
    armed.passed += 1
    return armed.passed <= armed.fault.skip


def read(document: Any) -> Fault:
    """A fault from its JSON form: an object with the fields of `Fault`. Raises the 400 of anything else."""
    known = {field.name for field in fields(Fault)}
    if not isinstance(document, Mapping) or not set(document) <= known:
        raise bad_request(f"a fault is an object with no other fields than {', '.join(sorted(known))}")
    try:
        return msgspec.convert(document, Fault)
    except msgspec.ValidationError as error:
        raise bad_request(f"not a fault: {error}") from error


def written(fault: Fault) -> dict[str, Any]:
    """A fault in its JSON form."""
    return asdict(fault)
