"""FleetMetrics: how many roots, gangs, pods, domains and waits are in which state, counted when they are scraped."""

from collections import Counter
from collections.abc import Iterator, Sequence
from threading import Lock

from prometheus_client.metrics_core import Metric

from engine.ids import ResourceId
from engine.plan import Plan
from engine.runtime.observers import LoopObserver
from engine.runtime.passes import Pass
from providers.metrics.families import BY_FIGURE, samples
from resources.ports.configuration import Configuration
from resources.reports.figures import Figure, figures


class FleetMetrics(LoopObserver[Configuration]):
    """A `LoopObserver` that keeps the last pass, and a collector that counts what is in it.

    A pass costs nothing here. What has been counted for a root is kept for as long as its plan is the same object, so that asking costs
    what has changed since it was last asked. A process that does not lead has no figures: they would be added to those of the leader.
    """

    def __init__(self) -> None:
        self._last: Pass[Configuration] | None = None
        self._counted: dict[ResourceId, tuple[Plan, Counter[Figure]]] = {}
        self._totals: Counter[Figure] = Counter()
        # Two requests may ask at once, each in a thread of its own.
        self._lock = Lock()

    def leading(self, leads: bool) -> None:
        """Without the lease what was seen last says nothing any more."""
        if not leads:
            self._last = None

    def planned(self, current: Pass[Configuration], chosen: Sequence[Plan]) -> None:
        """Keep the pass."""
        self._last = current

    def collect(self) -> Iterator[Metric]:
        """All figures of the last pass, zeros included once they have not been zero."""
        totals = self._current_totals()
        by_name: dict[str, list[tuple[tuple[str, ...], float]]] = {name: [] for name in BY_FIGURE}
        for (name, *labels), value in sorted(totals.items()):
            by_name[name].append((tuple(labels), value))
        for name, values in by_name.items():
            yield samples(BY_FIGURE[name], values)

    def _current_totals(self) -> Counter[Figure]:
        with self._lock:
            if (current := self._last) is None:
                self._counted, self._totals = {}, Counter()
            else:
                self._count(current)
            totals = self._totals.copy()
        totals.update(("objections", objection.rule) for objection in (current.planned.objections if current else ()))
        return totals

    def _count(self, current: Pass[Configuration]) -> None:
        """Bring the totals up to date with a pass."""
        observed = {each.root.id: each for each in current.world.roots}
        plans = {plan.root: plan for plan in current.planned.plans}
        for root in self._counted.keys() - plans.keys():
            self._totals.subtract(self._counted.pop(root)[1])
        for root, plan in plans.items():
            known = self._counted.get(root)
            if known is not None and known[0] is plan:
                continue
            counted = figures(observed.get(root), plan, current.configuration)
            self._counted[root] = plan, counted
            if known is not None:
                self._totals.subtract(known[1])
            self._totals.update(counted)
