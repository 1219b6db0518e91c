"""Server: serves a backend on a loopback port."""

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, cast

import anyio
import anyio.lowlevel
import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from grove_sandbox.http.apiserver import application
from grove_sandbox.http.backend import Backend
from grove_sandbox.http.streams import ABORT
from grove_sandbox.http.tls import LOOPBACK

_IDLE_SECONDS = 600
_CLOSING_TURNS = 20


class _Protocol(HttpToolsProtocol):
    """uvicorn's HTTP protocol, with an extension by which the application can drop the connection."""

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self.scope["extensions"] = cast(Any, {ABORT: self.transport.abort})


@asynccontextmanager
async def listening(backend: Backend, tls: ssl.SSLContext, *, port: int = 0) -> AsyncIterator[int]:
    """Serve on 127.0.0.1 while the block runs, and give the port. Raises `OSError` when it is taken.

    Only uvicorn's protocol is used: its `Server` would handle the signals and the end of the process.
    """
    config = uvicorn.Config(
        application(backend),
        lifespan="off",
        ws="none",
        proxy_headers=False,
        log_config=None,
        log_level="critical",
        timeout_keep_alive=_IDLE_SECONDS,
    )
    config.load()
    state = ServerState()
    listener = await asyncio.get_running_loop().create_server(
        lambda: _Protocol(config=config, server_state=state, app_state={}), sock=_bound(port), ssl=tls, backlog=2048
    )
    try:
        yield listener.sockets[0].getsockname()[1]
    finally:
        listener.close()
        with anyio.CancelScope(shield=True):
            await _close(backend, state)


def _bound(port: int) -> socket.socket:
    # asyncio turns Nagle off only where the protocol is TCP by name; with Nagle each answer waits 40 ms for an acknowledgement.
    bound = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind((LOOPBACK, port))
    except OSError:
        bound.close()
        raise
    return bound


async def _close(backend: Backend, state: ServerState) -> None:
    """End the watches, let their last bytes be sent, and then drop the connections that are left."""
    backend.close_watches()
    for _ in range(_CLOSING_TURNS):
        await anyio.lowlevel.checkpoint()
    for task in list(state.tasks):
        task.cancel()
    await asyncio.gather(*state.tasks, return_exceptions=True)
    for connection in list(state.connections):
        connection.transport.abort()
    await anyio.lowlevel.checkpoint()
