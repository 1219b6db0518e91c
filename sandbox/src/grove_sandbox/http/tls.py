"""TLS: a certificate authority and a server certificate for one sandbox. kubectl sends no token without TLS."""

import datetime
import ssl
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from grove_sandbox.product import server_certificate

# Valid whatever the clock of the machine says; the key is lost when the process ends.
_FROM = datetime.datetime(2000, 1, 1, tzinfo=datetime.UTC)
_LIFE = datetime.timedelta(days=36_000)

LOOPBACK = "127.0.0.1"


@dataclass(frozen=True, slots=True)
class ServerIdentity:
    """The certificate (`chain`) and `key` of the server, and the `authority` that clients trust; all in PEM."""

    authority: bytes
    chain: bytes
    key: bytes = field(repr=False)

    def context(self) -> ssl.SSLContext:
        """The TLS context of the server. The key is on disk only while this runs, in a private file."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        with tempfile.NamedTemporaryFile(suffix=".pem") as file:
            file.write(self.key + self.chain)
            file.flush()
            context.load_cert_chain(Path(file.name))
        return context


def loopback_identity() -> ServerIdentity:
    """A new authority, and a certificate that it has signed for the loopback address."""
    return ServerIdentity(*server_certificate((LOOPBACK, "localhost"), _FROM, _LIFE))
