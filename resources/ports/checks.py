"""Check: one thing that must, should or may be so before workloads are looked after, and how it stands."""

from dataclasses import dataclass
from enum import StrEnum


class Level(StrEnum):
    """What it means when it is not so."""

    HARD = "hard"
    """Nothing works, or not what is configured."""
    WARNING = "warning"
    """Something will not work, or not as well."""
    INFO = "info"
    """Worth knowing."""


class Outcome(StrEnum):
    """What came of it."""

    GOOD = "ok"
    BAD = "bad"
    UNKNOWN = "unknown"
    """It could not be judged: something may not be seen, or did not answer."""


@dataclass(frozen=True, slots=True)
class Check:
    """One check."""

    level: Level
    what: str
    outcome: Outcome
    found: str
    remedy: str = ""
    """What to do about it; empty where there is nothing to do."""


def judged(level: Level, what: str, fault: str, found: str, remedy: str = "") -> Check:
    """A check that is bad where there is a fault, told in its words, and good otherwise."""
    return Check(level, what, Outcome.BAD, fault, remedy) if fault else Check(level, what, Outcome.GOOD, found)


def unknown(level: Level, what: str, why: str, remedy: str = "") -> Check:
    """A check that nobody can make."""
    return Check(level, what, Outcome.UNKNOWN, f"cannot be judged: {why}", remedy)
