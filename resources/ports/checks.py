"""Check: one requirement on an installation, judged before workloads are managed there."""

from enum import StrEnum
from typing import Final

from msgspec import Struct

GRANT: Final = "allow it with kubectl create clusterrole and kubectl create clusterrolebinding, and run engine preflight again"
"""What to do if reading is forbidden; the server's message names the user and the resource."""


class Severity(StrEnum):
    """How serious it is if a requirement is not met."""

    HARD = "hard"
    """Nothing works, or not what is configured."""
    WARNING = "warning"
    """Something does not work, or works less well."""
    INFO = "info"
    """For information only."""


class CheckResult(StrEnum):
    """The result of a check."""

    GOOD = "ok"
    BAD = "bad"
    UNKNOWN = "unknown"
    """The requirement could not be judged, e.g. because listing was forbidden."""


class Check(Struct, frozen=True):
    """One check."""

    level: Severity
    subject: str
    """What is checked, e.g. `server version`."""
    outcome: CheckResult
    finding: str
    """What was found, in one sentence."""
    remedy: str = ""
    """What to do if the outcome is not good; empty if there is nothing to do."""


def judged(level: Severity, subject: str, fault: str, finding: str, remedy: str = "") -> Check:
    """A check that is bad and says `fault` if that is not empty; otherwise it is good and says `finding`."""
    return Check(level, subject, CheckResult.BAD, fault, remedy) if fault else Check(level, subject, CheckResult.GOOD, finding)


def unknown(level: Severity, subject: str, why: str, remedy: str = "") -> Check:
    """A check with the outcome `UNKNOWN`; `why` says why it could not be judged. For a missing permission the remedy is `GRANT`."""
    remedy = remedy or (GRANT if "is forbidden" in why else "")
    return Check(level, subject, CheckResult.UNKNOWN, f"cannot be judged: {why}", remedy)
