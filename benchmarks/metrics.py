"""What metrics cost: observing a pass, and reading the metrics. `python -m benchmarks.metrics --sets 1000`."""

import argparse
import gc

from benchmarks.plan import (
    CONFIGURATION,
    NOW,
    _plans,
    _with_one_pod_changed,
    _with_statuses,
    created,
    observed,
    podcliqueset,
    report,
    timed,
)
from engine import world
from engine.guard import Limits
from engine.memo import Memo
from engine.observed import World
from engine.runtime.clock import SystemClock
from engine.runtime.passes import Pass
from engine.tick import plan_all
from providers.metrics.metrics import EngineMetrics
from resources.ports.configuration import Configuration
from resources.registry import BLUEPRINTS


def main() -> None:
    """Measure and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", type=int, default=1000, help="how many PodCliqueSets")
    parser.add_argument("--replicas", type=int, default=19, help="replicas of each: a replica is five objects")
    options = parser.parse_args()
    gc.set_threshold(100_000, 50, 100)
    roots = [observed(podcliqueset(f"set-{number:04}", options.replicas)) for number in range(options.sets)]
    objects = list(created(_plans(world.assemble(BLUEPRINTS, roots, (), {}), Memo()), roots))
    existing, memo = _with_statuses(world.assemble(BLUEPRINTS, roots, objects, {})), Memo()
    metrics = EngineMetrics(SystemClock())

    def show(current: Pass[Configuration]) -> None:
        """What the loop does with a pass that has nothing to do."""
        metrics.observer.planned(current, ())
        metrics.observer.passed(current, ())

    first = _pass(existing, memo)
    timed("observing a pass", lambda: show(first))
    timed("first reading of the metrics", metrics.text)
    timed("reading them again", metrics.text)
    show(_pass(_with_one_pod_changed(existing), memo))
    timed("reading them after one pod has changed", metrics.text)
    report("size", len(metrics.text()[0]), "bytes")


def _pass(existing: World, memo: Memo) -> Pass[Configuration]:
    planned = plan_all(BLUEPRINTS, existing, NOW, CONFIGURATION, memo, Limits())
    return Pass(NOW, 0.0, existing, planned, frozenset(), CONFIGURATION)


if __name__ == "__main__":
    main()
