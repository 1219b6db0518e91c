"""Loopback: a server of a few lines that says exactly what a test wants said, and a clock that nobody waits for."""

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
from providers.kubernetes.kubeconfig import Source
from providers.kubernetes.line import Limits

POD = Kind("", "v1", "Pod", "pods", status=True)

Handler = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]
TOKEN = "token-of-the-test"
BRISK = Limits(in_flight=64, connect=2.0, total=5.0, silence=5.0)


@dataclass(frozen=True)
class Seen:
    """One request as it arrived."""

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
    """A server, and what it was asked."""

    url: str
    seen: list[Seen] = field(default_factory=list)

    def asked(self) -> list[tuple[str, str]]:
        """Method and path of every request."""
        return [(one.method, one.path) for one in self.seen]


@asynccontextmanager
async def serving(handler: Handler, tls: ssl.SSLContext | None = None, port: int = 0) -> AsyncGenerator[Loopback]:
    """A server on that port, or one of its own, that answers everything with the handler."""
    server = Loopback("")

    async def kept(request: web.BaseRequest) -> web.StreamResponse:
        body = await request.read()
        peer = request.transport and request.transport.get_extra_info("peername")
        server.seen.append(Seen(request.method, request.path, dict(request.query), dict(request.headers), body, peer))
        return await handler(request)

    runner = web.ServerRunner(web.Server(kept, handler_cancellation=True), shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", port, ssl_context=tls)
    await site.start()
    server.url = f"{'https' if tls else 'http'}://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield server
    finally:
        await runner.cleanup()


@dataclass
class Turned:
    """A clock on which every sleep is over at once; it keeps how long each was."""

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
async def client_of(config: Path, clock: Turned | None = None, limits: Limits = BRISK) -> AsyncGenerator[KubernetesClient]:
    """A client that the kubeconfig leads to."""
    async with connected(Source(str(config), environ={}), clock or Turned(), limits=limits) as client:
        yield client


def json_answer(body: Any, status: int = 200, **headers: str) -> web.Response:
    return web.json_response(body, status=status, headers={key.replace("_", "-"): value for key, value in headers.items()})


def refused(code: int, reason: str, message: str = "no", **headers: str) -> web.Response:
    """A Status, as an API server sends it."""
    status = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": message, "reason": reason, "code": code}
    return json_answer(status, code, **headers)


def pod(name: str) -> dict[str, Any]:
    """A pod of which nothing is known but its name."""
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}}


async def made(request: web.BaseRequest) -> web.Response:
    """What a server answers to a create: the object, with a uid."""
    body = await request.json()
    body["metadata"]["uid"] = f"uid-of-{body['metadata']['name']}"
    return json_answer(body, 201)


def hang_up(request: web.BaseRequest) -> web.Response:
    """Cut the connection without an answer."""
    assert request.transport is not None
    request.transport.abort()
    return web.Response()
