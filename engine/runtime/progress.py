"""Progress: what a session tells while it works; whoever shows it decides how."""

from collections.abc import Sequence
from typing import Protocol

from engine.plan import Plan
from engine.result import Outcome, Result
from engine.runtime.logs import Log


class Progress(Protocol):
    """Told in this order: perhaps `contested`, then for each pass `planned`, each `done`, and `resting` before the next one."""

    def contested(self, holder: str) -> None:
        """We wait for that holder of the lease."""
        ...

    def planned(self, plans: Sequence[Plan], calls: int) -> None:
        """A pass has been thought out; of its operations, so many are carried out now."""
        ...

    def done(self, result: Result) -> None:
        """An operation has ended, one way or another."""
        ...

    def resting(self, plans: Sequence[Plan], seconds: float) -> None:
        """Nothing is done for that long, unless we are stopped; the plans say what is waited for."""
        ...


class NoProgress:
    """A `Progress` that shows nothing."""

    def contested(self, holder: str) -> None:
        """Nothing."""

    def planned(self, plans: Sequence[Plan], calls: int) -> None:
        """Nothing."""

    def done(self, result: Result) -> None:
        """Nothing."""

    def resting(self, plans: Sequence[Plan], seconds: float) -> None:
        """Nothing."""


class Lines:
    """A `Progress` as lines of a log: every operation, and whom we wait for."""

    def __init__(self, log: Log) -> None:
        self._log = log

    def contested(self, holder: str) -> None:
        """Who leads instead of us."""
        self._log.info("waiting for the lease", holder=holder)

    def planned(self, plans: Sequence[Plan], calls: int) -> None:
        """How much there is to do."""
        self._log.debug("planned", roots=len(plans), operations=calls)

    def done(self, result: Result) -> None:
        """What came of an operation."""
        operation, outcome = result.operation, result.outcome
        values = {"operation": operation.verb, "object": operation.id, "why": operation.why}
        if outcome is Outcome.DONE:
            self._log.info("done", **values)
        elif outcome is Outcome.FAILED:
            self._log.warning("failed", **values, error=result.error)
        else:
            self._log.debug(str(outcome), **values, error=result.error)

    def resting(self, plans: Sequence[Plan], seconds: float) -> None:
        """How long until the next pass."""
        self._log.debug("resting", seconds=round(seconds, 3))
