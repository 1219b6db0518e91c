"""Lag: a client of a cluster that delivers changes late, for each kind by itself, whose watches break, and that loses answers to writes."""

import random
from collections import defaultdict
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

from engine.errors import ClusterError, Expired, Unreachable
from engine.ids import Kind
from engine.runtime.clock import Clock
from engine.runtime.provider import Client
from grove_sandbox.clients.inprocess import InProcessClient
from tests.stories.process import ASIDE, WRITES, Call, Process
from tests.stories.stage import Stage

LONGEST = 10.0
"""Seconds that an event is late at most."""

ENDS: tuple[ClusterError | None, ...] = (None, Unreachable("the line is cut"), Expired("too old"))
"""How a watch may be cut: the server ends it, the line breaks, its place is forgotten."""


class Lagging:
    """A `Client` over another one whose watches lag: now and then a kind falls silent for some seconds, and then tells all at once."""

    def __init__(self, client: Client, clock: Clock, seed: int, *, longest: float = LONGEST, cuts: float = 0.02) -> None:
        self._client, self._clock, self._chance = client, clock, random.Random(seed)
        self._longest, self._cuts = longest, cuts
        self._silent_until: dict[Kind, float] = defaultdict(float)

    def __getattr__(self, verb: str) -> Any:
        return getattr(self._client, verb)

    async def watch(self, kind: Kind, namespace: str = "", **options: Any) -> AsyncGenerator[tuple[str, dict[str, Any]]]:
        """What happens, later, in the order in which it happened."""
        async with aclosing(self._client.watch(kind, namespace, **options)) as events:
            async for event in events:
                await self._wait(kind)
                if self._chance.random() < self._cuts:
                    if (end := self._chance.choice(ENDS)) is not None:
                        raise end
                    return
                yield event

    async def _wait(self, kind: Kind) -> None:
        now = self._clock.monotonic()
        if now > self._silent_until[kind]:
            self._silent_until[kind] = now + self._chance.uniform(0, self._longest)
        await self._clock.sleep(self._silent_until[kind] - now)


def lagging(cluster: Stage, seed: int, *, losses: float = 0.02, **how: float) -> Process:
    """A process of ours at the end of such a line."""
    cluster.start()
    chance = random.Random(seed)

    def lose(call: Call) -> ClusterError | None:
        verb, kind, _ = call
        is_lost = verb in WRITES and kind.name not in ASIDE and chance.random() < losses
        return Unreachable("the answer was lost") if is_lost else None

    late = Process(Lagging(InProcessClient(cluster.api), cluster.clock, seed, **how))
    cluster.process, late.loses = late, lose
    return late
