"""Request and decision: the input and the output of admission, independent of the transport."""

from dataclasses import dataclass
from enum import StrEnum

from engine.ids import ResourceId
from engine.resource import Body
from resources.schema.issues import Issue


class Act(StrEnum):
    """The operation of an admission request."""

    CREATE = "CREATE"
    UPDATE = "UPDATE"
    DELETE = "DELETE"
    CONNECT = "CONNECT"


@dataclass(frozen=True, slots=True)
class Request:
    """A request to create, change or delete one object."""

    act: Act
    id: ResourceId
    body: Body | None
    """The object after the request; None for a deletion."""
    old: Body | None = None
    """The stored object; None for a creation."""
    user: str = ""
    """The name of the authenticated user; empty if it is not known."""
    subresource: str = ""


@dataclass(frozen=True, slots=True)
class Decision:
    """The answer to a request."""

    issues: tuple[Issue, ...] = ()
    """Everything that is wrong with the object; any issue denies the request."""
    warnings: tuple[str, ...] = ()
    denial: str = ""
    """Why the user is not allowed to do this at all; empty if allowed."""
    body: Body | None = None
    """The object to store: `request.body` itself if nothing is changed."""

    @property
    def allowed(self) -> bool:
        """Whether the request is admitted."""
        return not self.issues and not self.denial
