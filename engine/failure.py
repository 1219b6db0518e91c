"""FailedCall: an API call that an earlier pass made without success; an input of the next pass."""

from datetime import datetime

from msgspec import Struct

from engine.ids import ResourceId
from engine.verb import Verb


class FailedCall(Struct, frozen=True, eq=False):
    """An API call that failed when it was last made, or that is due and has not been made by this process.

    Compared by identity: while the failure lasts, it is the same object.
    """

    verb: Verb
    id: ResourceId
    """The object that was to be written."""
    parent: tuple[str, str] | None
    """Kind and name of the object that owns it and reports the failure in its status; None for a root itself."""
    error: Exception | None
    """None if the call has not been made: whether it fails is not known."""
    since: datetime
    """When the call first failed with an error of this type, or when it was first due."""
