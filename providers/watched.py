"""WatchingCluster: a cluster that is listed once and followed from then on, so that a look at it costs no call, and a change is noticed at once."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import anyio

from engine.errors import AlreadyExists, ClusterError, Conflict, NotFound, ServerFault, Unreachable
from engine.event import Event
from engine.ids import Kind, ResourceId
from engine.observed import Live
from engine.operation import Operation
from engine.runtime.client import Client
from engine.runtime.clock import Clock
from engine.runtime.provider import Observation, Scope
from engine.runtime.session import PASSING
from providers.cluster import Cluster, raise_if_nothing_observed
from providers.following import Following
from providers.listing import is_older
from providers.scoping import sighting, targets

DOUBTFUL = (Unreachable, ServerFault, Conflict, AlreadyExists, NotFound)
"""A write that was answered like this may have been done, or was made of what is no longer so."""

AT_ONCE = 8
"""How many doubts are resolved at once."""


class WatchingCluster:
    """`engine.runtime.provider.Provider`, and `WatchingProvider`, over a client. Outside of `following` it lists, as `Cluster` does."""

    def __init__(self, client: Client, clock: Clock) -> None:
        self._client, self._clock = client, clock
        self._cluster = Cluster(client, clock)
        self._followed: tuple[Scope, list[Following]] | None = None
        self._changed = anyio.Event()
        self._last: Observation | None = None
        self._doubts: set[ResourceId] = set()
        """Of these we may be wrong: what we did went unanswered, or the answer speaks against what we have seen."""

    @asynccontextmanager
    async def following(self, scope: Scope) -> AsyncGenerator[None]:
        """Keep up with everything in the scope for as long as this lasts."""
        self._cluster.know(scope)
        followed = [Following(self._client, self._clock, target, self._note) for target in targets(scope)]
        async with anyio.create_task_group() as tasks:
            for one in followed:
                tasks.start_soon(one.run)
            self._followed, self._last, self._doubts = (scope, followed), None, set()
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

    async def observe(self, scope: Scope) -> Observation:
        """What is there. Raises `Unauthorized`, and `Unreachable` when nothing has been heard of for a while."""
        if self._followed is None or self._followed[0] is not scope:
            return await self._cluster.observe(scope)
        await self._resolve()
        followed = self._followed[1]
        for one in followed:
            await one.synced.wait()
        troubles = {one.target.kind.name: error for one in followed if (error := one.trouble) is not None}
        raise_if_nothing_observed(troubles.values(), anything=any(one.served and one.trouble is None for one in followed))
        if self._last is None or troubles or self._last.incomplete:
            self._changed = anyio.Event()
            found = ((one.target.kind, one.lives.values()) for one in followed)
            unserved = (one.target.kind.name for one in followed if not one.served or is_older(one.kind, scope))
            self._last = sighting(scope, found, {kind: str(error) for kind, error in troubles.items()}, unserved)
        return self._last

    async def execute(self, operation: Operation, uids: Mapping[ResourceId, str]) -> Mapping[str, Any] | None:
        """Make the call, and take its answer for what is there until the watch says more."""
        try:
            answer = await self._cluster.execute(operation, uids)
        except DOUBTFUL:
            if self._following(operation.id):
                self._doubts.add(operation.id)
            raise
        for one in self._following(operation.id):
            one.assume(operation, answer)
        return answer

    async def look(self, id: ResourceId) -> Live | None:
        """That one object, as the server has it now."""
        known = [(one, one.lives.get(id)) for one in self._following(id)]
        found = await self._cluster.look(id)
        for one, before in known:
            one.correct(before, found)
        self._doubts.discard(id)
        return found

    def _following(self, id: ResourceId) -> list[Following]:
        """Whoever follows the list in which that object is."""
        followed = self._followed[1] if self._followed is not None else ()
        return [
            one
            for one in followed
            if one.target.kind.group == id.group and one.target.kind.name == id.kind and one.target.namespace in ("", id.namespace)
        ]

    async def _resolve(self) -> None:
        """Look at what we may be wrong about, before a plan is made of it: the watch may be late, and what is not known to be made
        would be made again. Raises what is worth another attempt."""
        limit = anyio.CapacityLimiter(AT_ONCE)
        troubles: list[ClusterError] = []

        async def ask(id: ResourceId) -> None:
            async with limit:
                try:
                    await self.look(id)
                except PASSING as error:
                    troubles.append(error)
                except ClusterError:
                    self._doubts.discard(id)  # Nobody tells us: the watch will.

        async with anyio.create_task_group() as tasks:
            for id in sorted(self._doubts):
                tasks.start_soon(ask, id)
        for error in troubles:
            raise error

    async def record(self, event: Event) -> None:
        """Write a Kubernetes Event."""
        await self._cluster.record(event)

    async def serves(self, kind: Kind) -> bool:
        """Whether the cluster serves that kind."""
        return await self._cluster.serves(kind)
