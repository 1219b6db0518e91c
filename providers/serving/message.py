"""Message: an HTTP request and the response to it, as handlers see them; no I/O."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from msgspec import Struct, field

TEXT: Final = "text/plain; charset=utf-8"
JSON: Final = "application/json"
HTML: Final = "text/html; charset=utf-8"


class IncomingRequest(Struct, frozen=True):
    """One request, completely received. Everything in it is untrusted."""

    method: str
    path: str
    """The decoded path, without the query."""
    query: Mapping[str, str] = field(default_factory=dict)
    """The decoded query; of a repeated key the last value."""
    headers: Mapping[str, str] = field(default_factory=dict)
    """Names in lower case; repeated headers are joined with commas."""
    body: bytes = b""
    peer: str = ""
    """The IP address of the client."""


class HttpResponse(Struct, frozen=True):
    """One response. The server adds `Content-Length`, `Date` and `Connection`."""

    status: int = 200
    body: bytes = b""
    content_type: str = TEXT
    headers: Mapping[str, str] = field(default_factory=dict)


Handler = Callable[[IncomingRequest], Awaitable[HttpResponse]]
"""Answers a request. An exception becomes a 500 without details, and is logged."""

Routes = Mapping[tuple[str, str], Handler]
"""(Method, path) -> handler. A path that only has other methods is answered with 405, an unknown one with 404."""
