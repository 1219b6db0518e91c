"""Failed calls: what could not be done when it was last tried, as an input of the next pass."""

from dataclasses import dataclass
from datetime import datetime

from engine.operation import Operation


@dataclass(frozen=True, slots=True, eq=False)
class Trouble:
    """A call that failed the last time it was made, and since when it has. Compared by identity: as long as it lasts it is the same."""

    operation: Operation
    error: Exception | None
    """None while it has not been tried: then nobody knows."""
    since: datetime
