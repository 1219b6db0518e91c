"""Session: kr8s's API object, with every request going straight to one aiohttp session.

kr8s is right about kubeconfigs, credentials and TLS, and its lookups and objects work on top of this. What becomes of a request we
decide ourselves: its own session is closed under everybody's feet at each 401 and 403, waits for ever, tries nothing twice and costs
seven times the CPU. Its websockets (exec, port-forward) are not carried.
"""

import random
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Mapping
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager, nullcontext, suppress
from dataclasses import dataclass
from typing import Any, Self, TypeVar
from urllib.parse import urlencode

import anyio
import anyio.to_thread
import httpx
import orjson
from kr8s._api import Api

from engine.errors import ClusterError, InputError, Unauthorized
from engine.runtime.clock import Clock
from providers.kubernetes.discovery import Served, discover
from providers.kubernetes.flight import SingleFlight
from providers.kubernetes.kubeconfig import Source, Target, target
from providers.kubernetes.line import Limits, Line, Stream
from providers.kubernetes.login import Login, login
from providers.kubernetes.patience import pause
from providers.kubernetes.wire import JSON, Answer, Request, encoded

T = TypeVar("T")
Gate = AbstractAsyncContextManager[Any]

FRESH = 60.0
"""Seconds after which credentials that somebody renews in a file are read again."""


@dataclass(slots=True)
class ApiSession:
    """Who we are at the moment, and the line we say it on."""

    login: Login
    line: Line
    since: float
    perishable: bool


class DirectApi(Api):
    """kr8s's `Api` over one aiohttp session. Raises only `engine.errors`.

    A 403 is the answer. After a 401 the credentials are read anew, once for all who were refused, while requests in flight finish on
    the old line. 429, and for reads 5xx and broken connections, are tried again; a write that may have happened never is.
    """

    def __init__(self, source: Source, clock: Clock, limits: Limits) -> None:
        super().__init__(bypass_factory=True)
        self._source = source
        self._clock = clock
        self._limits = limits
        self._slots = anyio.Semaphore(limits.in_flight, fast_acquire=True)
        self._standing: ApiSession | None = None
        self._entered = SingleFlight(self._enter)
        self._renewed = SingleFlight(self._renew)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._standing.login.server if self._standing else 'nowhere yet'}>"

    def __await__(self) -> Generator[Any, None, Self]:
        """Logged in. Where kr8s awaits itself it would log in again, and complain of every version of Kubernetes that is new to it."""

        async def here() -> Self:
            await self._stand()
            return self

        return here().__await__()

    async def aclose(self) -> None:
        """Close every connection."""
        standing, self._standing = self._standing, None
        if standing:
            await standing.line.aclose()

    async def send(self, request: Request) -> Answer:
        """The answer to a request, read to its end. Raises what the server refuses, and `Unreachable`."""
        return await self._insist(request, self._slots, lambda now: now.line.exchange(now.login, request))

    async def stream(self, request: Request) -> Stream:
        """The answer to a request as it comes in; close it. Raises what the server refuses, and `Unreachable`."""
        return await self._insist(request, nullcontext(), lambda now: now.line.open(now.login, request))

    async def _insist(self, request: Request, gate: Gate, attempt: Callable[[ApiSession], Awaitable[T]]) -> T:
        failures, renewed = 0, False
        while True:
            async with gate:
                standing = await self._stand()
                try:
                    return await attempt(standing)
                except ClusterError as error:
                    fault = error
            if isinstance(fault, Unauthorized) and not renewed and await self._accepted_anew(standing):
                renewed = True
                continue
            failures += 1
            wait = pause(request.method, fault, failures, random.random)
            if wait is None:
                raise fault
            await self._clock.sleep(wait)

    async def _stand(self) -> ApiSession:
        """Who we are, read again from files that somebody renews when it is time."""
        standing = self._standing or await self._entered()
        if standing.perishable and self._clock.monotonic() - standing.since >= FRESH:
            with suppress(InputError):  # what we have may still be good; if not, the server says so
                standing = await self._renewed()
        return standing

    async def _accepted_anew(self, refused: ApiSession) -> bool:
        """Whether there are other credentials than those refused. Raises `Unauthorized` when they cannot be had."""
        if self._standing is refused:
            try:
                await self._renewed()
            except InputError as error:
                raise Unauthorized(str(error)) from None
        return self._standing is not refused

    async def _enter(self) -> ApiSession:
        found, entry = await self._log_in()
        self._standing = ApiSession(entry, Line(entry, self._limits), self._clock.monotonic(), found.perishable)
        self.auth = entry.auth
        return self._standing

    async def _renew(self) -> ApiSession:
        """Read the credentials again; the standing stays the same object if they are the same."""
        old = self._standing or await self._enter()
        old.since = self._clock.monotonic()
        found, entry = await self._log_in()
        if (entry.seal, entry.identity) == (old.login.seal, old.login.identity):
            return old
        line = old.line if entry.seal == old.login.seal else Line(entry, self._limits)
        self._standing = ApiSession(entry, line, old.since, found.perishable)
        self.auth = entry.auth
        if line is not old.line:
            await old.line.retire()
        return self._standing

    async def _log_in(self) -> tuple[Target, Login]:
        found = await anyio.to_thread.run_sync(target, self._source)
        return found, await login(found)

    # What follows is kr8s's side: its own objects and lookups come through here.

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
        **asked: Any,
    ) -> AsyncGenerator[httpx.Response]:
        """One request, as kr8s makes it. Raises `engine.errors`, never kr8s's own."""
        path = self._construct_url(version, base, namespace, url).rstrip("/")
        request = _request(method, path, **asked)
        if stream:
            async with aclosing(await self.stream(request)) as flow, aclosing(flow.chunks()) as chunks:
                yield httpx.Response(200, content=chunks)
        else:
            yield _response(await self._answer(request, raise_for_status))

    async def _answer(self, request: Request, raise_for_status: bool) -> Answer:
        try:
            return await self.send(request)
        except ClusterError as refused:
            if raise_for_status or not refused.code:
                raise
            return Answer(refused.code, orjson.dumps(refused.status))

    async def async_api_resources(self) -> list[dict[str, Any]]:
        """What kr8s's lookups search: asked in two requests, with room for groups that do not answer, and for this server alone."""
        return [_as_kr8s_has_it(one) for one in (await discover(self.send)).served]

    async_api_resources_uncached = async_api_resources


def _request(
    method: str,
    path: str,
    *,
    params: Mapping[str, Any] | None = None,
    content: str | bytes | None = None,
    json: Any = None,
    headers: Mapping[str, str] | None = None,
    timeout: float | None = None,
) -> Request:
    given = {key.lower(): value for key, value in (headers or {}).items()}
    body = content.encode() if isinstance(content, str) else content
    return Request(
        method,
        f"{path}?{urlencode(params)}" if params else path,
        encoded(json) if body is None and json is not None else body,
        given.get("content-type", JSON),
        given.get("accept", JSON),
        timeout,
    )


def _response(answer: Answer) -> httpx.Response:
    return httpx.Response(answer.status, content=answer.content, headers={"Content-Type": answer.content_type})


def _as_kr8s_has_it(one: Served) -> dict[str, Any]:
    return {
        "version": one.kind.api_version,
        "kind": one.kind.name,
        "name": one.kind.plural,
        "singularName": one.singular or one.kind.name.lower(),
        "shortNames": list(one.short_names),
        "namespaced": one.kind.namespaced,
        "verbs": sorted(one.verbs),
    }
