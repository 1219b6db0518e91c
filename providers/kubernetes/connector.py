"""Connector: opens the connections of a pool, and closes all of them with the pool."""

from asyncio import AbstractEventLoop, BaseTransport, Transport
from collections.abc import Callable
from functools import partial
from typing import Any, cast
from weakref import WeakSet

import aiohttp
import anyio
import anyio.lowlevel
from aiohttp.client_proto import ResponseHandler


class Connector(aiohttp.TCPConnector):
    """aiohttp's connector, which also closes the connections that aiohttp has forgotten.

    aiohttp closes the connection of a request that was cancelled, and forgets it at once. With TLS it stays open until the server confirms
    the end, for up to 30 seconds: it would outlive the connector, and the event loop, after which nothing closes its socket.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._transports: WeakSet[Transport] = WeakSet()
        """Those that are open or closing."""
        self._factory = cast("partial[ResponseHandler]", partial(_Connection, self._opened, loop=self._loop))

    def _opened(self, transport: Transport) -> None:
        """Keep a connection that is open now. If the connector was closed meanwhile, abort it."""
        self._transports.add(transport)
        if self.closed:
            transport.abort()

    async def close(self, *, abort_ssl: bool = True) -> None:
        """Abort all connections. Their sockets are closed when this returns."""
        for transport in self._transports:
            transport.abort()
        await super().close(abort_ssl=abort_ssl)
        # The loop closes the sockets of aborted transports in its next turn.
        await anyio.lowlevel.cancel_shielded_checkpoint()


class _Connection(ResponseHandler):
    """aiohttp's protocol of a connection. Calls `opened` with the transport once it is open, that is after the TLS handshake."""

    def __init__(self, opened: Callable[[Transport], None], loop: AbstractEventLoop) -> None:
        super().__init__(loop)
        self._opened = opened

    def connection_made(self, transport: BaseTransport) -> None:
        super().connection_made(transport)
        self._opened(cast(Transport, transport))
