"""Result: the outcome of an operation."""

from dataclasses import dataclass
from enum import StrEnum

from engine.operation import Operation
from engine.resource import Body


class Outcome(StrEnum):
    """How an operation ended."""

    DONE = "done"
    CONFLICT = "conflict"
    """The object changed after it was observed: observe it again."""
    FAILED = "failed"
    SKIPPED = "skipped"
    """An operation that had to come first did not succeed."""


@dataclass(frozen=True, slots=True, eq=False)
class Result:
    """The outcome of an operation, with the object that the server returned or the error."""

    operation: Operation
    outcome: Outcome
    live: Body | None = None
    error: Exception | None = None
