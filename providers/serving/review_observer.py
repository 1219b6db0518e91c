"""ReviewObserver: told of requests to webhooks and of the decisions on them, e.g. to count them."""

from typing import Protocol


class ReviewObserver(Protocol):
    """Called in the serving thread; a call must return at once and raise nothing. `webhook` is the path of a webhook that is served."""

    def began(self, webhook: str) -> None:
        """A request has been received."""
        ...

    def ended(self, webhook: str, code: int, seconds: float) -> None:
        """The request has been answered with that HTTP status after that many seconds."""
        ...

    def decided(self, webhook: str, *, allowed: bool) -> None:
        """A review in the request has been answered."""
        ...
