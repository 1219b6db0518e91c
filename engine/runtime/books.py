"""Books: what a session records about itself in the cluster, besides what its plans write."""

from typing import Protocol


class Books(Protocol):
    """A record in the cluster. It is written by whoever holds the lease. Raises only `engine.errors.EngineError` and its subclasses."""

    @property
    def are_closed(self) -> bool:
        """Whether the record says what it has to say at the end."""
        ...

    async def open(self) -> None:
        """Record what the session is about to do. Called before every pass that writes; nothing is written twice."""
        ...

    async def close(self) -> None:
        """Record that everything is done. Called once, if it is."""
        ...
