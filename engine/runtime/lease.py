"""Lease: leader election with a Lease object, so that at most one process writes at a time.

The leader renews the Lease while its work makes progress (`Steps`), in a place that the work does not delay (`Renewal`). A candidate takes
it over when it has not changed for its duration, measured on the candidate's own clock: the clocks of two machines are never compared. A
leader that cannot renew stops at its renew deadline, before a candidate may take over. After a crash the others wait for the rest of the
duration, unless the leader ran on the candidate's machine and its process has ended (`identity`).
"""

import random
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from datetime import datetime
from typing import Any

import anyio
from msgspec import Struct

from engine.errors import (
    AlreadyExists,
    ClusterError,
    Conflict,
    Forbidden,
    InputError,
    LeaseLost,
    LeaseTaken,
    NotFound,
    ServerFault,
    Unauthorized,
    Unreachable,
)
from engine.ids import Kind
from engine.memo import Steps
from engine.runtime.clock import Clock
from engine.runtime.lease_holder import CurrentHolder, LeaseHolder, annotated, holder_of, with_layout
from engine.runtime.provider import Body, Client
from engine.runtime.renewal import IN_THE_SAME_LOOP, Renewal, RenewalPlace

LEASE = Kind("coordination.k8s.io", "v1", "Lease", "leases")

RELEASE_TIMEOUT = 2.0
"""Seconds that giving the Lease back may take; after that it expires by itself."""

FINAL = (Unauthorized, Forbidden, NotFound)
"""Errors of acquiring that are raised at once, because waiting does not help: no permission for the Lease, or no such namespace."""

STALLED_AFTER = 8
"""Lease durations without any progress of the work after which the Lease is released: a leader that hangs must not lead."""

DISABLED = "leader election is disabled: nothing prevents a second writer"
"""The warning of a process that writes without a lease."""


class Durations(Struct, frozen=True):
    """Seconds: how long the Lease lasts without renewal, when a leader that cannot renew stops, and how often it renews."""

    lease: float = 15.0
    renew: float = 10.0
    retry: float = 2.0

    def __post_init__(self) -> None:
        if not self.lease > self.renew > self.retry > 0:
            raise InputError(
                f"leader election: the lease duration ({self.lease:g}s) must be greater than the renew deadline ({self.renew:g}s), "
                f"and that greater than the retry period ({self.retry:g}s)"
            )


class Lease(Struct, frozen=True):
    """Which Lease object, the identity of the process that competes for it, and how that renews it."""

    client: Client
    clock: Clock
    namespace: str
    name: str
    identity: str
    durations: Durations = Durations()
    purpose: str = ""
    """What the process holds it for: its command and the namespaces; kept in the Lease for the processes that wait for it."""
    steps: Steps | None = None
    """What the work done under the lease counts; None: it is not judged whether that makes progress."""
    renewal: Renewal = IN_THE_SAME_LOOP
    """Where the Lease is renewed."""

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


def ignore_holder(holder: LeaseHolder) -> None:
    """The default for `on_wait`."""


@asynccontextmanager
async def held(
    lease: Lease,
    *,
    patience: float | None = None,
    on_wait: Callable[[LeaseHolder], None] = ignore_holder,
    current: CurrentHolder | None = None,
) -> AsyncIterator["Leadership"]:
    """Wait until the lease is ours, renew it while the block runs, then give it back.

    `patience`: how many seconds to wait for another holder (default: for ever; 0: one attempt); `on_wait` is called with each holder that
    we wait for; `current` keeps what is known of the holder from call to call, so that many short ones recognise a dead holder.
    The block is cancelled when the lease is lost. Raises `LeaseTaken` when patience ends, `LeaseLost` after the block was cancelled, and
    the server's error when we have no permission, have not once been able to read the lease, or could not when patience ended.
    """
    leadership = Leadership(lease)
    failure: Exception | None = None
    try:
        await leadership.acquire(patience, on_wait, current or CurrentHolder())
        async with lease.renewal.renewing(leadership):
            try:
                with leadership.scope:
                    yield leadership
            except Exception as error:
                failure = error  # Raised outside the renewal, which may be a task group and would wrap it.
    finally:
        await leadership.release()
    if leadership.scope.cancelled_caught:
        raise LeaseLost(f"the lease {lease} is no longer ours: {leadership.lost_because}") from failure
    if failure:
        raise failure


class Leadership:
    """The state of a process that has acquired, or tries to acquire, a lease. While it is renewed in a thread, only that writes the Lease;
    `may_write` and `record` may be read in any thread.
    """

    def __init__(self, lease: Lease) -> None:
        self.lease = lease
        self.client = lease.client
        """What the Lease is read and written with: in another thread with its own connection."""
        self.scope = anyio.CancelScope()
        """Cancelled when the lease is lost."""
        self._place: RenewalPlace | None = None
        """The thread in which the Lease is renewed; None: in the event loop of the work."""
        self._progress: object = None
        """What the work had done when that was last asked."""
        self._progress_asked_at = lease.clock.monotonic()
        """When that was, on our monotonic clock."""
        self._stalled_for = 0.0
        """Seconds for which it has not changed; of those in which the whole process was suspended only a few."""
        self._attempt = anyio.CancelScope()
        """The renewal in progress."""
        self.lost_because = ""
        """Why the lease was lost."""
        self._renewal_error: Exception | None = None
        """Why the last renewal failed."""
        self._record: dict[str, Any] = {}
        """The Lease object as we wrote it last; empty while it is not ours."""
        self._unanswered = False
        """Whether the last write had no answer: the lease may be ours although we do not know it."""
        self._layout: int | None = None
        """The number of shards to write into the Lease; None: leave it as it is."""
        self._writing = anyio.Lock()
        """Held while the Lease is renewed: two writes at once would conflict."""
        self._renewed_at = 0.0
        """When the last successful write was sent, on our monotonic clock: the lease lasts from then on."""

    def may_write(self) -> bool:
        """Whether the renew deadline has not passed. Asked before each write, for a process may have been suspended without noticing."""
        return bool(self._record) and self.lease.clock.monotonic() < self._renewed_at + self.lease.durations.renew

    def renew_from(self, place: RenewalPlace | None) -> None:
        """Read and write the Lease from there from now on; None: in the event loop of the work, with its client."""
        self._place, self.client = place, place.client if place is not None else self.lease.client

    def cancel_work(self) -> None:
        """Cancel the block of `held`."""
        self.scope.cancel()

    @property
    def record(self) -> Mapping[str, Any]:
        """The Lease object as we wrote it last; empty while it is not ours."""
        return self._record

    async def set_layout(self, count: int) -> None:
        """Write into the Lease how many shards there are. Raises the server's error if that fails, also if the lease is no longer ours."""
        self._layout = count
        await self.lease.renewal.call(self._renew_alone)

    async def _renew_alone(self) -> None:
        async with self._writing:
            await self._renew()

    async def acquire(self, patience: float | None, on_wait: Callable[[LeaseHolder], None], current: CurrentHolder) -> None:
        """Wait until the lease is ours. Raises `LeaseTaken` when another process holds it for longer than `patience` seconds."""
        clock, durations = self.lease.clock, self.lease.durations
        give_up_at = clock.monotonic() + patience if patience is not None else float("inf")
        while not await self._try_to_acquire(current):
            now = clock.monotonic()
            if now >= give_up_at:
                raise current.error or LeaseTaken(f"the lease {self.lease} is {current.description}")
            if current.is_new():
                on_wait(current.holder)
            pauses = (durations.retry * random.uniform(1.0, 1.2), give_up_at - now, current.expires_at - now)
            await clock.sleep(min(pause for pause in pauses if pause > 0))

    async def _try_to_acquire(self, current: CurrentHolder) -> bool:
        """Read the Lease; create it if there is none, take it over if it is free or has expired. Returns whether it is ours now."""
        with anyio.move_on_after(self.lease.durations.renew / 2, shield=True):
            try:
                existing = await self._get()
                current.was_read, current.error = True, None
                if existing is None:
                    await self._create()
                elif current.may_be_replaced(existing, self.lease.identity, self.lease.clock.monotonic(), self.lease.durations.lease):
                    await self._write(existing, taking_over=current.holder.identity != self.lease.identity)
                return bool(self._record)
            except Conflict:
                return False  # Another candidate was faster.
            except ClusterError as error:
                if isinstance(error, FINAL) or not current.was_read:
                    raise
                current.error = error
                return False
        current.error = Unreachable("the server did not answer in time")
        return False

    async def keep_renewing(self) -> None:
        """Renew once per retry period, with one request that is bound to the revision we wrote last."""
        durations = self.lease.durations
        while True:
            await self.lease.clock.sleep(durations.retry * random.uniform(0.9, 1.1))
            if not self._record:
                return  # The lease was lost, and the block has not ended yet.
            self._ask_for_progress()
            if self._stalled_for > durations.lease * STALLED_AFTER:
                return await self._give_up(f"the work has made no progress for {self._stalled_for:.0f} s")
            with anyio.move_on_after(durations.renew / 2, shield=True) as self._attempt:
                try:
                    await self._renew_alone()
                except ClusterError as error:
                    self._renewal_error = error

    def _ask_for_progress(self) -> None:
        """Add up the seconds in which the work has counted no step, or, while it only waits, its event loop has made no turn.

        This is asked in every retry period. If more time passes than a Lease lasts, not the work hung, but the whole process was suspended,
        and of that time no more counts: whether it still leads, the Lease decides.
        """
        now, steps = self.lease.clock.monotonic(), self.lease.steps
        if steps is not None and not steps.is_waiting:
            progress: object = steps.count
        else:
            progress = self._place.turns() if self._place is not None else now
        passed, self._progress_asked_at = now - self._progress_asked_at, now
        if progress != self._progress:
            self._progress, self._stalled_for = progress, 0.0
        else:
            self._stalled_for += min(passed, self.lease.durations.lease)

    async def _give_up(self, because: str) -> None:
        """Release the Lease of work that hangs: first nothing is written any more, then another process may take over."""
        record = self._record
        self._lose(because)
        with anyio.move_on_after(RELEASE_TIMEOUT, shield=True), suppress(ClusterError):
            await self._write_free(record)
        if self._place is not None:
            self._place.stalled(f"the lease {self.lease} is released: {because}")

    async def _renew(self) -> None:
        try:
            await self._write(self._record)
        except (Conflict, NotFound):
            existing = await self._get()
            holder = holder_of(existing or {})
            if existing is not None and holder.identity == self.lease.identity:
                await self._write(existing)  # The answer to our last write was lost, or a label was added.
            else:
                self._lose(f"it is held by {holder}" if holder.identity else "it was released or deleted")

    async def enforce_deadline(self) -> None:
        """Give the lease up at the renew deadline, even while a renewal is in progress.

        A process that was slow or suspended, and has had no error, may renew it late: until it has, nothing is written.
        """
        clock, durations = self.lease.clock, self.lease.durations
        while True:
            while (left := self._renewed_at + durations.renew - clock.monotonic()) > 0:
                await clock.sleep(left)
            if self._renewal_error is not None or not await self._renewed_late():
                break
        if self._record:
            self._lose(f"it could not be renewed: {self._renewal_error or 'the server did not answer in time'}")

    async def _renewed_late(self) -> bool:
        """Whether a renewal succeeds after the deadline. It cannot if another process has the lease: it is bound to our revision.

        What is left until a candidate may take over is for the calls that are in progress.
        """
        durations = self.lease.durations
        with anyio.move_on_after((durations.lease - durations.renew) / 4, shield=True):
            try:
                async with self._writing:
                    if self._record and not self.may_write():
                        await self._renew()
            except ClusterError as error:
                self._renewal_error = error
        return self.may_write()

    def _lose(self, because: str) -> None:
        """Stop at once: nothing is written any more, and the block is cancelled."""
        self.lost_because = because
        self._record, self._unanswered = {}, False  # It expires by itself: a last write of ours may still be on its way.
        self._attempt.cancel()
        (self._place or self).cancel_work()

    async def release(self) -> None:
        """Give the lease back if it is ours, so that the next process need not wait. Runs although we are cancelled; raises nothing."""
        if not self._record and not self._unanswered:
            return
        with anyio.move_on_after(RELEASE_TIMEOUT, shield=True), suppress(ClusterError):
            await self._give_back()
        self._record = {}

    async def _give_back(self) -> None:
        """Write that the lease has no holder. If that fails, or if we do not know whether it is ours, read it first."""
        if self._record:
            with suppress(ClusterError):
                return await self._write_free(self._record)
        existing = await self._get()
        if existing is not None and holder_of(existing).identity == self.lease.identity:
            await self._write_free(existing)

    async def _write_free(self, existing: dict[str, Any]) -> None:
        spec = existing["spec"] | {"holderIdentity": "", "leaseDurationSeconds": 1, "renewTime": micro_time(self.lease.clock.now())}
        body = existing | {"spec": spec, "metadata": annotated(existing, "", "")}
        await self.client.replace(LEASE, self.lease.namespace, self.lease.name, body)

    async def _get(self) -> dict[str, Any] | None:
        """The Lease object, or None. A get, not a list: a role can allow it for this one name."""
        try:
            return await self.client.get(LEASE, self.lease.namespace, self.lease.name)
        except NotFound:
            return None

    async def _create(self) -> None:
        """Create the Lease; if another process was faster, it keeps it."""
        metadata = {"name": self.lease.name, "namespace": self.lease.namespace}
        body = {"apiVersion": LEASE.api_version, "kind": LEASE.name, "metadata": metadata}
        spec = self._spec({}, taking_over=True) | {"leaseTransitions": 0}
        with suppress(AlreadyExists):
            await self._send(body, spec, lambda held: self.client.create(LEASE, self.lease.namespace, held))

    async def _write(self, existing: dict[str, Any], *, taking_over: bool = False) -> None:
        """Replace the Lease that was read or written last by one that we hold. Raises `Conflict` if it has changed since."""
        spec = self._spec(existing.get("spec") or {}, taking_over=taking_over)
        await self._send(existing, spec, lambda held: self.client.replace(LEASE, self.lease.namespace, self.lease.name, held))

    async def _send(self, existing: dict[str, Any], spec: dict[str, Any], call: Callable[[Body], Awaitable[dict[str, Any]]]) -> None:
        """Send the Lease with that spec and our annotations by `call`, and note that it is ours from the time of sending on."""
        sent_at, self._unanswered = self.lease.clock.monotonic(), True
        metadata = annotated(existing, self.lease.identity, self.lease.purpose)
        if self._layout is not None:
            metadata = with_layout(metadata, self._layout)
        try:
            self._record = await call(existing | {"spec": spec, "metadata": metadata})
        except ClusterError as error:
            self._unanswered = isinstance(error, Unreachable | ServerFault)
            raise
        self._renewed_at, self._unanswered, self._renewal_error = sent_at, False, None

    def _spec(self, before: dict[str, Any], *, taking_over: bool) -> dict[str, Any]:
        """The spec `before`, renewed by us now; with `taking_over` as a new term of leadership."""
        now = micro_time(self.lease.clock.now())
        spec = before | {
            "holderIdentity": self.lease.identity,
            "leaseDurationSeconds": max(1, round(self.lease.durations.lease)),
            "renewTime": now,
        }
        return spec | {"acquireTime": now, "leaseTransitions": (before.get("leaseTransitions") or 0) + 1} if taking_over else spec


def micro_time(moment: datetime) -> str:
    """The time in the format of Kubernetes' MicroTime."""
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
