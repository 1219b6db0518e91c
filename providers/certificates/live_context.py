"""LiveContext: the TLS settings of a running server, whose certificate is replaced without a restart."""

import os
import ssl
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime

from providers.certificates.making import Pair


class LiveContext:
    """An `SSLContext` that serves the pair that was used last, and refuses every handshake before there is one.

    Each pair gets a context of its own, which handshakes are switched to when they begin. So a handshake sees either the old pair or the
    new one, in whichever thread it runs, and no certificate of another key type remains beside the new one.
    """

    def __init__(self) -> None:
        self.context = server_context()
        """What the server listens with; always the same object."""
        self.pair: Pair | None = None
        """The pair that is served."""
        self._current: ssl.SSLContext | None = None
        self.context.sni_callback = self._switch

    def use(self, pair: Pair) -> None:
        """Serve this pair from the next handshake on. Raises `ssl.SSLError` if TLS cannot use it; the old one is then kept."""
        context = server_context()
        with _file_with(pair.key.rstrip() + b"\n" + pair.chain) as path:
            context.load_cert_chain(path, password=_no_password)
        self._current, self.pair = context, pair

    def _switch(self, connection: ssl.SSLObject, name: str | None, initial: ssl.SSLContext) -> None:
        """Called in each handshake, also if the client sends no server name."""
        if self._current is not None:
            connection.context = self._current


class LiveCertificate:
    """What every `ServerCertificate` has that serves a pair from memory."""

    def __init__(self) -> None:
        self._live = LiveContext()

    @property
    def context(self) -> ssl.SSLContext:
        """The TLS settings to listen with."""
        return self._live.context

    @property
    def expires_at(self) -> datetime | None:
        """When the certificate that is served expires; None while there is none."""
        return self._live.pair.expires_at if self._live.pair else None


def _no_password() -> str:
    """OpenSSL would ask the terminal for the password of an encrypted key."""
    return ""


@contextmanager
def _file_with(content: bytes) -> Iterator[str]:
    """The path of a file with that content. It is in memory where the system can do that: the root file system may be read-only."""
    if hasattr(os, "memfd_create") and os.path.isdir("/proc/self/fd"):
        descriptor = os.memfd_create("certificate", os.MFD_CLOEXEC)
        try:
            with open(descriptor, "wb", closefd=False) as file:
                file.write(content)
            yield f"/proc/self/fd/{descriptor}"
        finally:
            os.close(descriptor)
    else:
        with tempfile.NamedTemporaryFile(suffix=".pem") as file:
            file.write(content)
            file.flush()
            yield file.name


def server_context() -> ssl.SSLContext:
    """A server's context without a certificate: TLS 1.2 or later, HTTP/1.1 only, no renegotiation.

    Load a certificate with `load_cert_chain`, also while the context is used: further handshakes have the new one. Without
    a certificate every handshake fails.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.options |= ssl.OP_NO_RENEGOTIATION | ssl.OP_NO_COMPRESSION
    # An API server chooses HTTP/2 if it is offered.
    context.set_alpn_protocols(["http/1.1"])
    return context
