"""A server on loopback that goes silent: it accepts connections, and from some point on it answers nothing and closes nothing."""

import ssl
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from socket import create_server, socket
from typing import Literal

from grove_sandbox.http.tls import LOOPBACK, loopback_identity
from tests.waiting import PATIENCE

Stage = Literal["connected", "secured", "asked", "answering"]
"""When it goes silent: after the TCP connection, after the TLS handshake, after the request, in the middle of the response."""
HALF_OF_A_RESPONSE = b'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{"items": ['


@dataclass(frozen=True, slots=True)
class SilentServer:
    """Its address, and the authority to trust."""

    url: str
    authority: bytes = field(repr=False)
    _silent: threading.Semaphore

    def wait(self, connections: int) -> None:
        """Wait until it has gone silent on so many more connections."""
        for _ in range(connections):
            assert self._silent.acquire(timeout=PATIENCE), "too few connections"


@contextmanager
def silent_server(stage: Stage, *, tls: bool = True) -> Iterator[SilentServer]:
    """A server that goes silent at that stage of every connection, in a thread of its own. It closes them at the end of the block."""
    identity, silent, stopped = loopback_identity(), threading.Semaphore(0), threading.Event()
    context = identity.context() if tls else None
    with ExitStack() as connections, create_server((LOOPBACK, 0)) as listening:
        listening.settimeout(0.1)

        def serve() -> None:
            while not stopped.is_set():
                with suppress(OSError):
                    connections.enter_context(_silent(listening.accept()[0], context, stage))
                    silent.release()

        server = threading.Thread(target=serve)
        server.start()
        connections.callback(server.join)
        connections.callback(stopped.set)
        yield SilentServer(f"{'https' if tls else 'http'}://{LOOPBACK}:{listening.getsockname()[1]}", identity.authority, silent)


def _silent(connection: socket, context: ssl.SSLContext | None, stage: Stage) -> socket:
    """The connection at that stage. Raises `OSError` if the client closes it before."""
    with ExitStack() as failed:
        connection.settimeout(30)
        failed.callback(connection.close)
        if context and stage != "connected":
            connection = context.wrap_socket(connection, server_side=True)
            failed.callback(connection.close)
        if stage in ("asked", "answering"):
            connection.recv(1 << 16)
        if stage == "answering":
            connection.sendall(HALF_OF_A_RESPONSE)
        failed.pop_all()
    return connection
