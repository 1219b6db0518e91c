"""Gate: what the connections of one address share: who waits for its client, how many requests are answered, how much is buffered."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import TracebackType

import anyio

from providers.http.address import AddressLimits


class Evicted(ConnectionAbortedError):
    """The connection is closed while it waits for its client: others need its place, or the server stops."""


class ClientWait:
    """One connection's wait for its client: a block that is left after some seconds, and with `Evicted` if the connection must end."""

    def __init__(self, waits: "dict[int, ClientWait]", seconds: float, *, between_requests: bool, on_begin: Callable[[], None]) -> None:
        self.between_requests = between_requests
        self._waits, self._on_begin = waits, on_begin
        self._scope = anyio.move_on_after(seconds)
        self._is_evicted = False

    def evict(self) -> None:
        """End the wait, and with it the connection."""
        self._is_evicted = True
        self._scope.cancel()

    def __enter__(self) -> None:
        self._scope.__enter__()
        self._waits[id(self)] = self
        self._on_begin()

    def __exit__(self, type_: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> bool:
        self._waits.pop(id(self), None)
        is_left = bool(self._scope.__exit__(type_, error, traceback))
        if is_left and self._is_evicted:
            raise Evicted
        return is_left


class Gate:
    """The connections of one address, and their requests."""

    def __init__(self, limits: AddressLimits) -> None:
        self.limits = limits
        self.is_stopping = False
        self._connections = 0
        self._has_room = anyio.Event()
        self._waits: dict[int, ClientWait] = {}
        """The connections that wait for their clients, the longest wait first."""
        self._turns = anyio.Semaphore(limits.requests)
        self._buffered = 0

    async def make_room(self) -> None:
        """Return once another connection may be accepted. Closes the one that has waited for its client the longest, if there are too many.

        So clients that open connections and send nothing cannot keep others out.
        """
        while self._connections >= self.limits.connections:
            if longest := next(iter(self._waits), None):
                self._waits.pop(longest).evict()
            self._has_room = anyio.Event()
            await self._has_room.wait()

    @contextmanager
    def connection(self) -> Iterator[None]:
        """Count a connection while the block runs."""
        self._connections += 1
        try:
            yield
        finally:
            self._connections -= 1
            self._has_room.set()

    def waiting(self, seconds: float, *, between_requests: bool = False) -> ClientWait:
        """The block in which a connection waits for its client, at most that many seconds."""
        wait = ClientWait(self._waits, seconds, between_requests=between_requests, on_begin=self._note_wait)
        if self.is_stopping and between_requests:
            wait.evict()
        return wait

    def _note_wait(self) -> None:
        """There is a connection that can be evicted: `make_room` may wait for one."""
        self._has_room.set()

    @contextmanager
    def buffer(self) -> Iterator["Buffer"]:
        """Space for one body while the block runs."""
        buffer = Buffer(self)
        try:
            yield buffer
        finally:
            self._buffered -= buffer.size

    def reserve(self, size: int) -> bool:
        """Count that many more buffered bytes. False, and nothing is counted, if that is too much."""
        if self._buffered + size > self.limits.buffered_bytes:
            return False
        self._buffered += size
        return True

    async def turn(self) -> bool:
        """ClientWait until another request may be answered. False if that takes too long; otherwise `release` must follow."""
        with anyio.move_on_after(self.limits.turn):
            await self._turns.acquire()
            return True
        return False

    def release(self) -> None:
        """A request has been answered."""
        self._turns.release()

    def stop(self) -> None:
        """Close the connections that are between two requests; the others after their response."""
        self.is_stopping = True
        for wait in self._waits.values():
            if wait.between_requests:
                wait.evict()


class Buffer:
    """The body of one request while it is received."""

    def __init__(self, gate: Gate) -> None:
        self.size = 0
        self._gate = gate
        self._chunks: list[bytes] = []

    def add(self, chunk: bytes) -> bool:
        """Keep a chunk. False if all requests together would have too much."""
        if not self._gate.reserve(len(chunk)):
            return False
        self.size += len(chunk)
        self._chunks.append(chunk)
        return True

    def joined(self) -> bytes:
        """The whole body."""
        return b"".join(self._chunks)
