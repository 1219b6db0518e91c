"""LoopMetrics: passes, operations, leadership and Events, counted as the loop reports them."""

from collections import Counter
from collections.abc import Sequence

from prometheus_client import CollectorRegistry

from engine.event import Publication
from engine.operation import Outcome, Result
from engine.plan import Plan, noteworthy
from engine.runtime.clock import Clock
from engine.runtime.passes import Pass
from engine.verb import Verb
from providers.metrics import families
from providers.metrics.families import CONTROLLER, counter, gauge, histogram
from resources.ports.configuration import Configuration

SUCCESS, REQUEUE, ERROR = "success", "requeue_after", "error"
"""The results of a pass, in controller-runtime's words."""


class LoopMetrics:
    """An `engine.runtime.observers.LoopObserver` that counts. `lease` is the name of the Lease; empty: leader election is disabled."""

    def __init__(self, registry: CollectorRegistry, clock: Clock, lease: str = "") -> None:
        self._clock, self._lease = clock, lease
        self._passes = counter(families.PASSES, registry)
        self._errors = counter(families.PASS_ERRORS, registry)
        self._seconds = histogram(families.PASS_SECONDS, registry)
        self._phases = histogram(families.PHASE_SECONDS, registry)
        self._last = gauge(families.LAST_PASS, registry)
        self._operations = counter(families.OPERATIONS, registry)
        self._operation_errors = counter(families.OPERATION_ERRORS, registry)
        self._events = counter(families.EVENTS, registry)
        self._leader = gauge(families.LEADER, registry)
        self._executing_since = 0.0
        self._begin_at_zero()

    def _begin_at_zero(self) -> None:
        """Give every series its first value: a rate needs two, so what appears with its first count is not seen."""
        for result in (SUCCESS, REQUEUE, ERROR):
            self._passes.labels(CONTROLLER, result)
            self._last.labels(result)
        self._errors.labels(CONTROLLER)
        for verb in Verb:
            for outcome in Outcome:
                self._operations.labels(verb, outcome)
        for result in ("written", "failed", "withheld"):
            self._events.labels(result)
        if self._lease:
            self._leader.labels(self._lease)

    def leading(self, leads: bool) -> None:
        """Set whether the Lease is ours."""
        if self._lease:
            self.holds(self._lease, leads)

    def holds(self, lease: str, holds: bool) -> None:
        """Set whether the Lease of that name is ours."""
        self._leader.labels(lease).set(holds)

    def planned(self, current: Pass[Configuration], chosen: Sequence[Plan]) -> None:
        """Observe how long observing and planning took."""
        self._phases.labels("observe").observe(current.observing)
        self._phases.labels("plan").observe(max(0.0, current.took - current.observing))
        self._executing_since = self._clock.monotonic()

    def passed(self, current: Pass[Configuration], results: Sequence[Result]) -> None:
        """Count the pass and its operations."""
        executing = self._clock.monotonic() - self._executing_since
        self._phases.labels("execute").observe(executing)
        self._seconds.labels(CONTROLLER).observe(current.took + executing)
        for result in results:
            operation = result.operation
            self._operations.labels(operation.verb, result.outcome).inc()
            if result.outcome is Outcome.FAILED:
                self._operation_errors.labels(operation.verb, type(result.error).__name__).inc()
        self._count(result_of(current, results))

    def failed(self, error: Exception) -> None:
        """Count a pass that ended with an error."""
        self._count(ERROR)

    def published(self, publication: Publication) -> None:
        """Count the Events of a pass."""
        self._events.labels("written").inc(publication.written)
        self._events.labels("failed").inc(publication.failed)
        self._events.labels("withheld").inc(publication.withheld)

    def _count(self, result: str) -> None:
        self._passes.labels(CONTROLLER, result).inc()
        self._last.labels(result).set(self._clock.now().timestamp())
        if result == ERROR:
            self._errors.labels(CONTROLLER).inc()


def result_of(current: Pass[Configuration], results: Sequence[Result]) -> str:
    """`error` if an operation has failed, `success` if all roots were planned, all that was planned is done and nothing is deferred."""
    outcomes = Counter(result.outcome for result in results)
    if outcomes[Outcome.FAILED]:
        return ERROR
    plans = noteworthy(current.planned.plans)
    is_left = any(plan.deferred or plan.is_unplanned for plan in plans)
    is_complete = outcomes[Outcome.DONE] == sum(len(plan.operations) for plan in plans) and not is_left
    return SUCCESS if is_complete else REQUEUE
