"""Server: serves all addresses until it is stopped; requests in progress are then answered, within a grace."""

import os
import socket
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from typing import Final

import anyio
from anyio.abc import SocketListener, SocketStream, TaskGroup

from engine.errors import InputError
from engine.report.printable import printable
from engine.runtime.clock import Clock
from engine.runtime.logs import Log
from providers.http.address import ALL_INTERFACES, Address
from providers.http.connection import ClientConnection
from providers.http.gate import Gate

GRACE: Final = 10.0
"""Seconds in which requests in progress are answered after the stop."""
PAUSE_AFTER_ERROR: Final = 0.1
"""Seconds after a connection could not be accepted, e.g. because the process has no file descriptors left."""


def _ignore() -> None:
    """Do nothing."""


async def serve(
    addresses: Sequence[Address],
    log: Log,
    clock: Clock,
    *,
    stop: anyio.Event,
    started: Callable[[], None] = _ignore,
    grace: float = GRACE,
) -> None:
    """Serve the addresses until `stop` is set. `started` is called once all of them are listened on.

    Raises `CannotBind`, before anything is served, if one of them cannot be had.
    """
    sockets = bind(addresses)
    async with anyio.create_task_group() as tasks:
        servers = [_Server(address, bound, log, clock, tasks) for address, bound in zip(addresses, sockets, strict=True)]
        with anyio.CancelScope() as accepting:
            async with anyio.create_task_group() as listeners:
                for server in servers:
                    listeners.start_soon(server.accept)
                started()
                await stop.wait()
                accepting.cancel()
        for server in servers:
            server.gate.stop()
        tasks.cancel_scope.deadline = anyio.current_time() + grace


class _Server:
    """One address: accepts its connections."""

    def __init__(self, address: Address, listening: socket.socket, log: Log, clock: Clock, tasks: TaskGroup) -> None:
        self.gate = Gate(address.limits)
        self._address, self._listening = address, listening
        self._log, self._clock, self._tasks = log, clock, tasks
        self._is_failing = False

    async def accept(self) -> None:
        """Accept connections for ever."""
        async with await SocketListener.from_socket(self._listening) as listener:
            while True:
                await self.gate.make_room()
                try:
                    stream = await listener.accept()
                except OSError as error:
                    await self._pause(error)
                    continue
                self._is_failing = False
                self._tasks.start_soon(self._serve, stream)

    async def _serve(self, stream: SocketStream) -> None:
        with self.gate.connection():
            await ClientConnection(stream, self._address, self.gate, self._log, self._clock).serve()

    async def _pause(self, error: OSError) -> None:
        """Wait a moment; the first of several errors in a row is logged."""
        if not self._is_failing:
            self._log.error("connection not accepted", server=self._address.name, error=error)
        self._is_failing = True
        await self._clock.sleep(PAUSE_AFTER_ERROR)


BACKLOG: Final = 1024
"""Connections that the kernel accepts before we do."""


class CannotBind(InputError):
    """An address cannot be listened on; the text names it and says why."""


def bind(addresses: Iterable[Address]) -> tuple[socket.socket, ...]:
    """A listening socket for each address, in their order. Raises `CannotBind` for the first that cannot be had; then none is kept."""
    with ExitStack() as opened:
        sockets = tuple(opened.enter_context(_listening(address)) for address in addresses)
        opened.pop_all()
        return sockets


def _listening(address: Address) -> socket.socket:
    try:
        if address.host == ALL_INTERFACES:
            return _on_all_interfaces(address.port)
        places = socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, _, _, _, place = places[0]
        return socket.create_server(place[:2], family=family, backlog=BACKLOG)
    except OSError as error:
        raise CannotBind(f"cannot serve {address.name} on {printable(str(address))}: {_reason(error)}") from error


def _reason(error: OSError) -> str:
    """What the system says. The text of `create_server` names the address as well."""
    if error.errno is None or isinstance(error, socket.gaierror):
        return str(error.strerror or error)
    return os.strerror(error.errno)


def _on_all_interfaces(port: int) -> socket.socket:
    """One socket for IPv6 and IPv4, or for IPv4 alone on a machine without IPv6."""
    if socket.has_dualstack_ipv6():
        try:
            return socket.create_server(("", port), family=socket.AF_INET6, dualstack_ipv6=True, backlog=BACKLOG)
        except OSError:
            # IPv6 is compiled in and disabled. If the port is taken, the next attempt fails as well.
            pass
    return socket.create_server(("", port), backlog=BACKLOG)
