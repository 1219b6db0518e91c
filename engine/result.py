"""Result: the outcome of an operation."""

from enum import StrEnum

from msgspec import Struct

from engine.observed import Live
from engine.operation import Operation


class Outcome(StrEnum):
    """How an operation ended."""

    DONE = "done"
    CONFLICT = "conflict"
    """The object changed after it was observed: observe it again."""
    FAILED = "failed"
    SKIPPED = "skipped"
    """An operation that had to come first did not succeed."""


class Result(Struct, frozen=True, eq=False):
    """The outcome of an operation."""

    operation: Operation
    outcome: Outcome
    existing: Live | None = None
    """For a create in conflict: the object that has the name."""
    error: Exception | None = None
    uid: str = ""
    """The uid of the object that the server returned; empty if it returned none."""
