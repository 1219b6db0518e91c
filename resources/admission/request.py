"""Request and decision: what is asked of admission, and what it answers, whoever carries them."""

from dataclasses import dataclass
from enum import StrEnum

from engine.ids import ResourceId
from engine.resource import Body
from resources.schema.issues import Issue


class Act(StrEnum):
    """What is about to happen to an object."""

    CREATE = "CREATE"
    UPDATE = "UPDATE"
    DELETE = "DELETE"
    CONNECT = "CONNECT"


@dataclass(frozen=True, slots=True)
class Request:
    """Something that somebody wants to do to one object."""

    act: Act
    id: ResourceId
    body: Body | None
    """The object as it is to be; None for a deletion."""
    old: Body | None = None
    """The object as it is; None for a creation."""
    user: str = ""
    subresource: str = ""


@dataclass(frozen=True, slots=True)
class Decision:
    """What becomes of a request."""

    issues: tuple[Issue, ...] = ()
    """Everything that is wrong with the object."""
    warnings: tuple[str, ...] = ()
    denial: str = ""
    """Why the user may not do this, whatever the object says."""
    body: Body | None = None
    """The object as it is to be stored: the very same as in the request where nothing is to be changed."""

    @property
    def allowed(self) -> bool:
        """Whether it may be done."""
        return not self.issues and not self.denial
