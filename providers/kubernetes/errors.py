"""Errors: HTTP responses and transport errors as `engine.errors`, and which of them make the client send a request again."""

import errno
import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import aiohttp
import orjson

from engine.errors import (
    AlreadyExists,
    ClusterError,
    Conflict,
    DryRunUnsupported,
    Expired,
    Forbidden,
    Invalid,
    NotFound,
    RefusedBy,
    ServerFault,
    Throttled,
    TooLarge,
    Unauthorized,
    Unreachable,
)
from engine.report.printable import clipped
from providers.kubernetes.wire import Response

MASK = b"(masked)"
_SERVER = r'(?:\S+(?: "[^"]*")? is )?forbidden: '
"""How the message of a refusal by the API server itself begins. Webhooks, whose messages may quote anything, begin with their name."""
MISSING_PERMISSION = re.compile(
    _SERVER + r'(?:User "[^"]*" cannot |.*attempting to grant RBAC permissions not currently held|cannot set blockOwnerDeletion)',
    re.IGNORECASE,
)
"""The message of a refusal if a role can allow the request. Nothing else in a Status tells it from one by admission."""
USED_UP = re.compile(_SERVER + "(?:exceeded quota|status unknown for quota): ", re.IGNORECASE)
"""The message of a refusal if a ResourceQuota is used up, or has not been counted yet."""
NO_DRY_RUN = re.compile(r'admission webhook "[^"]*" does not support dry run')
"""The message of a 400 if a webhook has side effects. Nothing else in a Status tells it from another 400."""
TOO_LARGE_TO_STORE = re.compile(
    r"etcdserver: request is too large|rpc error: code = ResourceExhausted .*trying to send message larger than"
)
"""The message of a 500 if etcd does not take an object, and if the API server cannot send it to etcd. Nothing was stored."""
_BY_ADMISSION = re.compile(_SERVER + '|admission webhook "')
"""How the message of a refusal by admission begins, whatever code the policy or the webhook has chosen for it."""
REFUSER = re.compile(f"""admission webhook "([^"]*)" |{_SERVER}ValidatingAdmissionPolicy '([^']*)' """)
"""How the message of a refusal by a webhook or a policy begins, with its name."""
NOT_CONVERTED = re.compile(r"conversion webhook for \S+ Kind=(\w+) failed: (.*)")
"""What the message of a 500 contains if an object that is stored in another version could not be converted. Newer servers write around it
that the object is corrupt, and its key in etcd; and they answer 429, because their cache of the kind cannot be filled."""
TERMINATING = "NamespaceTerminating"
"""The cause in a Status if the namespace is being deleted."""
ROLES = "engine manifests rbac prints the roles that allow it"
SMALLER = "an API server stores at most 1.5 MiB of one object, unless its etcd is configured otherwise"
CONVERT = (
    "some are stored in another version, and the conversion webhook fails: start what answers it, or let engine run convert "
    "(engine manifests crds --converter; engine preflight has the details)"
)
MAX_LENGTH = 2000
"""Characters of a server's message that are kept."""
ERRORS: Mapping[int, type[ClusterError]] = {
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    408: ServerFault,
    409: Conflict,
    410: Expired,
    413: TooLarge,
    429: Throttled,
}
"""HTTP status -> error. Every other 4xx is `Invalid`, everything else `ServerFault`."""
ATTEMPTS = 5
CONVERT_ATTEMPTS = 2
"""Attempts when objects cannot be converted: a webhook that restarts may answer the second, one that is not there never will."""
CONNECT_ATTEMPTS = 3
"""Attempts when no connection can be made: enough for a server that restarts, and short for a mistyped address."""
LONGEST_WAIT = 30.0
"""Seconds; a Retry-After that is longer is left to the caller."""
FIRST_PAUSE, LONGEST_PAUSE = 0.1, 5.0
"""Seconds between attempts if the server does not send Retry-After: doubled each time, before jitter."""

READS = frozenset({"GET", "HEAD"})


class NotConnected(Unreachable):
    """No connection was made, so nothing was sent: any request may be repeated."""


class NotConverted(ServerFault):
    """Some objects are stored in another version, and no webhook converts them."""


class ConnectionBroken(Unreachable):
    """The connection broke during the request: the server may have done what was requested."""


def error_of_response(response: Response, secret: str = "") -> ClusterError:
    """The error that a response stands for. `secret` is masked wherever the response repeats it."""
    content = response.content.replace(secret.encode(), MASK) if secret else response.content
    return error_of_status(_status(content), response.status, response.retry_after)


def error_of_status(status: Mapping[str, Any], code: int = 0, retry_after: str = "") -> ClusterError:
    """The error that a Status object stands for: the body of a response, or an `ERROR` event of a watch."""
    code = code or _code(status)
    details = status.get("details")
    seconds = retry_after or str(details.get("retryAfterSeconds", "") if isinstance(details, Mapping) else "")
    error = _type(code, status)(_message(status, code), status=status, retry_after=float(seconds) if seconds.isdecimal() else None)
    error.code = code
    if named := REFUSER.match(str(status.get("message") or "")):
        error.refuser = named[1] or named[2]
    if isinstance(error, Forbidden):
        error.by = _refused_by(status)
    return error


def _refused_by(status: Mapping[str, Any]) -> RefusedBy:
    """What refused a request with 403. Only here it is decided by the wording of the server, where that gives nothing else."""
    details, message = status.get("details"), str(status.get("message") or "")
    causes = details.get("causes") if isinstance(details, Mapping) else None
    if any(isinstance(cause, Mapping) and cause.get("reason") == TERMINATING for cause in causes or ()):
        return RefusedBy.NAMESPACE
    if MISSING_PERMISSION.match(message):
        return RefusedBy.AUTHORIZATION
    if status.get("kind") != "Status":
        return RefusedBy.UNKNOWN
    return RefusedBy.QUOTA if USED_UP.match(message) else RefusedBy.ADMISSION


def _status(content: bytes) -> dict[str, Any]:
    """The Status object in a response. A proxy may have answered with anything else, which becomes the message."""
    try:
        status = orjson.loads(content)
    except orjson.JSONDecodeError:
        status = content.decode(errors="replace")
    return status if isinstance(status, dict) else {"message": str(status)[:200]}


def _code(status: Mapping[str, Any]) -> int:
    """The HTTP status code in a Status object; 500 if it has none."""
    code = status.get("code")
    return code if isinstance(code, int) else ServerFault.code


def _type(code: int, status: Mapping[str, Any]) -> type[ClusterError]:
    if code == 409 and status.get("reason") == "AlreadyExists":
        return AlreadyExists
    if code == 400 and NO_DRY_RUN.match(str(status.get("message") or "")):
        return DryRunUnsupported
    if code == 413 and _BY_ADMISSION.match(str(status.get("message") or "")):
        return Invalid
    if code == 500 and TOO_LARGE_TO_STORE.match(str(status.get("message") or "")):
        return TooLarge
    if _failed_conversion(status, code):
        return NotConverted
    return ERRORS.get(code) or (Invalid if 400 <= code < 500 else ServerFault)


def _text(status: Mapping[str, Any]) -> str:
    """The message of the server, in one line."""
    return clipped(" ".join(str(status.get("message") or "").split()), MAX_LENGTH)


def _failed_conversion(status: Mapping[str, Any], code: int) -> re.Match[str] | None:
    """What the server says of a conversion that failed; None if it says nothing of any."""
    return NOT_CONVERTED.search(_text(status)) if code in (429, 500) else None


def _message(status: Mapping[str, Any], code: int) -> str:
    message = _text(status)
    if code == 401:
        details = f" ({message})" if message not in ("", "Unauthorized") else ""
        return f"the API server does not accept our credentials; they may have expired: log in again{details}"
    if 300 <= code < 400:
        return f"the API server answered with a redirect (HTTP {code}), which is not followed"
    if code == 403 and _refused_by(status) is RefusedBy.AUTHORIZATION:
        return f"{message}; {ROLES}"
    if _type(code, status) is TooLarge:
        return f"{message}; {SMALLER}"
    if failed := _failed_conversion(status, code):
        return f"{CONVERT}: conversion webhook of {failed[1]}: {failed[2]}"
    return message or f"the API server answered HTTP {code} without a message"


@contextmanager
def translated(server: str) -> Iterator[None]:
    """Raises transport errors of the block as `Unreachable`.

    They are not chained: the transport's errors contain the request with its headers, credentials included.
    """
    try:
        yield
    except (aiohttp.ClientError, TimeoutError, OSError) as error:
        raise _unreachable(server, error) from None


def _unreachable(server: str, error: BaseException) -> Unreachable:
    match error:
        case aiohttp.ClientConnectorCertificateError():
            return Unreachable(f"{server}: its certificate is not trusted: {_tls_reason(error.certificate_error)}")
        case aiohttp.ClientSSLError():
            return Unreachable(f"{server}: no TLS connection: {clipped(str(error.os_error.strerror or 'handshake failed'), MAX_LENGTH)}")
        case aiohttp.ClientProxyConnectionError():
            return NotConnected(f"{server}: the proxy in front of it does not answer: {_os_reason(error.os_error)}")
        case aiohttp.ClientHttpProxyError():
            return Unreachable(f"{server}: the proxy in front of it refuses (HTTP {error.status})")
        case aiohttp.ClientConnectorDNSError():
            return NotConnected(f"{server}: no such host")
        case aiohttp.ClientConnectorError():
            question = "; is the cluster running?" if error.os_error.errno == errno.ECONNREFUSED else ""
            return NotConnected(f"{server} does not answer: {_os_reason(error.os_error)}{question}")
        case aiohttp.ConnectionTimeoutError():
            return Unreachable(f"{server} does not answer: no connection in time")
        case TimeoutError():
            return Unreachable(f"{server} does not answer in time")
    return ConnectionBroken(f"{server} closed the connection before it had answered")


def _tls_reason(error: BaseException) -> str:
    return clipped(str(getattr(error, "verify_message", "") or "verification failed"), MAX_LENGTH)


def _os_reason(error: OSError) -> str:
    return os.strerror(error.errno).lower() if error.errno else "no connection"


def delay(method: str, error: ClusterError, attempts: int, chance: Callable[[], float]) -> float | None:
    """Seconds until the next attempt; None: raise the error. `attempts` have failed; `chance` returns a number from 0 up to 1.

    A request that was never sent is repeated whatever its method. Otherwise only reads are repeated: a failed write may have been done, and
    a throttled one is repeated by `engine.runtime.apply` alone, which knows whether we still hold the lease.
    """
    if attempts >= _most_attempts(error) or not _is_repeatable(method, error):
        return None
    if error.retry_after is not None:
        return error.retry_after * (1 + 0.2 * chance()) if error.retry_after <= LONGEST_WAIT else None
    return min(LONGEST_PAUSE, FIRST_PAUSE * 2.0**attempts) * (0.5 + chance())


def _most_attempts(error: ClusterError) -> int:
    match error:
        case NotConnected():
            return CONNECT_ATTEMPTS
        case NotConverted():
            return CONVERT_ATTEMPTS
    return ATTEMPTS


def _is_repeatable(method: str, error: ClusterError) -> bool:
    return isinstance(error, NotConnected) or (method in READS and isinstance(error, Throttled | ServerFault | ConnectionBroken))
