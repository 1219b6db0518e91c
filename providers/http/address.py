"""Address: where a server listens, what it answers there, and its limits against slow, large and many requests."""

import ssl
from typing import Final

from msgspec import Struct, field

from providers.http.message import Routes

ALL_INTERFACES: Final = ""
"""The host of an address that listens on every interface, IPv4 and IPv6."""


class AddressLimits(Struct, frozen=True):
    """How much of everything one address accepts. Durations are seconds."""

    header_bytes: int = 32 << 10
    body_bytes: int = 64 << 10
    buffered_bytes: int = 64 << 20
    """The bodies of all requests of the address together. A request beyond it is answered with 503."""
    connections: int = 256
    """Beyond it, a new connection replaces the one that has waited for its client the longest."""
    requests: int = 32
    """How many requests are answered at the same time. Further ones wait."""
    turn: float = 5.0
    """How long a complete request waits for its turn; then it is answered with 503 and `Retry-After`."""
    handshake: float = 10.0
    header: float = 10.0
    """From the first byte of a request to the end of its header. A new connection has as long for its first request."""
    body: float = 10.0
    idle: float = 120.0
    """Between two requests of a connection. Longer than the 90 seconds of Go's clients, so that they close first."""
    handler: float = 30.0
    write: float = 30.0


DEFAULT_LIMITS: Final = AddressLimits()


class Address(Struct, frozen=True):
    """One address with its routes."""

    name: str
    """What is served there, for errors and logs: `webhooks`."""
    host: str
    """An IP address or a host name; `ALL_INTERFACES`: every interface."""
    port: int
    routes: Routes = field(default_factory=dict)
    tls: ssl.SSLContext | None = None
    """None: plain HTTP. `load_cert_chain` on it replaces the certificate for all handshakes from then on."""
    limits: AddressLimits = DEFAULT_LIMITS

    def __str__(self) -> str:
        """`host:port`, with `*` for every interface, e.g. `*:2750` or `[::1]:2750`."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host or '*'}:{self.port}"
