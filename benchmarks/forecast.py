"""The time that forecasts of one large set take: its creation, an update, a scale-in, its deletion. `python -m benchmarks.forecast`."""

import argparse
from collections.abc import Iterable, Mapping
from typing import Any

from benchmarks.plan import CONFIGURATION, NOW, podcliqueset, report, timed
from engine.forecast.forecast import Forecast
from engine.guard import Limits
from engine.intent import Intent
from engine.memo import Memo
from engine.observed import Live, World, live
from engine.proposal import propose
from engine.runtime.garbage_collection import tune_gc
from engine.tick import plan_all
from engine.world import assemble
from resources.preview.facts import FirstPass
from resources.preview.forecasting import forecast_of, simulated
from resources.registry import BLUEPRINTS


def main() -> None:
    """Measure and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--replicas", type=int, default=500, help="replicas of the set: a replica is two pods")
    options = parser.parse_args()
    tune_gc()
    manifest = _manifest(options.replicas, "registry.example/worker:1")
    _timed("create", World(()), manifest)
    existing = simulated(_first(World(()), manifest)).final
    _timed("another image", _world(existing), _manifest(options.replicas, "registry.example/worker:2"))
    _timed("half the replicas", _world(existing), _manifest(options.replicas // 2, "registry.example/worker:1"))
    _timed("twice the replicas", _world(existing), _manifest(options.replicas * 2, "registry.example/worker:1"))
    _timed("delete", _world(map(_deleted, existing)))


def _manifest(replicas: int, image: str) -> dict[str, Any]:
    body = podcliqueset("large", replicas)
    clique = body["spec"]["template"]["cliques"][0]["spec"]
    clique["podSpec"]["containers"] = [{**clique["podSpec"]["containers"][0], "image": image}]
    return {**body, "metadata": {"name": "large", "namespace": "default"}}


def _timed(name: str, world: World, *manifests: Mapping[str, Any]) -> None:
    """Print the times of the first plan and of the forecast, and whether that is complete."""
    first = timed(f"{name}: first plan", lambda: _first(world, *manifests))
    end: Forecast = timed(f"{name}: forecast", lambda: forecast_of(first))
    report(f"{name}: passes with operations", len(end.passes), "passes" if end.is_finished else "passes at least")


def _first(world: World, *manifests: Mapping[str, Any]) -> FirstPass:
    """The pass that a forecast begins with."""
    proposed = propose(world, manifests)
    planned = plan_all(BLUEPRINTS, proposed, NOW, CONFIGURATION, Memo(), Limits())
    return FirstPass(NOW, proposed, planned, CONFIGURATION, Intent(manifests))


def _deleted(each: Live) -> Live:
    """A set as it is when a user has deleted it; other objects as they are."""
    if each.id.kind != "PodCliqueSet":
        return each
    metadata = {**each.body["metadata"], "deletionTimestamp": "2026-01-01T00:00:00Z"}
    return live({**each.body, "metadata": metadata})


def _world(lives: Iterable[Live]) -> World:
    """The world with these objects."""
    objects = list(lives)
    roots = [each for each in objects if each.id.kind == "PodCliqueSet"]
    return assemble(BLUEPRINTS, roots, (each for each in objects if each.id.kind != "PodCliqueSet"), {})


if __name__ == "__main__":
    main()
