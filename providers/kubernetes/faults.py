"""Faults: what goes wrong between us and an API server, translated once into the engine's errors."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import aiohttp
import orjson

from engine.errors import (
    AlreadyExists,
    ClusterError,
    Conflict,
    Expired,
    Forbidden,
    Invalid,
    NotFound,
    ServerFault,
    Throttled,
    Unauthorized,
    Unreachable,
)
from engine.report.printable import clipped
from providers.kubernetes.wire import Answer

MASK = b"(masked)"
LONGEST = 2000


class Unconnected(Unreachable):
    """No connection came about, so nothing was sent: any request may be repeated."""


class Cut(Unreachable):
    """The connection broke after we had begun: whatever was asked may have been done."""


REFUSALS: Mapping[int, type[ClusterError]] = {
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    408: ServerFault,
    409: Conflict,
    410: Expired,
    429: Throttled,
}
"""Every other 4xx says that the server cannot use what we sent; everything else is its own failure."""


def refusal(answer: Answer, secret: str = "") -> ClusterError:
    """The error that an answer stands for. `secret` is masked wherever the answer repeats it."""
    content = answer.content.replace(secret.encode(), MASK) if secret else answer.content
    return refusal_of(_status(content), answer.status, answer.retry_after)


def refusal_of(status: Mapping[str, Any], code: int = 0, retry_after: str = "") -> ClusterError:
    """The error that a Status object stands for: the body of an answer, or an `ERROR` event of a watch."""
    code = code or _code(status)
    details = status.get("details")
    seconds = retry_after or str(details.get("retryAfterSeconds", "") if isinstance(details, Mapping) else "")
    error = _situation(code, status.get("reason"))(
        _message(status, code), status=status, retry_after=float(seconds) if seconds.isdecimal() else None
    )
    error.code = code
    return error


def _status(content: bytes) -> dict[str, Any]:
    """The Status in an answer; a proxy in between may have put anything else there."""
    try:
        status = orjson.loads(content)
    except orjson.JSONDecodeError:
        status = content.decode(errors="replace")
    return status if isinstance(status, dict) else {"message": str(status)[:200]}


def _code(status: Mapping[str, Any]) -> int:
    code = status.get("code")
    return code if isinstance(code, int) else ServerFault.code


def _situation(code: int, reason: object) -> type[ClusterError]:
    if code == 409 and reason == "AlreadyExists":
        return AlreadyExists
    return REFUSALS.get(code) or (Invalid if 400 <= code < 500 else ServerFault)


def _message(status: Mapping[str, Any], code: int) -> str:
    message = clipped(" ".join(str(status.get("message") or "").split()), LONGEST)
    if code == 401:
        said = f" ({message})" if message not in ("", "Unauthorized") else ""
        return f"the API server does not accept our credentials; they may have expired: log in again{said}"
    if 300 <= code < 400:
        return f"the API server answered with a redirect (HTTP {code}), which is not followed"
    return message or f"the API server answered HTTP {code} and said nothing"


@contextmanager
def translated(server: str) -> Iterator[None]:
    """Whatever a transport raises in here leaves as `Unreachable`.

    The transport's own errors carry the request and its headers, credentials included, so they are not chained.
    """
    try:
        yield
    except (aiohttp.ClientError, TimeoutError, OSError) as error:
        raise _unreachable(server, error) from None


def _unreachable(server: str, error: BaseException) -> Unreachable:
    match error:
        case aiohttp.ClientConnectorCertificateError():
            return Unreachable(f"{server}: its certificate is not trusted: {_verdict(error.certificate_error)}")
        case aiohttp.ClientSSLError():
            return Unreachable(f"{server}: no TLS connection: {clipped(str(error.os_error.strerror or 'handshake failed'), LONGEST)}")
        case aiohttp.ClientProxyConnectionError():
            return Unconnected(f"{server}: the proxy in front of it does not answer: {_why(error.os_error)}")
        case aiohttp.ClientHttpProxyError():
            return Unreachable(f"{server}: the proxy in front of it refuses (HTTP {error.status})")
        case aiohttp.ClientConnectorDNSError():
            return Unconnected(f"{server}: no such host")
        case aiohttp.ClientConnectorError():
            return Unconnected(f"{server} does not answer: {_why(error.os_error)}")
        case aiohttp.ConnectionTimeoutError():
            return Unreachable(f"{server} does not answer: no connection in time")
        case TimeoutError():
            return Unreachable(f"{server} does not answer in time")
    return Cut(f"{server} cut the connection before it had answered")


def _verdict(error: BaseException) -> str:
    return clipped(str(getattr(error, "verify_message", "") or "verification failed"), LONGEST)


def _why(error: OSError) -> str:
    return os.strerror(error.errno).lower() if error.errno else "no connection"
