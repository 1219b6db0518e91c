"""Streams: a watch as a long answer, one JSON line for each event."""

from collections.abc import Callable, Iterable

import anyio
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from providers.sandbox.api.request import WatchEvent, answer
from providers.sandbox.api.watching import Watch
from providers.sandbox.http.access import Act
from providers.sandbox.http.faults import Faults
from providers.sandbox.http.rendering import JSON, Frames
from providers.sandbox.http.world import World
from providers.sandbox.types.status import expired

ABORT = "sandbox.abort"
"""The ASGI extension under which the server lends us the means to drop a connection."""


class Stream(Response):
    """The answer to a watch: it ends with the watch, with its client, or when the server hangs up."""

    media_type = JSON

    def __init__(self, world: World, watch: Watch, frames: Frames, act: Act) -> None:
        super().__init__()
        del self.headers["content-length"]
        self._world, self._watch, self._frames, self._act = world, watch, frames, act

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        async with anyio.create_task_group() as group:
            self._world.streams.add(group.cancel_scope)
            group.start_soon(_until_gone, receive, group.cancel_scope.cancel)
            try:
                await self._run(send)
            except _Cut:
                await Cut()(scope, receive, send)
            finally:
                self._world.streams.discard(group.cancel_scope)
            group.cancel_scope.cancel()
        await send({"type": "http.response.body", "body": b""})

    async def _run(self, send: Send) -> None:
        async with self._watch:
            async for event in self._watch:
                lines, last = self._lines([event, *self._watch.pending()])
                if lines:
                    await send({"type": "http.response.body", "body": lines, "more_body": True})
                if last:
                    return

    def _lines(self, events: Iterable[WatchEvent]) -> tuple[bytes, bool]:
        """The events that have gathered, written at once, and whether the stream ends with them."""
        now = self._world.clock.now()
        lines: list[bytes] = []
        for event in events:
            told, last = _afflicted(event, self._world.faults, self._act)
            if told is not None:
                lines.append(self._frames.line(told, now))
            if last:
                return b"".join(lines), True
        return b"".join(lines), False


class _Cut(Exception):
    """A fault asks for the connection to be cut in the middle of the stream."""


class Cut(Response):
    """No answer at all: the connection is closed without a word."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope["extensions"][ABORT]()
        while (await receive())["type"] != "http.disconnect":
            pass


def _afflicted(event: WatchEvent, faults: Faults, act: Act) -> tuple[WatchEvent | None, bool]:
    """The event that is really sent (None: it is dropped), and whether the stream ends with it. Raises `_Cut`."""
    if event.type in ("BOOKMARK", "ERROR"):
        return event, False
    fault = faults.take(act, str(event.body["metadata"].get("name", "")), ("drop", "expire", "cut"))
    if fault is None:
        return event, False
    if fault.how == "cut":
        raise _Cut
    if fault.how == "drop":
        return None, False
    status = answer(410, expired(fault.message or "too old resource version").body)
    return WatchEvent("ERROR", status.body, status.encoded), True


async def _until_gone(receive: Receive, then: Callable[[], None]) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    then()
