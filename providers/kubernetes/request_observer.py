"""RequestObserver: told of every request to an API server, e.g. to count them."""

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class RequestAttempt:
    """One attempt of a request, and how it ended."""

    method: str
    host: str
    """Host and port of the server."""
    code: int
    """The HTTP status; 0: there was no answer."""
    seconds: float
    """The time until the answer was complete; of a stream, until it began."""


class RequestObserver(Protocol):
    """Called where requests are sent; a call must return at once and raise nothing."""

    def answered(self, attempt: RequestAttempt) -> None:
        """An attempt has ended."""
        ...

    def repeated(self, attempt: RequestAttempt) -> None:
        """The request is sent again after this attempt."""
        ...


class NoRequestObserver:
    """A `RequestObserver` that does nothing."""

    def answered(self, attempt: RequestAttempt) -> None:
        """Do nothing."""

    def repeated(self, attempt: RequestAttempt) -> None:
        """Do nothing."""
