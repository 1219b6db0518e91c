"""Sharding: one replica of `engine run --shards N`: it takes free shards and those of dead replicas, and gives back those above its share.

Replicas do not talk to each other. Each reads the Leases once per retry period and decides by itself (`engine/shards.py`). What keeps two
of them from writing to one namespace is the Lease of the shard alone; the division only says who should try to hold it.
"""

import random
from collections.abc import Awaitable, Callable, Mapping
from hashlib import sha256
from typing import Any, Protocol

import anyio
from anyio.abc import TaskGroup
from msgspec import Struct, field
from msgspec.structs import replace

from engine.blueprint import C
from engine.errors import AlreadyExists, ClusterError, Conflict, EngineError, LeaseTaken, NotFound, Unreachable
from engine.memo import Steps
from engine.runtime.lease import LEASE, RELEASE_TIMEOUT, Lease, held, micro_time
from engine.runtime.lease_holder import CurrentHolder, LeaseHolder, annotated, holder_of, layout_of
from engine.runtime.logs import Log
from engine.runtime.observers import LeaseObserver, LoopObserver
from engine.runtime.shard_leases import ShardClaim, establish_layout, lease_name, require_layout, shard_lease
from engine.shards import Division, Shard, shards_to_give_back, shards_to_take


class Term(Struct, frozen=True, eq=False):
    """The time for which this process holds a shard."""

    shard: Shard
    leaving: anyio.Event = field(default_factory=anyio.Event)
    """Set when the shard is to be given back: nothing new is begun."""
    steps: Steps = field(default_factory=Steps)
    """What the work on the shard counts: its Lease is renewed only while it makes progress."""


class ShardWork(Protocol):
    """What a process does with a shard that it holds."""

    async def __call__(self, term: Term, may_write: Callable[[], bool]) -> None:
        """Plan and write until the term is to end and calls in progress have ended. Cancelled when the lease is lost."""
        ...


async def hold_shards(
    first: Lease,
    count: int,
    work: ShardWork,
    log: Log,
    *,
    observer: LoopObserver[C],
    on_wait: Callable[[LeaseHolder], None],
) -> None:
    """Hold a share of the shards and do the work of each, for ever. `first` is the lease of shard 0."""
    claim = ShardClaim(first)
    while True:
        try:
            await establish_layout(claim, count, on_wait)
            await _Replica(first, count, work, log, observer).take_part()
            log.warning("not leading", error=f"the namespaces are no longer divided into {count} shards; waiting for those that hold them")
        except EngineError as error:
            log.warning("not leading", error=error)
        await first.clock.sleep(first.durations.retry)


class _Replica:
    """The state of a replica while the number of shards is its own."""

    def __init__(self, first: Lease, count: int, work: ShardWork, log: Log, observer: LoopObserver[C]) -> None:
        self.first, self.count = first, count
        self.work, self.log, self.observer = work, log, observer
        self.holders = tuple(CurrentHolder() for _ in range(count))
        """What is known of the holder of each shard."""
        self.presence = Presence(first)
        self.replicas = Replicas(first)
        self.terms: dict[int, Term] = {}
        """The shards that we hold, or try to acquire."""
        self.leading: set[int] = set()
        """The shards that we hold."""
        self.logged: object = None

    async def take_part(self) -> None:
        """Take shards and give shards back, until there is another number of shards."""
        clock, retry = self.first.clock, self.first.durations.retry
        presence = self.presence
        try:
            async with anyio.create_task_group() as tasks:
                await self._attempt(presence.renew)
                # Replicas that start together see one another before the first one takes everything.
                await clock.sleep(retry)
                while await self._has_our_layout():
                    if await self._attempt(presence.renew):
                        await self._attempt(lambda: self._divide(tasks))
                    await clock.sleep(retry * random.uniform(0.9, 1.1))
                for term in self.terms.values():
                    term.leaving.set()
        finally:
            await presence.delete()

    async def _attempt(self, request: Callable[[], Awaitable[None]]) -> bool:
        """Make a request; returns whether the server answered in time. What could not be done now is tried in the next period."""
        error: Exception = Unreachable("the server did not answer in time")
        with anyio.move_on_after(self.first.durations.renew / 2):
            try:
                await request()
                return True
            except ClusterError as failure:
                error = failure
        self.log.warning("shards not divided", error=error)
        return False

    async def _has_our_layout(self) -> bool:
        """Whether there are as many shards as we count on; true while the server does not answer, for our leases then expire."""
        layouts = list[int]()

        async def read() -> None:
            try:
                lease = await self.first.client.get(LEASE, self.first.namespace, self.first.name)
                self.presence.first_uid = lease["metadata"]["uid"]
                layouts.append(layout_of(lease))
            except NotFound:
                layouts.append(1)

        await self._attempt(read)
        return layouts in ([], [self.count])

    async def _divide(self, tasks: TaskGroup) -> None:
        """Read the Leases; begin to give back the shards that others should have, and to acquire those that we should have."""
        listing = await self.first.client.list(LEASE, self.first.namespace)
        leases = {lease["metadata"]["name"]: lease for lease in listing.items}
        division = Division(self._holders_in(leases), await self.replicas.alive(leases))
        for shard in shards_to_give_back(division, self.first.identity):
            if shard in self.leading:
                self.terms[shard].leaving.set()
        for shard in shards_to_take(division, self.first.identity):
            if shard not in self.terms:
                self.terms[shard] = Term(Shard(shard, self.count))
                tasks.start_soon(self._hold, self.terms[shard])
        self._log_division(division)

    def _holders_in(self, leases: Mapping[str, Mapping[str, Any]]) -> list[str]:
        """The holder of each shard. What we are giving back counts as free, and what we try to acquire as ours."""
        return [self._holder_of(shard, leases.get(lease_name(self.first.name, shard))) for shard in range(self.count)]

    def _holder_of(self, shard: int, lease: Mapping[str, Any] | None) -> str:
        if (term := self.terms.get(shard)) is not None:
            return "" if term.leaving.is_set() else self.first.identity
        current, now = self.holders[shard], self.first.clock.monotonic()
        is_free = lease is None or current.may_be_replaced(lease, self.first.identity, now, self.first.durations.lease)
        return "" if is_free else current.holder.identity

    async def _hold(self, term: Term) -> None:
        """Acquire the shard, and do its work until it is lost or given back. If another replica is faster, it holds the shard."""
        shard, lease = term.shard, replace(shard_lease(self.first, term.shard), steps=term.steps)
        try:
            async with held(lease, patience=0.0, current=self.holders[shard.index]) as leadership:
                await require_layout(self.first, {shard.index: leadership}, self.count)
                self.log.info("leading", lease=lease, shard=shard.index, identity=lease.identity)
                self._note(lease, shard.index, holds=True)
                await self.work(term, lambda: leadership.may_write() and not term.leaving.is_set())
            self.log.info("gave back", lease=lease, shard=shard.index)
        except LeaseTaken:
            return
        except EngineError as error:
            self.log.warning("not leading", lease=lease, shard=shard.index, error=error)
        finally:
            self._note(lease, shard.index, holds=False)
            del self.terms[shard.index]

    def _note(self, lease: Lease, shard: int, *, holds: bool) -> None:
        """Note, and tell the observer, that we hold the shard now, or no longer."""
        if holds == (shard in self.leading):
            return
        led = bool(self.leading)
        (self.leading.add if holds else self.leading.discard)(shard)
        if led != bool(self.leading):
            self.observer.leading(bool(self.leading))
        if isinstance(self.observer, LeaseObserver):
            # An observer of a single lease takes `leading` for the first shard's.
            self.observer.holds(self.first.name, 0 in self.leading)
            self.observer.holds(lease.name, holds)

    def _log_division(self, division: Division) -> None:
        """Log which shards we hold and how many replicas there are, when that has changed."""
        division_now = (sorted(self.leading), len(division.replicas))
        if division_now != self.logged:
            self.logged = division_now
            self.log.info("shards", held=",".join(map(str, division_now[0])) or "none", of=self.count, replicas=division_now[1])


def presence_prefix(first: Lease) -> str:
    """How the names of the Leases of replicas begin. `first`: the lease of shard 0."""
    return f"{first.name}-replica-"


class Presence:
    """The Lease by which others know that this replica is alive."""

    def __init__(self, first: Lease) -> None:
        self._first = first
        self._name = f"{presence_prefix(first)}{sha256(first.identity.encode()).hexdigest()[:10]}"
        self._record: Mapping[str, Any] = {}
        """The Lease object as we wrote it last; empty if it may not exist."""
        self.first_uid = ""
        """The uid of the Lease of shard 0; empty while it is not known. It owns this one: all are deleted with it."""

    async def renew(self) -> None:
        """Create the Lease, or renew it. Raises the server's errors; the next attempt reads it first."""
        record, self._record = self._record, {}
        client, namespace = self._first.client, self._first.namespace
        if not record:
            try:
                self._record = await client.create(LEASE, namespace, self._body({}))
                return
            except AlreadyExists:
                record = await client.get(LEASE, namespace, self._name)
        try:
            self._record = await client.replace(LEASE, namespace, self._name, self._body(record))
        except (Conflict, NotFound):
            return  # It was deleted or labelled: the next attempt creates or reads it.

    def _body(self, record: Mapping[str, Any]) -> dict[str, Any]:
        first, now = self._first, micro_time(self._first.clock.now())
        before = record or {
            "apiVersion": LEASE.api_version,
            "kind": LEASE.name,
            "metadata": {"name": self._name, "namespace": first.namespace},
        }
        spec: dict[str, Any] = {"acquireTime": now, **(before.get("spec") or {})}
        spec |= {"holderIdentity": first.identity, "leaseDurationSeconds": max(1, round(first.durations.lease)), "renewTime": now}
        metadata = annotated(before, first.identity, first.purpose)
        if self.first_uid:
            owner = {"apiVersion": LEASE.api_version, "kind": LEASE.name, "name": first.name, "uid": self.first_uid}
            metadata = {**metadata, "ownerReferences": [owner]}
        return {**before, "spec": spec, "metadata": metadata}

    async def delete(self) -> None:
        """Delete the Lease, so that the others need not wait. Runs although we are cancelled; raises nothing that the server answers."""
        with anyio.move_on_after(RELEASE_TIMEOUT, shield=True):
            try:
                await self._first.client.delete(LEASE, self._first.namespace, self._name)
            except ClusterError:
                return  # It expires by itself.


class Replicas:
    """The replicas that are alive, by the Leases that they renew, each judged on our own clock."""

    def __init__(self, first: Lease) -> None:
        self._first = first
        self._known: dict[str, CurrentHolder] = {}
        """Name of a Lease -> what is known of the replica that renews it."""

    async def alive(self, leases: Mapping[str, Mapping[str, Any]]) -> frozenset[str]:
        """The identities of the replicas whose Leases (by name) have not expired, and ours. Leases that have are deleted."""
        prefix, first = presence_prefix(self._first), self._first
        present = {name: lease for name, lease in leases.items() if name.startswith(prefix)}
        self._known = {name: self._known.get(name) or CurrentHolder() for name in present}
        alive = {first.identity}
        for name, lease in present.items():
            holder = holder_of(lease).identity
            if holder == first.identity:
                continue
            if self._known[name].may_be_replaced(lease, "", first.clock.monotonic(), first.durations.lease):
                await self._delete(name, lease)
            else:
                alive.add(holder)
        return frozenset(alive)

    async def _delete(self, name: str, lease: Mapping[str, Any]) -> None:
        """Delete the Lease of a replica that is gone, unless it has just been renewed."""
        metadata = lease["metadata"]
        try:
            await self._first.client.delete(
                LEASE, self._first.namespace, name, uid=metadata.get("uid", ""), revision=metadata["resourceVersion"]
            )
        except ClusterError:
            return  # Another replica has deleted it, or it was renewed.
