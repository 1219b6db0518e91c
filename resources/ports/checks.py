"""Check: one requirement on an installation, judged before workloads are managed there."""

from dataclasses import dataclass
from enum import StrEnum


class Level(StrEnum):
    """How serious it is if a requirement is not met."""

    HARD = "hard"
    """Nothing works, or not what is configured."""
    WARNING = "warning"
    """Something does not work, or works less well."""
    INFO = "info"
    """For information only."""


class Outcome(StrEnum):
    """The result of a check."""

    GOOD = "ok"
    BAD = "bad"
    UNKNOWN = "unknown"
    """The requirement could not be judged, e.g. because listing was forbidden."""


@dataclass(frozen=True, slots=True)
class Check:
    """One check."""

    level: Level
    subject: str
    """What is checked, e.g. `server version`."""
    outcome: Outcome
    finding: str
    """What was found, in one sentence."""
    remedy: str = ""
    """What to do if the outcome is not good; empty if there is nothing to do."""


def judged(level: Level, subject: str, fault: str, finding: str, remedy: str = "") -> Check:
    """A check that is bad and says `fault` if that is not empty; otherwise it is good and says `finding`."""
    return Check(level, subject, Outcome.BAD, fault, remedy) if fault else Check(level, subject, Outcome.GOOD, finding)


def unknown(level: Level, subject: str, why: str, remedy: str = "") -> Check:
    """A check with the outcome `UNKNOWN`; `why` says why it could not be judged."""
    return Check(level, subject, Outcome.UNKNOWN, f"cannot be judged: {why}", remedy)
