"""Everything that can go wrong, as situations.

EngineError
├── InputError            what a user gave us cannot be used: a file, a flag, a manifest
├── GraphError            a desired graph that contradicts itself: two of one name, a circle
├── LeaseTaken            somebody else may write now, and did not stop while we waited
├── LeaseLost             we might write, and no longer may
└── ClusterError          the API server's side of the story
    ├── Unreachable       no answer: refused, cut, timed out
    ├── Unauthorized      401: who we are is not accepted (any more)
    ├── Forbidden         403: we may not; final
    ├── NotFound          404: the object, or its kind
    ├── AlreadyExists     409: somebody has that name
    ├── Conflict          409: it changed since we looked, or its uid differs
    ├── Expired           410: the revision we ask from is forgotten; list again
    ├── Invalid           400, 422: the server does not accept what we sent
    ├── Throttled         429: later, after `retry_after` seconds
    └── ServerFault       5xx: the server failed; the write may have happened
"""

from collections.abc import Mapping
from typing import Any


class EngineError(Exception):
    """The root of the tree; its text is one line that a user can act on."""


class InputError(EngineError):
    """What a user gave us cannot be used; says where (file, line, field path) and why."""


class GraphError(EngineError):
    """The desired graph contradicts itself."""


class LeaseTaken(EngineError):
    """Another holder has the lease; the text names it."""


class LeaseLost(EngineError):
    """The lease was ours and could not be renewed in time, or was taken from us."""


class ClusterError(EngineError):
    """An API server refused, failed or did not answer."""

    code = 0

    def __init__(self, message: str, *, status: Mapping[str, Any] | None = None, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.status: Mapping[str, Any] = status or {}
        self.retry_after = retry_after

    @property
    def reason(self) -> str:
        """The `reason` word of the Status that the server sent, or empty."""
        return str(self.status.get("reason", ""))


class Unreachable(ClusterError):
    """No answer came: connection refused, cut or timed out. A write may or may not have happened."""


class Unauthorized(ClusterError):
    """The server does not accept our credentials."""

    code = 401


class Forbidden(ClusterError):
    """The server knows us and says no."""

    code = 403


class NotFound(ClusterError):
    """There is no such object, or no such kind."""

    code = 404


class AlreadyExists(ClusterError):
    """An object of that name is there already."""

    code = 409


class Conflict(ClusterError):
    """The object is not the one we judged: another uid, or another revision."""

    code = 409


class Expired(ClusterError):
    """The server has forgotten the revision or continue token that we named."""

    code = 410


class Invalid(ClusterError):
    """The server does not accept what we sent; the message names the fields."""

    code = 422


class Throttled(ClusterError):
    """The server asks us to come back after `retry_after` seconds."""

    code = 429


class ServerFault(ClusterError):
    """The server failed. A write may or may not have happened."""

    code = 500
