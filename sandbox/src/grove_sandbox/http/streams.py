"""Streams: the response to a watch, one JSON line for each event, and the response that drops the connection."""

from collections.abc import Callable, Iterable

import anyio
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from grove_sandbox.api.request import WatchEvent, answer
from grove_sandbox.api.watching import Watch
from grove_sandbox.http.access import Action
from grove_sandbox.http.backend import Backend
from grove_sandbox.http.faults import FaultInjector
from grove_sandbox.http.rendering import JSON, EventEncoder
from grove_sandbox.types.status import expired

ABORT = "sandbox.abort"
"""The ASGI extension by which the server lets the application drop a connection."""


class WatchResponse(Response):
    """The response to a watch. It ends with the watch, when the client disconnects, or when the server closes."""

    media_type = JSON

    def __init__(self, backend: Backend, watch: Watch, encoder: EventEncoder, action: Action) -> None:
        super().__init__()
        del self.headers["content-length"]
        self._backend, self._watch, self._encoder, self._action = backend, watch, encoder, action

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        async with anyio.create_task_group() as group:
            self._backend.streams.add(group.cancel_scope)
            group.start_soon(_on_disconnect, receive, group.cancel_scope.cancel)
            try:
                await self._run(send)
            except _Cut:
                await Disconnect()(scope, receive, send)
            finally:
                self._backend.streams.discard(group.cancel_scope)
            group.cancel_scope.cancel()
        await send({"type": "http.response.body", "body": b""})

    async def _run(self, send: Send) -> None:
        async with self._watch:
            async for event in self._watch:
                lines, is_last = self._lines([event, *self._watch.pending()])
                if lines:
                    await send({"type": "http.response.body", "body": lines, "more_body": True})
                if is_last:
                    return

    def _lines(self, events: Iterable[WatchEvent]) -> tuple[bytes, bool]:
        """The lines of the events, and whether the stream ends with them."""
        now = self._backend.clock.now()
        lines: list[bytes] = []
        for event in events:
            sent, is_last = _with_fault(event, self._backend.faults, self._action)
            if sent is not None:
                lines.append(self._encoder.line(sent, now))
            if is_last:
                return b"".join(lines), True
        return b"".join(lines), False


class _Cut(Exception):
    """A fault cuts the connection in the middle of the stream."""


class Disconnect(Response):
    """No response: the connection is dropped."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope["extensions"][ABORT]()
        while (await receive())["type"] != "http.disconnect":
            pass


def _with_fault(event: WatchEvent, faults: FaultInjector, action: Action) -> tuple[WatchEvent | None, bool]:
    """The event to send (None: it is dropped), and whether the stream ends with it. Raises `_Cut`."""
    if event.type in ("BOOKMARK", "ERROR"):
        return event, False
    fault = faults.take(action, str(event.body["metadata"].get("name", "")), ("drop", "expire", "cut"))
    if fault is None:
        return event, False
    if fault.how == "cut":
        raise _Cut
    if fault.how == "drop":
        return None, False
    status = answer(410, expired(fault.message or "too old resource version").body)
    return WatchEvent("ERROR", status.body, status.encoded), True


async def _on_disconnect(receive: Receive, then: Callable[[], None]) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    then()
