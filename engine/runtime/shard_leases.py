"""Leases of shards: one for each shard, and the number of shards, which all writers must agree on.

The Lease of shard 0 is the one that a single writer holds, and says how many shards there are: the layout. A writer counts on a layout only
if it has read it after it acquired its own lease, and the layout is changed only by the process that holds the leases of all its
shards. So no two processes write by different layouts.
"""

from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from engine.errors import ClusterError, EngineError, LeaseTaken, NotFound
from engine.runtime.lease import FINAL, LEASE, Leadership, Lease, held
from engine.runtime.lease_holder import CurrentHolder, LeaseHolder, holder_of, layout_of, renewed_at
from engine.shards import Shard

SINGLE = Shard(0, 1)
"""The only shard of a cluster whose namespaces are not divided."""


class LayoutChanged(EngineError):
    """The number of shards is another than the one that was expected."""


def lease_name(name: str, shard: int) -> str:
    """The name of the Lease of a shard. `name`: that of shard 0."""
    return f"{name}-shard-{shard}" if shard else name


def shard_lease(first: Lease, shard: Shard) -> Lease:
    """The lease of a shard. `first`: the lease of shard 0, which is returned as it is for a single shard."""
    if shard == SINGLE:
        return first
    return replace(first, name=lease_name(first.name, shard.index), purpose=f"{first.purpose or 'a writer'}, {shard}")


async def read_lease(first: Lease, shard: int) -> Mapping[str, Any]:
    """The Lease object of a shard; empty if there is none. Raises the server's other errors."""
    try:
        return await first.client.get(LEASE, first.namespace, lease_name(first.name, shard))
    except NotFound:
        return {}


async def require_layout(first: Lease, leaderships: Mapping[int, Leadership], count: int) -> None:
    """Raise `LayoutChanged` unless there are `count` shards. `leaderships`: those that we have, by shard; that of shard 0 saves a read."""
    record = leaderships[0].record if 0 in leaderships else await read_lease(first, 0)
    if (layout := layout_of(record)) != count:
        raise LayoutChanged(f"the namespaces are divided into {layout} shards, not {count}")


class ShardHolder(Struct, frozen=True):
    """Who holds a shard, as its Lease says. A holder that has died is named until another replica takes the shard."""

    index: int
    lease: str
    """`namespace/name` of its Lease."""
    holder: LeaseHolder
    renewed_at: str
    """When the holder renewed the Lease last, to the second, by its own clock; empty if the Lease does not say it."""


async def shard_holders(first: Lease) -> list[ShardHolder]:
    """The holders of all shards, by index. Raises the server's errors."""
    lease = await read_lease(first, 0)
    leases = [lease, *[await read_lease(first, shard) for shard in range(1, layout_of(lease))]]
    return [
        ShardHolder(shard, f"{first.namespace}/{lease_name(first.name, shard)}", holder_of(lease), renewed_at(lease))
        for shard, lease in enumerate(leases)
    ]


class ShardClaim:
    """What a writer knows of the leases that it needs, from attempt to attempt."""

    def __init__(self, first: Lease) -> None:
        self.first = first
        self.lease = first
        """The lease that was tried last."""
        self._holders: dict[int, CurrentHolder] = {0: CurrentHolder()}
        self._tried = 0
        self._count: int | None = None

    @property
    def current(self) -> CurrentHolder:
        """What is known of the holder of the lease that was tried last."""
        return self._holders[self._tried]

    def trying(self, shard: Shard) -> CurrentHolder:
        """What is known of the holder of the lease that is tried now."""
        self._tried, self.lease = shard.index, shard_lease(self.first, shard)
        return self._holders.setdefault(shard.index, CurrentHolder())

    async def observe(self, shards: Iterable[int]) -> None:
        """Read the Leases of these shards, so that the time in which none of them is renewed runs for all of them at once."""
        clock, first = self.first.clock, self.first
        for shard in shards:
            lease = await read_lease(first, shard)
            if lease:
                holder = self._holders.setdefault(shard, CurrentHolder())
                holder.may_be_replaced(lease, first.identity, clock.monotonic(), first.durations.lease)

    async def layout(self) -> int:
        """The number of shards. While the server does not answer: as it was read last. Raises its error if it was never read."""
        try:
            self._count = layout_of(await read_lease(self.first, 0))
        except ClusterError as error:
            if self._count is None or isinstance(error, FINAL):
                raise
        return self._count


class HeldLeases(Struct, frozen=True):
    """The leases of several shards that are held together."""

    leaderships: Mapping[int, Leadership]

    def may_write(self) -> bool:
        """Whether none of them has passed its renew deadline."""
        return all(leadership.may_write() for leadership in self.leaderships.values())


@asynccontextmanager
async def held_together(
    claim: ShardClaim,
    needed: Callable[[int], Sequence[int]],
    *,
    patience: float | None,
    on_wait: Callable[[LeaseHolder], None],
) -> AsyncIterator[HeldLeases]:
    """Hold the leases of several shards while the block runs; like `held` otherwise. `needed` returns their indices for a number of shards.

    They are acquired in ascending order, so that two processes never wait for each other; `patience` is for all of them together.
    """
    clock = claim.first.clock
    give_up_at = clock.monotonic() + patience if patience is not None else None
    while True:
        count = await claim.layout()
        if len(shards := needed(count)) > 1:
            await claim.observe(shards)
        async with AsyncExitStack() as stack:
            leaderships: dict[int, Leadership] = {}
            for shard in (Shard(index, count) for index in shards):
                left = max(0.0, give_up_at - clock.monotonic()) if give_up_at is not None else None
                holding = held(shard_lease(claim.first, shard), patience=left, on_wait=on_wait, current=claim.trying(shard))
                leaderships[shard.index] = await stack.enter_async_context(holding)
            try:
                await require_layout(claim.first, leaderships, count)
            except LayoutChanged:
                continue
            yield HeldLeases(leaderships)
            return


async def establish_layout(claim: ShardClaim, count: int, on_wait: Callable[[LeaseHolder], None]) -> None:
    """Return when there are `count` shards. While there are more or fewer, wait until none of them is held, then change the number.

    Raises the server's errors.
    """
    first = claim.first
    while (existing := await claim.layout()) != count:
        try:
            async with held_together(claim, lambda layout: tuple(range(layout)), patience=0.0, on_wait=on_wait) as hold:
                await hold.leaderships[0].set_layout(count)
        except LeaseTaken:
            if claim.current.is_new():
                on_wait(claim.current.holder)
            await first.clock.sleep(first.durations.retry)
            continue
        if existing > count:
            await _delete_unused(first, range(count, existing))


async def _delete_unused(first: Lease, shards: Sequence[int]) -> None:
    """Delete the Leases of shards that no longer exist, if they are free. One that cannot be deleted does no harm."""
    for shard in shards:
        try:
            lease = await read_lease(first, shard)
            if lease and shard and not holder_of(lease).identity:
                name, metadata = lease_name(first.name, shard), lease["metadata"]
                revision = metadata["resourceVersion"]
                await first.client.delete(LEASE, first.namespace, name, uid=metadata.get("uid", ""), revision=revision)
        except ClusterError:
            continue
