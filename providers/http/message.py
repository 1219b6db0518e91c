"""Messages of HTTP, the routes of a server, and the answers to requests that have none."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Final
from urllib.parse import parse_qsl, unquote

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


MAX_QUERY_FIELDS: Final = 100


class BadTarget(ValueError):
    """The target of a request is none that a server has to understand."""


class RequestTarget(Struct, frozen=True):
    """The target of a request, decoded."""

    path: str
    query: Mapping[str, str]


def target_of(text: str) -> RequestTarget:
    """The decoded path and query of a request's target. Raises `BadTarget`."""
    place, _, query = text.partition("?")
    if "://" in place and not place.startswith("/"):  # The absolute form, which proxies send.
        _, _, rest = place.partition("://")
        place = f"/{rest.partition('/')[2]}"
    if not place.startswith("/"):
        raise BadTarget(f"the target {text!r} has no path")
    try:
        fields = parse_qsl(query, keep_blank_values=True, max_num_fields=MAX_QUERY_FIELDS)
    except ValueError as error:
        raise BadTarget("too many fields in the query") from error
    return RequestTarget(unquote(place), dict(fields))


def handler_of(routes: Routes, method: str, path: str) -> Handler | HttpResponse:
    """The handler of a method and a path, or the response if there is none: 404 or 405. A route for GET serves HEAD as well.

    A route whose path is one word and ends with a slash, `/sets/`, answers everything below it.
    """
    first, slash, _ = path[1:].partition("/")
    below = f"/{first}/" if slash else path
    for place in (path, below):
        handler = routes.get((method, place)) or (routes.get(("GET", place)) if method == "HEAD" else None)
        if handler is not None:
            return handler
    allowed = {known for known, place in routes if place in (path, below)}
    if not allowed:
        return refusal(404, "no such path")
    allowed |= {"HEAD"} if "GET" in allowed else set()
    return refusal(405, "method not allowed", Allow=", ".join(sorted(allowed)))


def refusal(status: int, text: str, **headers: str) -> HttpResponse:
    """A response of the server itself: a line of text."""
    return HttpResponse(status, f"{text}\n".encode(), headers=headers)


def busy() -> HttpResponse:
    """The response while too much is in progress."""
    return refusal(503, "too many requests", **{"Retry-After": "1"})
