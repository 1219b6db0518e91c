"""The law of certificates: a client that trusts what a webhook configuration contains can handshake with every replica that is ready.

It holds through years of renewals, with several replicas that are killed at any write, and whatever people do to the Secret.
"""

import random
from collections.abc import Callable
from contextlib import suppress

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from engine.errors import NotFound
from providers.certificates.making import AUTHORITY_LIFE, SERVER_LIFE
from providers.certificates.self_made import SETTLED
from resources.base.kinds import SECRET
from tests.providers.certificates.fleet import NAME, SYSTEM, TARGETS, Fleet, fleet

LAG = SETTLED / 2
"""Seconds by which an API server may be behind."""

LATENCY = 1.0
"""Seconds that a call takes at most in each direction: calls of several replicas cross."""


class Watcher:
    """Turns the clock, replaces killed replicas, and collects every instant at which the law does not hold."""

    def __init__(self, cluster: Fleet, arm: Callable[[int], tuple[int, int]] = lambda number: (0, 0), *, lag: float = LAG) -> None:
        self._lag = lag
        self.faults: list[str] = []
        self.kills = 0
        self._cluster = cluster
        self._arm = arm
        for replica in cluster.replicas:
            replica.process.on_write = self.check

    def check(self) -> None:
        """Note who is refused now."""
        self.faults += [f"at {self._cluster.clock.now()}: {fault}" for fault in self._cluster.refused(lag=self._lag)]

    def arm(self) -> None:
        """Let every replica die at one of its next writes."""
        for replica in self._cluster.replicas:
            before, after = self._arm(self.kills)
            replica.process.dies_before = replica.process.count + before if before else 0
            replica.process.dies_after = replica.process.count + after if after else 0

    async def turn(self, seconds: int, *, step: int = 1) -> None:
        """Let time pass, and look after every step."""
        for _ in range(0, seconds, step):
            await self._cluster.clock.advance(step)
            for replica in [each for each in self._cluster.replicas if each.process.dead]:
                self._cluster.kill(replica)
                self._cluster.start().process.on_write = self.check
                self.kills += 1
            self.check()


@pytest.mark.anyio
async def test_years_of_renewals_refuse_nobody() -> None:
    async with fleet(3, latency=LATENCY) as cluster:
        watcher, seen = Watcher(cluster), set()
        end = cluster.clock.now() + AUTHORITY_LIFE * 4 / 5
        while cluster.clock.now() < end:
            cluster.clock.leaped += SERVER_LIFE * 3 / 10
            await watcher.turn(45, step=5)
            seen |= set(await cluster.authorities())

        assert watcher.faults == [] and all(each.certificate.is_ready() for each in cluster.replicas)
        assert len(seen) == 2 and len(await cluster.authorities()) == 1


@pytest.mark.anyio
@pytest.mark.parametrize("write", range(1, 6))
@pytest.mark.parametrize("when", ["before", "after"])
async def test_replicas_that_are_killed_at_any_write_of_a_rotation_refuse_nobody(write: int, when: str) -> None:
    async with fleet(3, latency=LATENCY) as cluster:
        watcher = Watcher(cluster, lambda _: (write, 0) if when == "before" else (0, write))
        (old,) = await cluster.authorities()
        watcher.arm()
        for _ in range(5):
            cluster.clock.leaped += AUTHORITY_LIFE * 2 / 15
            await watcher.turn(60)
        cluster.clock.leaped += SERVER_LIFE
        await watcher.turn(60)

        assert watcher.faults == [] and all(each.certificate.is_ready() for each in cluster.replicas)
        (new,) = await cluster.authorities()
        assert new != old and watcher.kills >= (write <= 3)


@given(some.randoms(use_true_random=False))
@settings(max_examples=10)
def test_whatever_happens_to_the_secret_refuses_nobody(chance: random.Random) -> None:
    anyio.run(_whatever_happens, chance)


async def _whatever_happens(chance: random.Random) -> None:
    async with fleet(3, latency=LATENCY) as cluster:
        await cluster.write_secret(note=b"ours")
        watcher = Watcher(cluster, lambda _: (chance.randrange(4), chance.randrange(4)), lag=0)
        others = await _others(cluster)
        for _ in range(12):
            watcher.arm()
            await _something(cluster, chance)
            await watcher.turn(chance.randrange(1, 25))
        await watcher.turn(90)

        assert watcher.faults == []
        assert all(each.certificate.is_ready() for each in cluster.replicas) and cluster.refused() == []
        assert await _others(cluster) == others


async def _something(cluster: Fleet, chance: random.Random) -> None:
    """Something that a user, time or a crash does."""
    match chance.randrange(7):
        case 0:
            with suppress(NotFound):
                await cluster.kubectl.delete(SECRET, SYSTEM, NAME)
        case 1:
            with suppress(NotFound):
                await cluster.write_secret(**{chance.choice(["ca_crt", "ca_key", "tls_crt", "tls_key"]): chance.choice([b"", b"?", None])})
        case 2:
            cluster.kill(chance.choice(cluster.replicas))
            cluster.start().process.on_write = cluster.replicas[0].process.on_write
        case 3:
            cluster.clock.leaped += AUTHORITY_LIFE * chance.random() / 4
        case _:
            cluster.clock.leaped += SERVER_LIFE * chance.random()


async def _others(cluster: Fleet) -> list[object]:
    """What is in the webhook configurations and is not ours."""
    bodies = [await cluster.kubectl.get(target.kind, "", target.name) for target in TARGETS]
    return [
        {key: value for key, value in webhook.items() if key != "clientConfig"} | {"service": webhook["clientConfig"]["service"]}
        for body in bodies
        for webhook in body["webhooks"]
    ]
