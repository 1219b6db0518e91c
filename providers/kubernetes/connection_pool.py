"""ConnectionPool: the connections to one server that share TLS settings and proxy."""

from asyncio.sslproto import SSLProtocol
from collections.abc import AsyncGenerator
from contextlib import suppress
from socket import SHUT_RDWR, socket
from typing import Any
from weakref import WeakSet

import aiohttp
import anyio
import anyio.lowlevel
from msgspec import Struct
from yarl import URL

from providers.kubernetes.errors import error_of_response, translated
from providers.kubernetes.login import Login
from providers.kubernetes.wire import JSON, HttpRequest, Response

USER_AGENT = "engine"
KEEP_ALIVE = 60.0
"""Seconds that an idle connection is kept; less than API servers keep it, so that they do not close it under a request."""
READ_BUFFER = 1 << 18
"""Bytes that may wait to be read."""
CLOSING_TURNS = 20
"""Turns of the event loop in which aborted connections close their sockets."""
TLS_BUFFER = 1 << 15
"""Bytes that a connection reads at a time: two records of TLS."""

# Each connection keeps such a buffer while it is open. asyncio has no option for it: its 256 KiB would be 11 MiB in `engine run`.
SSLProtocol.max_size = TLS_BUFFER


class RequestLimits(Struct, frozen=True):
    """RequestLimits for requests. Times are in seconds."""

    in_flight: int = 64
    """Concurrent requests; streams are not counted."""
    connect: float = 5.0
    total: float = 30.0
    """For a whole request, from the connection to the last byte of the response."""
    silence: float = 75.0
    """For the next byte of a stream; servers send a bookmark every minute, and two seconds late at most."""
    compressed: bool = False
    """Whether to request compressed responses: good for slow connections, expensive for the server."""


DEFAULT_REQUEST_LIMITS = RequestLimits()


class ConnectionPool:
    """One aiohttp session. A retired pool closes when its last request has ended."""

    def __init__(self, login: Login, limits: RequestLimits) -> None:
        self._server = login.server
        self._server_name = login.server_name
        self._connect = limits.connect
        self._request_timeout = aiohttp.ClientTimeout(total=limits.total, sock_connect=limits.connect)
        self._stream_timeout = aiohttp.ClientTimeout(total=None, sock_connect=limits.connect, sock_read=limits.silence)
        self._in_progress = 0
        self._retired = False
        self._http = aiohttp.ClientSession(
            # No limit here: requests are limited by `DirectApi`, and streams must not use up the connections for requests.
            connector=_Connector(ssl=login.tls, limit=0, keepalive_timeout=KEEP_ALIVE, ttl_dns_cache=30),
            cookie_jar=aiohttp.DummyCookieJar(),
            headers={"User-Agent": USER_AGENT, "Accept-Encoding": "gzip" if limits.compressed else "identity"},
            middlewares=(_sent_once,),
            proxy=login.proxy,
            read_bufsize=READ_BUFFER,
        )

    async def send(self, login: Login, request: HttpRequest) -> Response:
        """The complete response to a request. Raises the server's error, and `Unreachable`."""
        timeout = self._request_timeout
        if request.timeout is not None:
            timeout = aiohttp.ClientTimeout(total=request.timeout, sock_connect=self._connect)
        self._in_progress += 1
        try:
            with translated(self._server):
                response = await _read(await self._request(login, request, timeout))
        finally:
            await self._end_request()
        if response.status >= 300:
            raise error_of_response(response, login.token)
        return response

    async def open(self, login: Login, request: HttpRequest) -> "Stream":
        """The response to a request as a stream; the caller closes it. Raises the server's error, and `Unreachable`."""
        self._in_progress += 1
        try:
            with translated(self._server):
                started = await self._request(login, request, self._stream_timeout)
                if started.status < 300:
                    return Stream(started, self)
                response = await _read(started)
        except BaseException:
            await self._end_request()
            raise
        await self._end_request()
        raise error_of_response(response, login.token)

    async def _request(self, login: Login, request: HttpRequest, limit: aiohttp.ClientTimeout) -> aiohttp.ClientResponse:
        headers = [*login.headers, ("Accept", request.accept)]
        if request.body is not None:
            headers.append(("Content-Type", request.content_type))
        return await self._http.request(
            request.method,
            URL(self._server + request.path, encoded=True),
            data=request.body,
            headers=headers,
            timeout=limit,
            allow_redirects=False,
            server_hostname=self._server_name,
        )

    async def retire(self) -> None:
        """Close the pool when the requests in progress have ended."""
        self._retired = True
        await self._close_if_idle()

    async def _end_request(self) -> None:
        self._in_progress -= 1
        await self._close_if_idle()

    async def _close_if_idle(self) -> None:
        if self._retired and not self._in_progress:
            await self.aclose()

    async def aclose(self) -> None:
        """Close all connections now."""
        with anyio.CancelScope(shield=True):
            await self._http.close()


class Stream:
    """A response that does not end by itself, such as a watch."""

    def __init__(self, response: aiohttp.ClientResponse, pool: ConnectionPool) -> None:
        self._response = response
        self._pool = pool
        self.status = response.status

    async def chunks(self) -> AsyncGenerator[bytes]:
        """The bytes as they arrive. Raises `Unreachable` when the connection breaks or is silent for too long."""
        with translated(str(self._response.url.origin())):
            async for chunk in self._response.content.iter_any():
                yield chunk

    async def aclose(self) -> None:
        """Abort the connection, without waiting for the server to confirm its end."""
        _abort(self._response)
        self._response.close()
        await anyio.lowlevel.cancel_shielded_checkpoint()
        await self._pool._end_request()


async def _sent_once(request: aiohttp.ClientRequest, send: aiohttp.ClientHandlerType) -> aiohttp.ClientResponse:
    """Send the request, and raise what aiohttp does not repeat when the connection breaks.

    It repeats PUT and DELETE. The repetition would get a Conflict or NotFound that the first one caused.
    """
    try:
        return await send(request)
    except aiohttp.ClientConnectorError:
        raise
    except (aiohttp.ClientOSError, aiohttp.ServerDisconnectedError):
        raise aiohttp.ClientConnectionError from None


async def _read(response: aiohttp.ClientResponse) -> Response:
    async with response:
        headers = response.headers
        try:
            return Response(response.status, await response.read(), headers.get("Content-Type", JSON), headers.get("Retry-After", ""))
        except BaseException:
            _abort(response)
            raise


def _abort(response: aiohttp.ClientResponse) -> None:
    """Close the connection of an unfinished response now, without waiting for the server to confirm its end."""
    connection = response.connection
    if connection and connection.transport:
        connection.transport.abort()


class _Connector(aiohttp.TCPConnector):
    """aiohttp's connector, which also closes the connections that aiohttp has forgotten.

    aiohttp closes the connection of a request that was cancelled, and forgets it at once. With TLS it stays open until the server confirms
    the end, for up to 30 seconds: it would outlive the connector, and the event loop, after which nothing closes its socket.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(socket_factory=self._new_socket, **options)
        self._sockets: WeakSet[socket] = WeakSet()

    def _new_socket(self, address: aiohttp.AddrInfoType) -> socket:
        family, type, protocol, _, _ = address
        opened = socket(family, type, protocol)
        self._sockets.add(opened)
        return opened

    async def close(self, *, abort_ssl: bool = True) -> None:
        """Abort all connections. Their sockets are closed when this returns."""
        await super().close(abort_ssl=abort_ssl)
        for _ in range(CLOSING_TURNS):
            opened = [each for each in self._sockets if each.fileno() >= 0]
            if not opened:
                break
            for each in opened:
                with suppress(OSError):  # It is not connected, or no longer.
                    each.shutdown(SHUT_RDWR)
            # Each connection ends, and closes its socket, when the event loop sees the end of its stream.
            await anyio.lowlevel.cancel_shielded_checkpoint()
