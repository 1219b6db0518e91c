"""StatusError: a refusal of the API, with the Status that a real API server sends."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from msgspec import Struct

from grove_sandbox.product import Kind


class Cause(Struct, frozen=True):
    """A fault of one field: `reason` is the machine-readable one of Kubernetes, `field` the path as users write it."""

    reason: str
    message: str
    field: str

    def __str__(self) -> str:
        """The text in the message of the Status."""
        return f"{self.field}: {self.message}" if self.field else self.message

    def body(self) -> dict[str, str]:
        """The cause as an entry of `details.causes`."""
        return {"reason": self.reason, "message": self.message, "field": self.field}


class StatusError(Exception):
    """A refusal. `body` is the Status, `code` its HTTP code; `retry_after` (whole seconds) and `warnings` become headers."""

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
    """Add the warnings to a refusal that the block raises."""
    try:
        yield
    except StatusError as error:
        error.warnings = (*warnings, *error.warnings)
        raise


def details_of(kind: Kind, name: str, **more: Any) -> dict[str, Any]:
    """The `details` of a Status about one object."""
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
    """404: there is no such object."""
    return StatusError(404, "NotFound", f'{resource_text(kind)} "{name}" not found', details=details_of(kind, name))


def no_such_resource() -> StatusError:
    """404: no such kind is served."""
    return StatusError(404, "NotFound", "the server could not find the requested resource", details={})


def already_exists(kind: Kind, name: str, *, dying: bool = False) -> StatusError:
    """409: the name is taken; with `dying`, by an object that is being deleted."""
    message = f'{"object is being deleted: " if dying else ""}{resource_text(kind)} "{name}" already exists'
    return StatusError(409, "AlreadyExists", message, details=details_of(kind, name))


MODIFIED = "the object has been modified; please apply your changes to the latest version and try again"


def conflict(kind: Kind, name: str, why: str = MODIFIED) -> StatusError:
    """409: the object has changed since the caller read it."""
    return StatusError(
        409, "Conflict", f'Operation cannot be fulfilled on {resource_text(kind)} "{name}": {why}', details=details_of(kind, name)
    )


def forbidden(kind: Kind, name: str, why: str, causes: Sequence[Cause] = ()) -> StatusError:
    """403: admission refuses."""
    more = {"causes": [cause.body() for cause in causes]} if causes else {}
    subject = f'{resource_text(kind)} "{name}"' if name else resource_text(kind)
    return StatusError(403, "Forbidden", f"{subject} is forbidden: {why}", details=details_of(kind, name, **more))


def invalid(kind: Kind, name: str, causes: Sequence[Cause]) -> StatusError:
    """422: fields are invalid; the message lists all causes."""
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
    """400: the request cannot be read."""
    return StatusError(400, "BadRequest", message)


def expired(message: str, *, metadata: Mapping[str, Any] | None = None) -> StatusError:
    """410: the requested revision is no longer known."""
    return StatusError(410, "Expired", message, metadata=metadata)


def method_not_allowed() -> StatusError:
    """405: the resource has no such verb."""
    return StatusError(405, "MethodNotAllowed", "the server does not allow this method on the requested resource", details={})


def unsupported_media_type(message: str) -> StatusError:
    """415: a body or patch of a type that the resource does not take."""
    return StatusError(415, "UnsupportedMediaType", message)
