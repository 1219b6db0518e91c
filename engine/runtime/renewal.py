"""Renewal: where a Lease is renewed while work is done under it: in the same event loop, or in a thread that no computation delays."""

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Protocol, TypeVar

import anyio

from engine.runtime.provider import Client

T = TypeVar("T")


class Renewed(Protocol):
    """What is renewed: a `Leadership`."""

    async def keep_renewing(self) -> None:
        """Renew the Lease until it is lost."""
        ...

    async def enforce_deadline(self) -> None:
        """Give the Lease up when its deadline has passed."""
        ...

    def renew_from(self, place: "RenewalPlace | None") -> None:
        """Read and write the Lease from there from now on; None: in the event loop of the work, with its client."""
        ...

    def cancel_work(self) -> None:
        """Cancel the work that is done under the lease. To be called in its event loop."""
        ...


class RenewalPlace(Protocol):
    """Another thread, for the renewal of one Lease."""

    client: Client
    """The connection of that thread."""

    def cancel_work(self) -> None:
        """Let the work be cancelled in its own event loop."""
        ...

    def turns(self) -> int:
        """How often the event loop of the work has made a turn after one of these calls."""
        ...

    def stalled(self, message: str) -> None:
        """End the process: the work hangs, and the Lease has been released."""
        ...


class Renewal(Protocol):
    """A place where Leases are renewed."""

    def renewing(self, leadership: Renewed) -> AbstractAsyncContextManager[None]:
        """Renew the Lease while the block runs."""
        ...

    async def call(self, work: Callable[[], Awaitable[T]]) -> T:
        """Do work on a Lease that is renewed here, and return its result."""
        ...


class SameLoop:
    """Renews in the event loop of the work, with its client."""

    @asynccontextmanager
    async def renewing(self, leadership: Renewed) -> AsyncGenerator[None]:
        """Renew the Lease while the block runs."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(leadership.keep_renewing)
            tasks.start_soon(leadership.enforce_deadline)
            yield
            tasks.cancel_scope.cancel()

    async def call(self, work: Callable[[], Awaitable[T]]) -> T:
        """Do the work."""
        return await work()


IN_THE_SAME_LOOP = SameLoop()
