"""Request and decision: the input and the output of admission, independent of the transport."""

from enum import StrEnum

from msgspec import Struct

from engine.ids import ResourceId
from engine.resource import Body
from resources.schema.issues import Issue


class Act(StrEnum):
    """The operation of an admission request."""

    CREATE = "CREATE"
    UPDATE = "UPDATE"
    DELETE = "DELETE"
    CONNECT = "CONNECT"


class Request(Struct, frozen=True):
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
    """The subresource that is changed, e.g. `status`; empty for the object itself."""


class Decision(Struct, frozen=True):
    """The answer to a request."""

    issues: tuple[Issue, ...] = ()
    """Everything that is wrong with the object; any issue denies the request."""
    warnings: tuple[str, ...] = ()
    """Messages for the user that do not deny the request."""
    denial: str = ""
    """Why the user must not change the object, whatever it contains; empty if there is no such reason."""
    body: Body | None = None
    """The object to store: `request.body` itself if nothing is changed."""

    @property
    def allowed(self) -> bool:
        """Whether the request is admitted."""
        return not self.issues and not self.denial
