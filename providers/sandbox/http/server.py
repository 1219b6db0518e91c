"""Server: a world on a loopback port, for as long as somebody holds it open."""

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

from providers.sandbox.http.apiserver import application
from providers.sandbox.http.streams import ABORT
from providers.sandbox.http.tls import LOOPBACK
from providers.sandbox.http.world import World

_IDLE_SECONDS = 600
_FAREWELL_TURNS = 20


class _Protocol(HttpToolsProtocol):
    """uvicorn's HTTP, lending the application the means to drop the connection."""

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self.scope["extensions"] = cast(Any, {ABORT: self.transport.abort})


@asynccontextmanager
async def listening(world: World, tls: ssl.SSLContext, *, port: int = 0) -> AsyncIterator[int]:
    """Serve the world on 127.0.0.1 while the block runs; gives the port. Raises `OSError` when it is taken.

    Only uvicorn's protocol is used, not its `Server`: that one takes over the signals and the end of the process.
    """
    config = uvicorn.Config(
        application(world),
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
            await _part(world, state)


def _bound(port: int) -> socket.socket:
    # The protocol is named because asyncio asks for it before it turns Nagle off; else each answer waits 40 ms for an acknowledgement.
    made = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        made.bind((LOOPBACK, port))
    except OSError:
        made.close()
        raise
    return made


async def _part(world: World, state: ServerState) -> None:
    """End the watches in good order, give their last bytes a moment to leave, then drop what is still there."""
    world.hang_up()
    for _ in range(_FAREWELL_TURNS):
        await anyio.lowlevel.checkpoint()
    for task in list(state.tasks):
        task.cancel()
    await asyncio.gather(*state.tasks, return_exceptions=True)
    for connection in list(state.connections):
        connection.transport.abort()
    await anyio.lowlevel.checkpoint()
