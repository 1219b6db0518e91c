"""FaultyProxy: an HTTP proxy before a real API server that refuses requests and breaks watches when a test says so."""

import asyncio
import json
import ssl
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, Self

import anyio
import anyio.from_thread
from aiohttp import ClientConnectionResetError, ClientError, ClientSession, ClientTimeout, TCPConnector, web
from yarl import URL

from tests.controlplane.cluster import ControlPlane
from tests.ports import free_port
from tests.reliability.audit import ASIDE

HOP_BY_HOP = frozenset({"transfer-encoding", "content-length", "connection", "host"})
"""Headers of one connection; each side of the proxy has its own."""

WRITES = ("POST ", "PUT ", "PATCH ", "DELETE ")


class FaultyProxy:
    """Passes requests on to the API server of a control plane, over plain HTTP on its own side; runs in a thread of its own.

    Use it as a context manager. `requests` counts what has arrived: `list pods`, `watch pods`, `POST pods`...
    """

    def __init__(self, plane: ControlPlane) -> None:
        self._plane = plane
        self._port = free_port()
        self._watched: set[asyncio.Transport] = set()
        """The connections on which watches are open."""
        self._portal_context = anyio.from_thread.start_blocking_portal("asyncio")
        self._ended: anyio.Event | None = None
        self.requests: Counter[str] = Counter()
        self.answers: Counter[int] = Counter()
        """Status code -> how often it was answered."""
        self.written: list[tuple[str, int]] = []
        """The writes and the status codes of their answers, without those of Events and the Lease."""
        self.refuse: Callable[[str], tuple[int, Mapping[str, str]] | None] = lambda request: None
        """Given what a request is counted as, the code and headers with which the proxy answers itself; None: it passes the request on."""

    @property
    def url(self) -> str:
        """Where the proxy listens."""
        return f"http://127.0.0.1:{self._port}"

    def __enter__(self) -> Self:
        self._portal = self._portal_context.__enter__()
        ready = threading.Event()
        self._serving = self._portal.start_task_soon(self._serve, ready)
        while not ready.wait(0.1):
            if self._serving.done():
                self._serving.result()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        if self._ended is not None:
            self._portal.call(self._ended.set)
        self._serving.result()
        self._portal_context.__exit__(kind, error, traceback)

    def cut_watches(self) -> int:
        """Abort the connection of every watch that is open. Returns how many there were."""

        return self._portal.call(self._abort_watches)

    def _abort_watches(self) -> int:
        """The same, in the thread of the proxy."""
        watched = tuple(self._watched)
        for connection in watched:
            connection.abort()
        return len(watched)

    async def _serve(self, ready: threading.Event) -> None:
        self._ended = anyio.Event()
        context = ssl.create_default_context(cafile=self._plane.ca)
        application = web.Application(client_max_size=1 << 24)
        application.router.add_route("*", "/{path:.*}", self._pass_on)
        runner = web.AppRunner(application, access_log=None, shutdown_timeout=0.5, handler_cancellation=True)
        async with ClientSession(
            connector=TCPConnector(ssl=context, limit=0), timeout=ClientTimeout(total=None), auto_decompress=False
        ) as self._upstream:
            await runner.setup()
            await web.TCPSite(runner, "127.0.0.1", self._port).start()
            ready.set()
            await self._ended.wait()
            self._abort_watches()
            await runner.cleanup()

    async def _pass_on(self, request: web.Request) -> web.StreamResponse:
        name = counted_as(request)
        self.requests[name] += 1
        refusal = self.refuse(name)
        if refusal is not None:
            return self._answer(*refusal)
        headers = {key: value for key, value in request.headers.items() if key.lower() not in HOP_BY_HOP}
        url = URL(self._plane.url + request.raw_path, encoded=True)
        try:
            answer = await self._upstream.request(request.method, url, headers=headers, data=await request.read() or None)
        except (OSError, ClientError):
            return self._answer(503, {})
        async with answer:
            self.answers[answer.status] += 1
            if name.startswith(WRITES) and not name.endswith(ASIDE):
                self.written.append((name, answer.status))
            passed = {key: value for key, value in answer.headers.items() if key.lower() not in HOP_BY_HOP}
            response = web.StreamResponse(status=answer.status, headers=passed)
            connection = request.transport
            if name.startswith("watch ") and connection is not None:
                self._watched.add(connection)
            try:
                await response.prepare(request)
                async for piece in answer.content.iter_any():
                    await response.write(piece)
                await response.write_eof()
            except ClientConnectionResetError:
                pass  # The connection was cut, or the client has closed it.
            finally:
                if connection is not None:
                    self._watched.discard(connection)
            return response

    def _answer(self, code: int, headers: Mapping[str, str]) -> web.Response:
        self.answers[code] += 1
        return web.Response(status=code, headers=headers, body=json.dumps(status(code)), content_type="application/json")


def counted_as(request: web.Request) -> str:
    """What a request is counted as: what it does, and the plural of the kind."""
    parts = request.path.strip("/").split("/")
    rest = parts[2:] if parts[0] == "api" else parts[3:]
    if rest[:1] == ["namespaces"] and len(rest) > 2:
        rest = rest[2:]
    kind = rest[0] if rest else request.path
    if request.method != "GET":
        return f"{request.method} {kind}"
    if request.query.get("watch") in ("1", "true"):
        return f"watch {kind}"
    return f"{'list' if len(rest) == 1 else 'get'} {kind}"


def status(code: int) -> dict[str, Any]:
    """The body with which an API server refuses a request."""
    reason = {410: "Expired", 429: "TooManyRequests", 503: "ServiceUnavailable"}.get(code, "Unknown")
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "status": "Failure",
        "reason": reason,
        "code": code,
        "message": f"refused by a test: {code}",
    }
