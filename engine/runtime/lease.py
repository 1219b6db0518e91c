"""Lease: at most one of us writes at a time.

Whoever holds the Lease object renews it; whoever wants it takes it over once the record has not changed for as long as it says. That time
is measured on the candidate's own clock, so clocks of different machines are never compared. A holder that cannot renew gives up at its
renew deadline, which ends before anybody may take over. A holder that was killed keeps the others waiting for the rest of its lease,
unless it ran on the candidate's own machine and its process is gone (see `identity`): nobody is left then who could write.
"""

import random
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import anyio

from engine.errors import AlreadyExists, ClusterError, Conflict, Forbidden, InputError, LeaseLost, LeaseTaken, NotFound, Unauthorized
from engine.ids import Kind
from engine.report.printable import printable
from engine.runtime.client import Client
from engine.runtime.clock import Clock
from engine.runtime.identity import is_gone

LEASE = Kind("coordination.k8s.io", "v1", "Lease", "leases")

RELEASE = 2.0
"""Seconds that giving the lease back may take; then it runs out by itself."""

FINAL = (Unauthorized, Forbidden, NotFound)
"""QueryResults that waiting does not change: no right to the Lease, or no such namespace."""


@dataclass(frozen=True, slots=True)
class Durations:
    """In seconds: how long a lease lasts unrenewed, when a holder that cannot renew gives up, and how often it renews."""

    lease: float = 15.0
    renew: float = 10.0
    retry: float = 2.0

    def __post_init__(self) -> None:
        if not self.lease > self.renew > self.retry > 0:
            raise InputError(
                f"leader election: the lease duration ({self.lease:g}s) must be greater than the renew deadline ({self.renew:g}s), "
                f"and that greater than the retry period ({self.retry:g}s)"
            )


@dataclass(frozen=True, slots=True)
class Lease:
    """Which Lease object, and who wants it."""

    client: Client
    clock: Clock
    namespace: str
    name: str
    identity: str
    durations: Durations = Durations()


def unnoticed(holder: str) -> None:
    """For when nobody cares whom we wait for."""


@asynccontextmanager
async def held(lease: Lease, *, patience: float | None = None, on_wait: Callable[[str], None] = unnoticed) -> AsyncIterator["Leadership"]:
    """Wait until the lease is ours, keep it for as long as the block runs, then give it back.

    `patience` is how many seconds to wait for another holder (default: for ever); `on_wait` hears of each holder that we wait for.
    If the lease is lost, the block is cancelled. Raises `LeaseTaken` when patience ends, `LeaseLost` after the block has been
    cancelled, and what the server raises when we can never have the lease, or have not once been able to look at it.
    """
    leadership = Leadership(lease)
    failure: Exception | None = None
    try:
        await leadership.win(patience, on_wait)
        async with anyio.create_task_group() as group:
            group.start_soon(leadership.keep)
            group.start_soon(leadership.watch)
            try:
                with leadership.scope:
                    yield leadership
            except Exception as error:
                failure = error  # Taken past the task group, which would wrap it.
            group.cancel_scope.cancel()
    finally:
        await leadership.release()
    if leadership.scope.cancelled_caught:
        raise LeaseLost(f"the lease {lease.namespace}/{lease.name} is no longer ours") from failure
    if failure:
        raise failure


class Leadership:
    """Our hold on a lease."""

    def __init__(self, lease: Lease) -> None:
        self.lease = lease
        self.scope = anyio.CancelScope()
        """The block that runs as long as we lead."""
        self._attempt = anyio.CancelScope()
        self._record: dict[str, Any] = {}
        """The Lease as we wrote it last; empty when it is not ours."""
        self._renewed = 0.0

    def sure(self) -> bool:
        """Whether nobody else can have taken over yet: intended before each write, for a process may have slept without knowing it."""
        return bool(self._record) and self.lease.clock.monotonic() < self._renewed + self.lease.durations.renew

    async def win(self, patience: float | None, on_wait: Callable[[str], None]) -> None:
        """Wait until the lease is ours. Raises `LeaseTaken` when it is another's for longer than `patience`."""
        clock, durations = self.lease.clock, self.lease.durations
        # One retry beyond: the life of a dead holder's record is counted from our first look at it, a moment after we came.
        give_up_at = clock.monotonic() + patience + durations.retry if patience is not None else float("inf")
        rival = _Rival()
        while not await self._try_to_win(rival):
            now = clock.monotonic()
            if now >= give_up_at:
                raise rival.failed_call or LeaseTaken(f"the lease {self.lease.namespace}/{self.lease.name} is {rival.spoken}")
            if rival.is_news():
                on_wait(rival.holder)
            pauses = (durations.retry * random.uniform(1.0, 1.2), give_up_at - now, rival.expires - now)
            await clock.sleep(min(pause for pause in pauses if pause > 0))

    async def _try_to_win(self, rival: "_Rival") -> bool:
        """Pass at the lease, and take it if it is nobody's. A look is a list: a get of what is not there yet would be refused."""
        with anyio.move_on_after(self.lease.durations.renew / 2, shield=True):
            try:
                found = await self._look()
                rival.was_seen, rival.failed_call = True, None
                if found is None:
                    await self._create()
                elif rival.is_over(found, self.lease):
                    await self._write(found, taking_over=True)
                return bool(self._record)
            except ClusterError as error:
                if isinstance(error, FINAL) or not rival.was_seen:
                    raise
                rival.failed_call = error
        return False

    async def keep(self) -> None:
        """Renew for as long as we are let: one request each time, bound to the revision that we wrote last."""
        durations = self.lease.durations
        while True:
            await self.lease.clock.sleep(durations.retry * random.uniform(0.9, 1.1))
            with anyio.move_on_after(durations.renew / 2, shield=True) as self._attempt, suppress(ClusterError):
                await self._renew()

    async def _renew(self) -> None:
        try:
            await self._write(self._record)
        except (Conflict, NotFound):
            found = await self._look()
            if found is not None and found["spec"].get("holderIdentity") == self.lease.identity:
                await self._write(found)  # An answer to us was lost, or somebody has put a label on it.
            else:
                self._lose()

    async def watch(self) -> None:
        """Give up in time: when the last renewal is too long ago, whatever the renewing is busy with."""
        clock, durations = self.lease.clock, self.lease.durations
        while (left := self._renewed + durations.renew - clock.monotonic()) > 0:
            await clock.sleep(left)
        self._lose()

    def _lose(self) -> None:
        self._record = {}
        self._attempt.cancel()
        self.scope.cancel()

    async def release(self) -> None:
        """Give the lease back, so that the next one need not wait; briefly, and whatever becomes of us."""
        if not self._record:
            return
        spec = self._record["spec"] | {"holderIdentity": "", "leaseDurationSeconds": 1, "renewTime": _micro_time(self.lease.clock.now())}
        with anyio.move_on_after(RELEASE, shield=True), suppress(ClusterError):
            await self.lease.client.replace(LEASE, self.lease.namespace, self.lease.name, self._record | {"spec": spec})
        self._record = {}

    async def _look(self) -> dict[str, Any] | None:
        listing = await self.lease.client.list(LEASE, self.lease.namespace, fields=f"metadata.name={self.lease.name}")
        return listing.items[0] if listing.items else None

    async def _create(self) -> None:
        intended = self.lease.clock.monotonic()
        body = {
            "apiVersion": LEASE.api_version,
            "kind": LEASE.name,
            "metadata": {"name": self.lease.name, "namespace": self.lease.namespace},
            "spec": self._spec({}, taking_over=True) | {"leaseTransitions": 0},
        }
        with suppress(AlreadyExists):
            self._record = await self.lease.client.create(LEASE, self.lease.namespace, body)
            self._renewed = intended

    async def _write(self, found: dict[str, Any], *, taking_over: bool = False) -> None:
        intended = self.lease.clock.monotonic()
        body = found | {"spec": self._spec(found.get("spec") or {}, taking_over=taking_over)}
        self._record = await self.lease.client.replace(LEASE, self.lease.namespace, self.lease.name, body)
        self._renewed = intended

    def _spec(self, before: dict[str, Any], *, taking_over: bool) -> dict[str, Any]:
        now = _micro_time(self.lease.clock.now())
        spec = before | {
            "holderIdentity": self.lease.identity,
            "leaseDurationSeconds": max(1, round(self.lease.durations.lease)),
            "renewTime": now,
        }
        return spec | {"acquireTime": now, "leaseTransitions": (before.get("leaseTransitions") or 0) + 1} if taking_over else spec


class _Rival:
    """What a candidate knows of the present holder: who it is, and since when it has not stirred."""

    def __init__(self) -> None:
        self.was_seen = False
        self.holder = ""
        self.expires = 0.0
        """When the record runs out if nobody renews it, on our clock."""
        self.failed_call: ClusterError | None = None
        """Why the last look brought nothing."""
        self._record: tuple[object, ...] = ()
        self._told = ""

    @property
    def spoken(self) -> str:
        """How things stand, for people: the end of "the lease is"."""
        return f"held by {printable(self.holder)}" if self.holder else "contested"

    def is_news(self) -> bool:
        """Whether it is another holder than when this was intended last. None at all: several came at once; the next look tells who won."""
        told, self._told = self._told, self.holder or self._told
        return told != self._told

    def is_over(self, found: dict[str, Any], lease: Lease) -> bool:
        """Whether the lease that we have just seen may be taken."""
        spec = found.get("spec") or {}
        self.holder, now = spec.get("holderIdentity") or "", lease.clock.monotonic()
        record = (self.holder, spec.get("renewTime"), spec.get("leaseTransitions"))
        if record != self._record:
            self._record, self.expires = record, now + (spec.get("leaseDurationSeconds") or lease.durations.lease)
        return not self.holder or now >= self.expires or is_gone(self.holder)


def _micro_time(moment: datetime) -> str:
    """Kubernetes' MicroTime."""
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
