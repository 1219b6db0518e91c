"""Check: one requirement on an installation, judged before workloads are managed there."""

from enum import StrEnum
from typing import Final

from msgspec import Struct

from resources.ports.queries import QueryResult

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


def unread(level: Severity, subject: str, result: QueryResult, otherwise: str = "") -> Check:
    """A check that needs a query which failed, or which found nothing: `otherwise` says that. For a missing right the remedy is `GRANT`."""
    return unknown(level, subject, result.error or otherwise, GRANT if result.is_forbidden else "")


def unknown(level: Severity, subject: str, why: str, remedy: str = "") -> Check:
    """A check with the outcome `UNKNOWN`; `why` says why it could not be judged."""
    return Check(level, subject, CheckResult.UNKNOWN, f"cannot be judged: {why}", remedy)
