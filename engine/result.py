"""Result: how an operation ended."""

from dataclasses import dataclass
from enum import StrEnum

from engine.operation import Operation
from engine.resource import Body


class Outcome(StrEnum):
    """How an operation ended."""

    DONE = "done"
    CONFLICT = "conflict"
    """The object changed since the plan was made: look again."""
    FAILED = "failed"
    SKIPPED = "skipped"
    """Something it had to come after did not happen."""


@dataclass(frozen=True, slots=True, eq=False)
class Result:
    """The answer to an operation."""

    operation: Operation
    outcome: Outcome
    live: Body | None = None
    error: Exception | None = None
