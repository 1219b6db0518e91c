"""A server in its own thread for the tests, and clients that do as they like."""

import socket
import ssl
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass, field
from http.client import HTTPResponse
from typing import Any

import anyio
import trustme
from anyio import to_thread
from msgspec.structs import replace

from engine.runtime.clock import SystemClock
from providers.certificates.live_context import server_context
from providers.http.address import DEFAULT_LIMITS, Address, AddressLimits
from providers.http.message import JSON, HttpResponse, IncomingRequest, Routes
from providers.http.server import serve
from providers.http.thread import in_thread
from tests.ports import free_port
from tests.waiting import PATIENCE

HOST = "127.0.0.1"


@dataclass
class Events:
    """A log that keeps what it is told."""

    lines: list[tuple[str, Mapping[str, Any]]] = field(default_factory=list)

    def debug(self, event: str, **values: Any) -> None:
        self.lines.append((event, values))

    info = warning = error = debug

    def of(self, event: str) -> list[Mapping[str, Any]]:
        return [values for name, values in self.lines if name == event]


async def echo(request: IncomingRequest) -> HttpResponse:
    """The request, as the handler saw it."""
    return HttpResponse(body=repr((request.method, request.path, dict(request.query), request.body)).encode(), content_type=JSON)


async def count(request: IncomingRequest) -> HttpResponse:
    """The size of the body."""
    return HttpResponse(body=str(len(request.body)).encode())


async def fail(_: IncomingRequest) -> HttpResponse:
    """A defect of the engine."""
    raise ValueError("a secret detail")


ROUTES: Routes = {("GET", "/echo"): echo, ("POST", "/echo"): echo, ("POST", "/count"): count, ("GET", "/fail"): fail}


@dataclass(frozen=True)
class Served:
    """A server, and how to talk to it."""

    address: Address
    log: Events
    authority: trustme.CA

    def connect(self) -> socket.socket:
        """A connection, after the handshake if there is one."""
        raw = socket.create_connection((HOST, self.address.port), timeout=PATIENCE)
        return raw if self.address.tls is None else self.client_context().wrap_socket(raw, server_hostname=HOST)

    def client_context(self) -> ssl.SSLContext:
        """The context of a client that trusts the server's authority."""
        context = ssl.create_default_context()
        self.authority.configure_trust(context)
        return context

    def say(self, *parts: bytes, method: str = "GET") -> "Answer":
        """The response to these bytes on a connection of their own."""
        with closing(self.connect()) as connection:
            for part in parts:
                connection.sendall(part)
            return read_answer(connection, method)


@dataclass(frozen=True)
class Answer:
    """A response; the status is 0 if the server closed the connection without one."""

    status: int
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)


class _Reader:
    """What `HTTPResponse` reads a response from."""

    def __init__(self, file: Any) -> None:
        self._file = file

    def makefile(self, *_: Any, **__: Any) -> Any:
        return self._file


def read_answer(connection: socket.socket, method: str = "GET") -> Answer:
    """The next response on a connection, which has no more than that to read."""
    return read_answers(connection, method)[0]


def read_answers(connection: socket.socket, *methods: str) -> list[Answer]:
    """The next responses on a connection, one for each method."""
    file, answers = connection.makefile("rb"), list[Answer]()
    for method in methods:
        response = HTTPResponse(_Reader(_Unclosed(file)), method=method)  # type: ignore[arg-type]
        try:
            response.begin()
            answers.append(Answer(response.status, response.read(), {key.lower(): value for key, value in response.getheaders()}))
        except (ConnectionError, ssl.SSLError):
            answers.append(Answer(0))
    return answers


class _Unclosed:
    """A file that the reader of one response cannot close, since another response follows."""

    def __init__(self, file: Any) -> None:
        self._file = file

    def close(self) -> None:
        """Stays open."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


def request(path: str = "/echo", method: str = "GET", body: bytes = b"", *headers: str) -> bytes:
    """The bytes of a request."""
    length = [f"Content-Length: {len(body)}"] if body else []
    lines = [f"{method} {path} HTTP/1.1", "Host: engine", *headers, *length]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


@asynccontextmanager
async def served(
    limits: AddressLimits = DEFAULT_LIMITS, routes: Routes = ROUTES, *, tls: bool = False, grace: float = 10.0
) -> AsyncGenerator[Served]:
    """A server while the block runs. `limits` are the default ones except for what they change."""
    authority, context = trustme.CA(), server_context() if tls else None
    if context is not None:
        authority.issue_cert(HOST).configure_cert(context)
    address, log = Address("webhooks", HOST, free_port(), routes, context, limits), Events()

    async def work(started: Any, stop: anyio.Event) -> None:
        await serve((address,), log, SystemClock(), stop=stop, started=started, grace=grace)

    async with in_thread(work):
        yield Served(address, log, authority)


def limited(**changes: Any) -> AddressLimits:
    """The default limits with some changes."""
    return replace(DEFAULT_LIMITS, **changes)


async def elsewhere(function: Any, *arguments: Any) -> Any:
    """Run a client in a thread."""
    return await to_thread.run_sync(lambda: function(*arguments))
