"""DirectApi: kr8s's API object, with requests sent over aiohttp.

kr8s reads kubeconfigs, credentials and TLS settings, and its lookups and objects work on top of this class. Requests do not use kr8s's own
HTTP session: it is closed for everybody at each 401 and 403, has no timeout, retries nothing and takes seven times the CPU. Websockets
(exec, port-forward) are not supported.
"""

import random
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Mapping
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager, nullcontext, suppress
from typing import Any, Generic, Self, TypeVar
from urllib.parse import urlencode, urlsplit

import anyio
import anyio.to_thread
import httpx
import orjson
from kr8s.asyncio import Api
from msgspec import Struct, field

from engine.errors import ClusterError, InputError, Unauthorized, Unreachable
from engine.runtime.clock import Clock
from providers.kubernetes.connection_pool import ConnectionPool, RequestLimits, Stream
from providers.kubernetes.discovery import ServedKind, discover
from providers.kubernetes.errors import delay
from providers.kubernetes.kubeconfig import ClusterAccess, Source, cluster_access
from providers.kubernetes.login import Login, login
from providers.kubernetes.request_observer import NoRequestObserver, RequestAttempt, RequestObserver
from providers.kubernetes.wire import JSON, HttpRequest, Response, encoded

T = TypeVar("T", Response, Stream)
Gate = AbstractAsyncContextManager[Any]

MAX_AGE = 60.0
"""Seconds after which credentials from files are read again."""


class ApiSession(Struct):
    """Credentials, and the connections that they are used on."""

    login: Login
    pool: ConnectionPool
    read_at: float
    """When the credentials were read, on the monotonic clock."""
    from_files: bool

    @property
    def host(self) -> str:
        """Host and port of the server."""
        return urlsplit(self.login.server).netloc.rpartition("@")[2]


class DirectApi(Api):
    """kr8s's `Api` over aiohttp. Raises only `engine.errors`.

    After a 401 the credentials are read again, once for all requests that got one; requests in progress finish on the old connections.
    Requests that were never sent are repeated; reads are repeated after 429, 5xx and broken connections as well (`errors.delay`).
    `observer` is told of every attempt.
    """

    def __init__(self, source: Source, clock: Clock, limits: RequestLimits, observer: RequestObserver | None = None) -> None:
        super().__init__(bypass_factory=True)
        self._source = source
        self._clock = clock
        self._limits = limits
        self._observer = observer or NoRequestObserver()
        self._slots = anyio.Semaphore(limits.in_flight, fast_acquire=True)
        self._current: ApiSession | None = None
        self._closed = False
        self._open_once = SingleFlight(self._open)
        self._refresh_once = SingleFlight(self._refresh)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._current.login.server if self._current else 'not connected'}>"

    def __await__(self) -> Generator[Any, None, Self]:
        """Log in. kr8s's own implementation would log in again each time, and warn of every new version of Kubernetes."""

        async def logged_in() -> Self:
            await self._current_session()
            return self

        return logged_in().__await__()

    async def aclose(self) -> None:
        """Close all connections. No request can be sent any more."""
        self._closed = True
        session, self._current = self._current, None
        if session:
            await session.pool.aclose()

    async def send(self, request: HttpRequest) -> Response:
        """The complete response to a request. Raises the server's error, and `Unreachable`."""
        return await self._with_retries(request, self._slots, lambda session: session.pool.send(session.login, request))

    async def stream(self, request: HttpRequest) -> Stream:
        """The response to a request as a stream; the caller closes it. Raises the server's error, and `Unreachable`."""
        return await self._with_retries(request, nullcontext(), lambda session: session.pool.open(session.login, request))

    async def _with_retries(self, request: HttpRequest, gate: Gate, attempt: Callable[[ApiSession], Awaitable[T]]) -> T:
        """The outcome of the last attempt. The gate is free during pauses, so that other requests can pass."""
        failures, refreshed = 0, False
        while True:
            async with gate:
                session = await self._current_session()
                began = self._clock.monotonic()
                self._observer.sent(request.method, request.path)
                try:
                    answer = await attempt(session)
                    self._note(request, session, answer.status, began)
                    return answer
                except ClusterError as raised:
                    error, failed = raised, self._note(request, session, raised.code, began)
                except BaseException:
                    self._observer.abandoned(request.method, request.path)
                    raise
            if isinstance(error, Unauthorized) and not refreshed and await self._has_other_credentials(session):
                refreshed = True
                continue
            failures += 1
            pause = delay(request.method, error, failures, random.random)
            if pause is None:
                raise error
            self._observer.repeated(failed)
            await self._clock.sleep(pause)

    def _note(self, request: HttpRequest, session: ApiSession, code: int, began: float) -> RequestAttempt:
        """Tell the observer of an attempt that ends now. Returns it."""
        attempt = RequestAttempt(request.method, request.path, session.host, code, self._clock.monotonic() - began)
        self._observer.answered(attempt)
        return attempt

    async def _current_session(self) -> ApiSession:
        """The session; credentials from files are read again when they are older than `MAX_AGE`."""
        session = self._current or await self._open_once()
        if session.from_files and self._clock.monotonic() - session.read_at >= MAX_AGE:
            with suppress(InputError):  # The old credentials may still be valid; if not, the server answers 401.
                session = await self._refresh_once()
        return session

    async def _has_other_credentials(self, refused: ApiSession) -> bool:
        """Whether there are now other credentials than those of the session. Raises `Unauthorized` when they cannot be read."""
        if self._current is refused:
            try:
                await self._refresh_once()
            except InputError as error:
                raise Unauthorized(str(error)) from None
        return self._current is not refused

    async def _open(self) -> ApiSession:
        """Log in for the first time."""
        access, entry = await self._log_in()
        self._current = ApiSession(entry, ConnectionPool(entry, self._limits), self._clock.monotonic(), access.from_files)
        self.auth = entry.api.auth
        return self._current

    async def _refresh(self) -> ApiSession:
        """Read the credentials again. The session stays the same object if they are the same."""
        old = self._current or await self._open()
        old.read_at = self._clock.monotonic()
        access, entry = await self._log_in()
        same_connection = entry.connection_digest == old.login.connection_digest
        if same_connection and entry.headers == old.login.headers:
            return old
        pool = old.pool if same_connection else ConnectionPool(entry, self._limits)
        self._current = ApiSession(entry, pool, old.read_at, access.from_files)
        self.auth = entry.api.auth
        if pool is not old.pool:
            await old.pool.retire()
        return self._current

    async def _log_in(self) -> tuple[ClusterAccess, Login]:
        access = await anyio.to_thread.run_sync(cluster_access, self._source)
        entry = await login(access)
        if self._closed:
            raise Unreachable("the client has been closed")
        return access, entry

    # What follows is called by kr8s: its objects and lookups.

    @asynccontextmanager
    async def call_api(
        self,
        method: str = "GET",
        version: str = "v1",
        base: str = "",
        namespace: str | None = None,
        url: str = "",
        raise_for_status: bool = True,
        stream: bool = False,
        **parameters: Any,
    ) -> AsyncGenerator[httpx.Response]:
        """One request, as kr8s makes it. Raises `engine.errors`, never kr8s's own."""
        path = _path(version, base, namespace, url)
        request = _request(method, path, **parameters)
        if stream:
            async with aclosing(await self.stream(request)) as response, aclosing(response.chunks()) as chunks:
                yield httpx.Response(200, content=chunks)
        else:
            yield _as_httpx(await self._response(request, raise_for_status))

    async def _response(self, request: HttpRequest, raise_for_status: bool) -> Response:
        try:
            return await self.send(request)
        except ClusterError as error:
            if raise_for_status or not error.code:
                raise
            return Response(error.code, orjson.dumps(error.status))

    async def async_api_resources(self) -> list[dict[str, Any]]:
        """The kinds of this server for kr8s's lookups; API groups that do not answer are left out."""
        return [_as_kr8s(served) for served in (await discover(self.send)).served]

    async_api_resources_uncached = async_api_resources


def _path(version: str, base: str, namespace: str | None, url: str) -> str:
    """The path that the arguments of `call_api` describe, without a trailing slash."""
    root = base or ("/api" if version == "v1" else "/apis")
    return "/".join(part for part in (root, version, f"namespaces/{namespace}" if namespace else "", url) if part)


def _request(
    method: str,
    path: str,
    *,
    params: Mapping[str, Any] | None = None,
    content: str | bytes | None = None,
    json: Any = None,
    headers: Mapping[str, str] | None = None,
    timeout: float | None = None,
) -> HttpRequest:
    lower = {key.lower(): value for key, value in (headers or {}).items()}
    body = content.encode() if isinstance(content, str) else content
    return HttpRequest(
        method,
        f"{path}?{urlencode(params)}" if params else path,
        encoded(json) if body is None and json is not None else body,
        lower.get("content-type", JSON),
        lower.get("accept", JSON),
        timeout,
    )


def _as_httpx(response: Response) -> httpx.Response:
    return httpx.Response(response.status, content=response.content, headers={"Content-Type": response.content_type})


def _as_kr8s(served: ServedKind) -> dict[str, Any]:
    return {
        "version": served.kind.api_version,
        "kind": served.kind.name,
        "name": served.kind.plural,
        "singularName": served.singular or served.kind.name.lower(),
        "shortNames": list(served.short_names),
        "namespaced": served.kind.namespaced,
        "verbs": sorted(served.verbs),
    }


Shared = TypeVar("Shared")


class _Run(Struct, Generic[Shared], eq=False):
    ended: anyio.Event = field(default_factory=anyio.Event)
    values: list[Shared] = field(default_factory=list)
    error: Exception | None = None


class SingleFlight(Generic[Shared]):
    """Calls an async function at most once at a time; callers that come meanwhile wait for its outcome."""

    __slots__ = ("_function", "_run")

    def __init__(self, function: Callable[[], Awaitable[Shared]]) -> None:
        self._function = function
        self._run: _Run[Shared] | None = None

    async def __call__(self) -> Shared:
        """The outcome of the run in progress, or of a new one. Raises what the function raises."""
        while (run := self._run) is not None:
            await run.ended.wait()
            if run.error:
                raise run.error
            if run.values:
                return run.values[0]
            # The caller that ran the function was cancelled: another one takes over.
        return await self._start()

    async def _start(self) -> Shared:
        run = self._run = _Run[Shared]()
        try:
            value = await self._function()
        except Exception as error:
            run.error = error
            raise
        else:
            run.values.append(value)
            return value
        finally:
            self._run = None
            run.ended.set()
