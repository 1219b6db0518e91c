"""Loopback: a small HTTP server whose answers the test defines, and a clock that does not wait."""

import json
import ssl
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
from aiohttp import web

from engine.ids import Kind
from providers.kubernetes.client import KubernetesClient
from providers.kubernetes.connect import connected
from providers.kubernetes.connection_pool import RequestLimits
from providers.kubernetes.kubeconfig import Source
from providers.kubernetes.request_observer import RequestObserver

POD = Kind("", "v1", "Pod", "pods", status=True)

Handler = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]
TOKEN = "token-of-the-test"
SHORT_LIMITS = RequestLimits(in_flight=64, connect=2.0, total=5.0, silence=5.0)


@dataclass(frozen=True)
class Received:
    """One request as the server received it."""

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes
    peer: object

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass
class Loopback:
    """A server, and the requests that it received."""

    url: str
    requests: list[Received] = field(default_factory=list)

    def calls(self) -> list[tuple[str, str]]:
        """Method and path of every request."""
        return [(each.method, each.path) for each in self.requests]


@asynccontextmanager
async def serving(handler: Handler, tls: ssl.SSLContext | None = None, port: int = 0) -> AsyncGenerator[Loopback]:
    """A server on that port (0: any free one) that answers every request with the handler."""
    server = Loopback("")

    async def record(request: web.BaseRequest) -> web.StreamResponse:
        body = await request.read()
        peer = request.transport and request.transport.get_extra_info("peername")
        server.requests.append(Received(request.method, request.path, dict(request.query), dict(request.headers), body, peer))
        return await handler(request)

    runner = web.ServerRunner(web.Server(record, handler_cancellation=True), shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", port, ssl_context=tls)
    await site.start()
    server.url = f"{'https' if tls else 'http'}://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield server
    finally:
        await runner.cleanup()


@dataclass
class InstantClock:
    """A clock on which every sleep ends at once; it records how long each was."""

    elapsed: float = 0.0
    slept: list[float] = field(default_factory=list)

    def now(self) -> datetime:
        return datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=self.elapsed)

    def monotonic(self) -> float:
        return self.elapsed

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.elapsed += seconds
        await anyio.lowlevel.checkpoint()


def kubeconfig(folder: Path, url: str, *, user: Mapping[str, Any] | None = None, name: str = "config", **cluster: Any) -> Path:
    """A kubeconfig with one context, `test`, in namespace `lab`."""
    path = folder / name
    path.write_text(
        json.dumps(
            {
                "clusters": [{"name": "c", "cluster": {"server": url, **{key.replace("_", "-"): value for key, value in cluster.items()}}}],
                "users": [{"name": "u", "user": {"token": TOKEN} if user is None else dict(user)}],
                "contexts": [{"name": "test", "context": {"cluster": "c", "user": "u", "namespace": "lab"}}],
                "current-context": "test",
            }
        )
    )
    return path


@asynccontextmanager
async def client_of(
    config: Path,
    clock: InstantClock | None = None,
    limits: RequestLimits = SHORT_LIMITS,
    observer: RequestObserver | None = None,
) -> AsyncGenerator[KubernetesClient]:
    """A client for the cluster of the kubeconfig."""
    async with connected(Source(str(config), environ={}), clock or InstantClock(), limits=limits, observer=observer) as client:
        yield client


def json_response(body: Any, status: int = 200, **headers: str) -> web.Response:
    return web.json_response(body, status=status, headers={key.replace("_", "-"): value for key, value in headers.items()})


def refused(code: int, reason: str, message: str = "no", **headers: str) -> web.Response:
    """A Status, as an API server sends it."""
    status = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": message, "reason": reason, "code": code}
    return json_response(status, code, **headers)


def pod(name: str) -> dict[str, Any]:
    """A pod with a name and nothing else."""
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}}


async def created(request: web.BaseRequest) -> web.Response:
    """The response to a create: the object with a uid."""
    body = await request.json()
    body["metadata"]["uid"] = f"uid-of-{body['metadata']['name']}"
    return json_response(body, 201)


def close_connection(request: web.BaseRequest) -> web.Response:
    """Close the connection without a response."""
    assert request.transport is not None
    request.transport.abort()
    return web.Response()
