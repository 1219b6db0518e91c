"""All errors, each named after the situation that it reports.

EngineError
├── InputError            a file, flag or manifest of the user cannot be used
├── GraphError            a desired graph contradicts itself: a duplicate name or a cycle
├── LeaseTaken            another process holds the lease and did not release it while we waited
├── LeaseLost             we held the lease and lost it
├── TimedOut              the time for a command was over before it could do anything
└── ClusterError          an error of the API server
    ├── Unreachable       no answer: refused, cut, timed out
    ├── Unauthorized      401: our credentials are not accepted
    ├── Forbidden         403: we lack the permission, or admission refuses; final
    ├── NotFound          404: no such object, or no such kind
    ├── AlreadyExists     409: an object of that name exists
    ├── Conflict          409: the object has another revision or uid than the one observed
    ├── Expired           410: the revision to continue from is gone; list again
    ├── Invalid           400, 422: the server rejects the content of the request
    │   ├── DryRunUnsupported   400: an admission webhook with side effects cannot answer a dry run
    │   └── TooLarge      413, or 500 by etcd: the object is larger than the server takes; final, whatever its revision
    ├── Throttled         429: try again after `retry_after` seconds
    └── ServerFault       5xx: the server failed; the write may have happened
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Final


class EngineError(Exception):
    """The base class; its text is one line that a user can act on."""


class InputError(EngineError):
    """An input of the user cannot be used; the text says where (file, line, field path) and why."""


class GraphError(EngineError):
    """The desired graph contradicts itself: a duplicate name, a cycle, or an edge to a later part."""


class LeaseTaken(EngineError):
    """Another process holds the lease; the text names it."""


class LeaseLost(EngineError):
    """We held the lease and could not renew it in time, or another process took it."""


class Interrupted(EngineError):
    """What was begun was ended on request, before all of it was done."""


class TimedOut(EngineError):
    """The time for a command was over before it could do anything."""


class ClusterError(EngineError):
    """The API server rejected a request, failed, or did not answer."""

    code = 0
    """The HTTP status code; 0 if there was no answer."""

    def __init__(self, message: str, *, status: Mapping[str, Any] | None = None, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.status: Mapping[str, Any] = status or {}
        """The Status object that the server sent; empty if there is none."""
        self.retry_after = retry_after
        """Seconds after which the server asks to repeat the request; None if it did not say."""
        self.refuser = ""
        """The admission webhook or policy that refused the request; empty if the server names none."""

    @property
    def reason(self) -> str:
        """The `reason` of the Status object that the server sent; empty if there is none."""
        return str(self.status.get("reason", ""))


class Unreachable(ClusterError):
    """No answer: connection refused, cut or timed out. A write may have happened or not."""


class Unauthorized(ClusterError):
    """The server does not accept our credentials."""

    code = 401


class RefusedBy(StrEnum):
    """What refused a request with 403."""

    AUTHORIZATION = "authorization"
    """An authorizer, e.g. RBAC: a role can allow the request."""
    ADMISSION = "admission"
    """An admission plug-in or a webhook: the content of the request, or of its namespace, is not accepted."""
    QUOTA = "quota"
    """A ResourceQuota that is used up."""
    NAMESPACE = "namespace"
    """The namespace is being deleted: nothing can be created in it."""
    UNKNOWN = "unknown"
    """The answer does not say it, e.g. that of a proxy."""


class Forbidden(ClusterError):
    """The server does not permit the request."""

    code = 403

    def __init__(
        self,
        message: str,
        *,
        by: RefusedBy = RefusedBy.AUTHORIZATION,
        status: Mapping[str, Any] | None = None,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message, status=status, retry_after=retry_after)
        self.by = by
        """What refused it."""


class NotFound(ClusterError):
    """The object or its kind does not exist."""

    code = 404


class AlreadyExists(ClusterError):
    """An object of that name exists already."""

    code = 409


class Conflict(ClusterError):
    """The object has another uid or revision than the one the plan was made for."""

    code = 409


class Expired(ClusterError):
    """The server no longer has the requested revision or continue token."""

    code = 410


class Invalid(ClusterError):
    """The server rejects the content of the request (400 or 422); the message names the fields."""

    code = 422


class DryRunUnsupported(Invalid):
    """An admission webhook with side effects cannot answer a dry run: whether it would refuse the request is not known."""


class TooLarge(Invalid):
    """The object is larger than the API server or its store takes: sent again, it is refused again, whatever its revision."""

    code = 413


class Throttled(ClusterError):
    """The server asks to repeat the request after `retry_after` seconds."""

    code = 429


class ServerFault(ClusterError):
    """The server failed. A write may have happened or not."""

    code = 500


REFUSING: Final = frozenset({RefusedBy.ADMISSION, RefusedBy.QUOTA, RefusedBy.NAMESPACE})
"""What refuses a request with 403 because of its content, or of the state of the cluster, and not because a right is missing."""


def is_refusal(error: Exception | None) -> bool:
    """Whether a request was answered, and stays undone until a user or an administrator changes it or what refuses it.

    A right that is missing is none: the same request of another account is accepted.
    """
    if isinstance(error, Forbidden):
        return error.by in REFUSING
    return isinstance(error, Invalid)


def is_out_of_quota(error: Exception | None) -> bool:
    """Whether a ResourceQuota is used up: the request is accepted when there is room again."""
    return isinstance(error, Forbidden) and error.by is RefusedBy.QUOTA
