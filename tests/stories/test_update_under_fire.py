"""Under fire: an update during which somebody fails at every step. It ends, and never is a second unit away by our own hand."""

import random
from typing import Any

import pytest

from resources.base import kinds
from tests.builders import clique, group, podcliqueset
from tests.stories.pods import images, is_ready, running
from tests.stories.stage import Stage, stage
from tests.stories.umpire import Umpire

pytestmark = pytest.mark.anyio

FAILURES = ("evict", "unready", "crash")
HEALED_AFTER = 7.0


def standalone(version: int, minimum: int) -> dict[str, Any]:
    """Three replicas of two cliques, each of two pods."""
    cliques = [clique(name, 2, minAvailable=minimum, pod_spec=running(version)) for name in ("a", "b")]
    return podcliqueset("web", *cliques, replicas=3)


def grouped(version: int, minimum: int) -> dict[str, Any]:
    """Three replicas of two cliques that are in a group of two."""
    cliques = [clique("a", pod_spec=running(version)), clique("b", 2, pod_spec=running(version))]
    return podcliqueset("web", *cliques, groups=(group("g", "a", "b", replicas=2, min_available=minimum),), replicas=3)


class Fire:
    """Somebody who lets a pod fail: an evicted one is gone for good, any other recovers after a while."""

    def __init__(self, cluster: Stage, seed: int) -> None:
        self._cluster, self._chance = cluster, random.Random(seed)
        self._ill: dict[str, float] = {}
        self.hits = 0

    def strike(self) -> None:
        """Let one of those that serve fail."""
        healthy = sorted(name for name, pod in self._cluster.there(kinds.POD).items() if is_ready(pod) and name not in self._ill)
        if healthy:
            victim = self._chance.choice(healthy)
            self._cluster.fail(victim, self._chance.choice(FAILURES))
            self._ill[victim] = self._cluster.clock.monotonic()
            self.hits += 1

    def heal(self) -> None:
        """Let those recover who have been ill for long enough."""
        for name, since in list(self._ill.items()):
            if self._cluster.clock.monotonic() - since >= HEALED_AFTER:
                del self._ill[name]
                if name in self._cluster.there(kinds.POD):
                    self._cluster.fail(name, None)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("minimum", [1, 2], ids=["with-slack", "without-slack"])
@pytest.mark.parametrize("workload", [standalone, grouped])
async def test_an_update_ends_and_takes_no_second_unit_whoever_fails_meanwhile(workload: Any, minimum: int, seed: int) -> None:
    async with stage() as cluster, cluster.running() as ours:
        await cluster.apply(workload(1, minimum))
        await cluster.settle()
        fire = Fire(cluster, seed)
        umpire = Umpire(cluster, ours, on_take=fire.strike)

        await cluster.apply(workload(2, minimum))
        for _ in range(400):
            await cluster.clock.advance(1)
            fire.heal()
            status = cluster.there(kinds.PODCLIQUESET)["web"]["status"]
            if "updateEndedAt" in status.get("updateProgress", {}):
                break

        assert umpire.fouls == []
        assert fire.hits == len(umpire.takes) > 0
        assert images(cluster.there(kinds.POD).values()) == {"example/worker:2"}
        await cluster.settle()
        status = cluster.there(kinds.PODCLIQUESET)["web"]["status"]
        assert (status["updatedReplicas"], status["availableReplicas"]) == (3, 3)
