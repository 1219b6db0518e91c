"""Watched: a cluster that is listed once and followed from then on, so that a look at it costs no call, and a change is noticed at once."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import anyio

from engine.ids import Kind, ResourceId
from engine.observed import Live
from engine.operation import Event, Operation
from engine.runtime.client import Client
from engine.runtime.clock import Clock
from engine.runtime.provider import Scope, Sighting
from providers.cluster import Cluster, refuse_the_worthless
from providers.following import Following
from providers.listing import is_older
from providers.scoping import sighting, targets


class Watched:
    """`engine.runtime.provider.Provider`, and `Attentive`, over a client. Outside of `following` it lists, as `Cluster` does."""

    def __init__(self, client: Client, clock: Clock) -> None:
        self._client, self._clock = client, clock
        self._cluster = Cluster(client, clock)
        self._followed: tuple[Scope, list[Following]] | None = None
        self._changed = anyio.Event()
        self._last: Sighting | None = None

    @asynccontextmanager
    async def following(self, scope: Scope) -> AsyncGenerator[None]:
        """Keep up with everything in the scope for as long as this lasts."""
        self._cluster.know(scope)
        followed = [Following(self._client, self._clock, target, self._note) for target in targets(scope)]
        async with anyio.create_task_group() as tasks:
            for one in followed:
                tasks.start_soon(one.run)
            self._followed, self._last = (scope, followed), None
            try:
                yield
            finally:
                self._followed = None
                tasks.cancel_scope.cancel()

    async def changed(self) -> None:
        """Return once something is otherwise than at the last look."""
        await self._changed.wait()

    def _note(self) -> None:
        self._last = None
        self._changed.set()

    async def observe(self, scope: Scope) -> Sighting:
        """What is there. Raises `Unauthorized`, and `Unreachable` when nothing has been heard of for a while."""
        if self._followed is None or self._followed[0] is not scope:
            return await self._cluster.observe(scope)
        followed = self._followed[1]
        for one in followed:
            await one.synced.wait()
        troubles = {one.target.kind.name: error for one in followed if (error := one.trouble) is not None}
        refuse_the_worthless(troubles.values(), anything=any(one.served and one.trouble is None for one in followed))
        if self._last is None or troubles or self._last.incomplete:
            self._changed = anyio.Event()
            found = ((one.target.kind, one.lives.values()) for one in followed)
            unserved = (one.target.kind.name for one in followed if not one.served or is_older(one.kind, scope))
            self._last = sighting(scope, found, {kind: str(error) for kind, error in troubles.items()}, unserved)
        return self._last

    async def execute(self, operation: Operation, uids: Mapping[ResourceId, str]) -> Mapping[str, Any] | None:
        """Make the call, and take its answer for what is there until the watch says more."""
        answer = await self._cluster.execute(operation, uids)
        for one in self._followed[1] if self._followed is not None else ():
            kind, namespace = one.target.kind, one.target.namespace
            if (kind.group, kind.name) == operation.id[:2] and namespace in ("", operation.id.namespace):
                one.assume(operation, answer)
        return answer

    async def look(self, id: ResourceId) -> Live | None:
        """That one object, as the server has it now."""
        return await self._cluster.look(id)

    async def record(self, event: Event) -> None:
        """Write a Kubernetes Event."""
        await self._cluster.record(event)

    async def serves(self, kind: Kind) -> bool:
        """Whether the cluster serves that kind."""
        return await self._cluster.serves(kind)
