"""Line: the connections to one server, opened the way one login asks for, and closed once nobody uses them any more."""

from collections.abc import AsyncGenerator
from dataclasses import dataclass

import aiohttp
import anyio
import anyio.lowlevel
from yarl import URL

from providers.kubernetes.faults import refusal, translated
from providers.kubernetes.login import Login
from providers.kubernetes.wire import JSON, Answer, Request

AGENT = "engine"
KEPT_OPEN = 60.0
"""Seconds that an idle connection is kept; API servers keep theirs for longer, so they do not close it under a request."""
CHUNK = 1 << 18
"""Bytes that may wait to be read."""


@dataclass(frozen=True, slots=True)
class Limits:
    """How much we ask at once, and how long we wait. Times are in seconds."""

    in_flight: int = 32
    """Requests at a time; streams are not counted."""
    connect: float = 5.0
    total: float = 30.0
    """For a whole exchange, from the connection to the last byte."""
    silence: float = 90.0
    """For the next byte of a stream; servers send a bookmark every minute."""
    compressed: bool = False
    """Whether to ask for compressed answers: good over a thin line, and dear for the server."""


USUAL = Limits()


class Line:
    """One aiohttp session. Once retired it closes as soon as the last request under way is done."""

    def __init__(self, login: Login, limits: Limits) -> None:
        self._server = login.server
        self._server_name = login.server_name
        self._limit = aiohttp.ClientTimeout(total=limits.total, sock_connect=limits.connect)
        self._connect = limits.connect
        self._patience = aiohttp.ClientTimeout(total=None, sock_connect=limits.connect, sock_read=limits.silence)
        self._under_way = 0
        self._retired = False
        self._http = aiohttp.ClientSession(
            # No limit here: who asks is counted before, and streams must not use up what is left for requests.
            connector=aiohttp.TCPConnector(ssl=login.tls, limit=0, keepalive_timeout=KEPT_OPEN, ttl_dns_cache=30),
            cookie_jar=aiohttp.DummyCookieJar(),
            headers={"User-Agent": AGENT, "Accept-Encoding": "gzip" if limits.compressed else "identity"},
            proxy=login.proxy,
            read_bufsize=CHUNK,
        )
        # aiohttp sends PUT and DELETE a second time when a connection breaks; the second is answered of the first one's doing.
        self._http._retry_connection = False

    async def exchange(self, login: Login, request: Request) -> Answer:
        """The answer, read to its end. Raises what the server refuses, and `Unreachable`."""
        limit = self._limit
        if request.timeout is not None:
            limit = aiohttp.ClientTimeout(total=request.timeout, sock_connect=self._connect)
        self._under_way += 1
        try:
            with translated(self._server):
                response = await self._ask(login, request, limit)
                answer = await _answer(response)
        finally:
            await self._leave()
        if answer.status >= 300:
            raise refusal(answer, login.token)
        return answer

    async def open(self, login: Login, request: Request) -> "Stream":
        """The answer as it comes in; close it. Raises what the server refuses, and `Unreachable`."""
        self._under_way += 1
        try:
            with translated(self._server):
                response = await self._ask(login, request, self._patience)
                if response.status < 300:
                    return Stream(response, self)
                answer = await _answer(response)
        except BaseException:
            await self._leave()
            raise
        await self._leave()
        raise refusal(answer, login.token)

    async def _ask(self, login: Login, request: Request, limit: aiohttp.ClientTimeout) -> aiohttp.ClientResponse:
        headers = [*login.identity, ("Accept", request.accept)]
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
        """Nobody will ask any more; what is under way may finish."""
        self._retired = True
        await self._close_if_idle()

    async def _leave(self) -> None:
        self._under_way -= 1
        await self._close_if_idle()

    async def _close_if_idle(self) -> None:
        if self._retired and not self._under_way:
            await self.aclose()

    async def aclose(self) -> None:
        """Close now, whatever is under way."""
        with anyio.CancelScope(shield=True):
            await self._http.close()


class Stream:
    """An answer that has no end of its own. Close it."""

    def __init__(self, response: aiohttp.ClientResponse, line: Line) -> None:
        self._response = response
        self._line = line

    async def chunks(self) -> AsyncGenerator[bytes]:
        """The bytes as they come. Raises `Unreachable` when the connection breaks or stays silent for too long."""
        with translated(str(self._response.url.origin())):
            async for chunk in self._response.content.iter_any():
                yield chunk

    async def aclose(self) -> None:
        """Hang up, at once: there is no end to wait for, and a transport that were left to close by itself might outlive the loop."""
        connection = self._response.connection
        if connection and connection.transport:
            connection.transport.abort()
        self._response.close()
        await anyio.lowlevel.cancel_shielded_checkpoint()
        await self._line._leave()


async def _answer(response: aiohttp.ClientResponse) -> Answer:
    async with response:
        headers = response.headers
        return Answer(response.status, await response.read(), headers.get("Content-Type", JSON), headers.get("Retry-After", ""))
