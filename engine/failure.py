"""Failed calls: what could not be done when it was last tried, as an input of the next pass."""

from dataclasses import dataclass
from datetime import datetime

from engine.ids import ResourceId
from engine.verb import Verb


@dataclass(frozen=True, slots=True, eq=False)
class FailedCall:
    """An API call that failed the last time it was made. Compared by identity: as long as the failure lasts, the object is the same."""

    verb: Verb
    id: ResourceId
    """The object that the call was about."""
    parent: tuple[str, str] | None
    """Kind and name of the object that the call was made for, whose status reports the failure; None for a root itself."""
    error: Exception | None
    """None while the call is due and has not been tried: then it is not known whether it fails."""
    since: datetime
    """When the call failed first."""
