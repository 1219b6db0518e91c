"""RequestObserver: told of every request to an API server, e.g. to count them."""

from typing import Protocol

from msgspec import Struct


class RequestAttempt(Struct, frozen=True):
    """One attempt of a request, and how it ended."""

    method: str
    path: str
    """The path of the URL with its parameters."""
    host: str
    """Host and port of the server."""
    code: int
    """The HTTP status; 0: there was no answer."""
    seconds: float
    """The time until the answer was complete; of a stream, until it began."""


class RequestObserver(Protocol):
    """Called where requests are sent; a call must return at once and raise nothing."""

    def sent(self, method: str, path: str) -> None:
        """An attempt begins; `path` is that of the URL with its parameters. `answered` or `abandoned` follows."""
        return

    def abandoned(self, method: str, path: str) -> None:
        """An attempt has been cancelled."""
        return

    def answered(self, attempt: RequestAttempt) -> None:
        """An attempt has ended."""
        return

    def repeated(self, attempt: RequestAttempt) -> None:
        """The request is sent again after this attempt."""
        return


class NoRequestObserver(RequestObserver):
    """A `RequestObserver` that does nothing."""


class RequestObservers:
    """A `RequestObserver` that tells several others."""

    def __init__(self, *observers: RequestObserver) -> None:
        self._observers = observers

    def sent(self, method: str, path: str) -> None:
        """Tell all."""
        for observer in self._observers:
            observer.sent(method, path)

    def abandoned(self, method: str, path: str) -> None:
        """Tell all."""
        for observer in self._observers:
            observer.abandoned(method, path)

    def answered(self, attempt: RequestAttempt) -> None:
        """Tell all."""
        for observer in self._observers:
            observer.answered(attempt)

    def repeated(self, attempt: RequestAttempt) -> None:
        """Tell all."""
        for observer in self._observers:
            observer.repeated(attempt)
