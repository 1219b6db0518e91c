"""Progress: what a session tells while it works; whoever shows it decides how."""

from collections.abc import Sequence
from typing import Protocol

from engine.operation import Plan, Result


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


class Silence:
    """A `Progress` that shows nothing."""

    def contested(self, holder: str) -> None:
        """Nothing."""

    def planned(self, plans: Sequence[Plan], calls: int) -> None:
        """Nothing."""

    def done(self, result: Result) -> None:
        """Nothing."""

    def resting(self, plans: Sequence[Plan], seconds: float) -> None:
        """Nothing."""
