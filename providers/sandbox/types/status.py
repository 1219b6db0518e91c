"""StatusError: a refusal of the API, carrying the Status body that a real API server would send."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from engine import errors
from engine.ids import Kind


@dataclass(frozen=True, slots=True)
class Cause:
    """One field that is wrong: `reason` is Kubernetes' word for the sort of fault, `field` the path as users write it."""

    reason: str
    message: str
    field: str

    def __str__(self) -> str:
        """The sentence that the Status message quotes."""
        return f"{self.field}: {self.message}" if self.field else self.message

    def body(self) -> dict[str, str]:
        """The cause as `details.causes` holds it."""
        return {"reason": self.reason, "message": self.message, "field": self.field}


class StatusError(Exception):
    """The API refuses; `body` is the whole Status, `code` its HTTP code, `retry_after` whole seconds and `warnings` texts for the
    headers of those names."""

    def __init__(
        self,
        code: int,
        reason: str,
        message: str,
        *,
        details: Mapping[str, Any] | None = None,
        retry_after: int | None = None,
        metadata: Mapping[str, Any] | None = None,
        warnings: tuple[str, ...] = (),
    ) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.message = message
        self.retry_after = retry_after
        self.warnings = warnings
        self.body: dict[str, Any] = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": dict(metadata or {}),
            "status": "Failure",
            "message": message,
            **({"reason": reason} if reason else {}),
            **({"details": dict(details)} if details is not None else {}),
            "code": code,
        }


@contextmanager
def warned(warnings: tuple[str, ...]) -> Iterator[None]:
    """What was to be warned about is told with a refusal as well."""
    try:
        yield
    except StatusError as error:
        error.warnings = (*warnings, *error.warnings)
        raise


def details_of(kind: Kind, name: str, **more: Any) -> dict[str, Any]:
    """The `details` that point at one object of a resource."""
    return {
        **({"name": name} if name else {}),
        **({"group": kind.group} if kind.group else {}),
        "kind": kind.plural,
        **more,
    }


def resource_text(kind: Kind) -> str:
    """`pods`, or `deployments.apps` outside the core group."""
    return f"{kind.plural}.{kind.group}" if kind.group else kind.plural


def not_found(kind: Kind, name: str) -> StatusError:
    """404: no object of that name."""
    return StatusError(404, "NotFound", f'{resource_text(kind)} "{name}" not found', details=details_of(kind, name))


def no_such_resource() -> StatusError:
    """404: no such kind is served."""
    return StatusError(404, "NotFound", "the server could not find the requested resource", details={})


def already_exists(kind: Kind, name: str, *, dying: bool = False) -> StatusError:
    """409: the name is taken, be it by an object on its way out."""
    message = f'{"object is being deleted: " if dying else ""}{resource_text(kind)} "{name}" already exists'
    return StatusError(409, "AlreadyExists", message, details=details_of(kind, name))


MODIFIED = "the object has been modified; please apply your changes to the latest version and try again"


def conflict(kind: Kind, name: str, why: str = MODIFIED) -> StatusError:
    """409: the object is not the one that the caller judged."""
    return StatusError(
        409, "Conflict", f'Operation cannot be fulfilled on {resource_text(kind)} "{name}": {why}', details=details_of(kind, name)
    )


def forbidden(kind: Kind, name: str, why: str, causes: Sequence[Cause] = ()) -> StatusError:
    """403: admission says no."""
    more = {"causes": [cause.body() for cause in causes]} if causes else {}
    subject = f'{resource_text(kind)} "{name}"' if name else resource_text(kind)
    return StatusError(403, "Forbidden", f"{subject} is forbidden: {why}", details=details_of(kind, name, **more))


def invalid(kind: Kind, name: str, causes: Sequence[Cause]) -> StatusError:
    """422: fields are wrong, each with its cause, in one message."""
    subject = f"{kind.name}.{kind.group}" if kind.group else kind.name
    texts = list(dict.fromkeys(str(cause) for cause in causes))
    text = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
    details = {
        **({"name": name} if name else {}),
        **({"group": kind.group} if kind.group else {}),
        **({"kind": kind.name} if kind.name else {}),
        "causes": [cause.body() for cause in causes],
    }
    return StatusError(422, "Invalid", f'{subject} "{name}" is invalid: {text}', details=details)


def bad_request(message: str) -> StatusError:
    """400: what was sent cannot be read."""
    return StatusError(400, "BadRequest", message)


def expired(message: str, *, metadata: Mapping[str, Any] | None = None) -> StatusError:
    """410: the revision asked for is forgotten."""
    return StatusError(410, "Expired", message, metadata=metadata)


def method_not_allowed() -> StatusError:
    """405: the resource has no such verb."""
    return StatusError(405, "MethodNotAllowed", "the server does not allow this method on the requested resource", details={})


def unsupported_media_type(message: str) -> StatusError:
    """415: a body or patch of a sort that this resource does not take."""
    return StatusError(415, "UnsupportedMediaType", message)


_SITUATIONS: dict[str, type[errors.ClusterError]] = {
    "AlreadyExists": errors.AlreadyExists,
    "Conflict": errors.Conflict,
    "Expired": errors.Expired,
    "Gone": errors.Expired,
}
_CODES: dict[int, type[errors.ClusterError]] = {
    400: errors.Invalid,
    401: errors.Unauthorized,
    403: errors.Forbidden,
    404: errors.NotFound,
    405: errors.Invalid,
    409: errors.Conflict,
    410: errors.Expired,
    413: errors.Invalid,
    415: errors.Invalid,
    422: errors.Invalid,
    429: errors.Throttled,
}


def as_cluster_error(error: StatusError) -> errors.ClusterError:
    """The same refusal as the engine's clients speak of it."""
    situation = _SITUATIONS.get(error.reason) or _CODES.get(error.code, errors.ServerFault)
    return situation(error.message, status=error.body, retry_after=None if error.retry_after is None else float(error.retry_after))
