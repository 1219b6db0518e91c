"""InternalErrors: logs plans that could not be computed because of a defect of the engine."""

from collections.abc import Sequence

from engine.plan import Plan, noteworthy
from engine.runtime.logs import Log


class InternalErrors:
    """Logs each internal error with its traceback when it appears, not again in every pass."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._logged: set[str] = set()

    def note(self, plans: Sequence[Plan]) -> None:
        """Log the errors of these plans that the plans of the previous pass did not have."""
        errors = {f"{plan.root}: {plan.error!r}": plan for plan in noteworthy(plans) if plan.error is not None}
        for key, plan in errors.items():
            if key not in self._logged:
                self._log.error("internal error", root=plan.root, exc_info=plan.error)
        self._logged = set(errors)
