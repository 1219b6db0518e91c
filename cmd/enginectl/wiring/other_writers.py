"""Other writers: Grove's own operator, which is known by the Lease that it holds.

Beside it nothing may be written under another Lease. Under the same one the rules of that Lease are enough: its holder writes.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Final

from msgspec import Struct

from engine.errors import Forbidden, NotFound
from engine.report.printable import clipped
from engine.runtime.clock import Clock
from engine.runtime.lease import LEASE
from engine.runtime.lease_holder import HELD_BY, LeaseHolder, holder_of, is_gone, renewed_at
from engine.runtime.provider import Client
from enginectl.base.exit_codes import MissingRequirement
from resources.base.fields import annotations_of, mapping
from resources.install.publication import GROVE_OPERATOR, LeasePlace

LEASE_SECONDS: Final = 15
"""How long a Lease lasts that does not say it, and how long one is watched that has expired by our clock."""
MAX_ERROR: Final = 400
"""Characters of why it is not known: the remedy is at the end."""
MAX_LEASE_SECONDS: Final = 24 * 3600
"""The longest time for which a Lease is believed to last without renewal."""
LOOK_SECONDS: Final = 1.0
"""Seconds between two looks at a Lease that is watched."""
LONG_AGO: Final = timedelta(hours=1)
"""A Lease that was renewed before this has expired, whatever the clocks of two machines differ by."""


class OtherWriter(Struct, frozen=True):
    """What is known of a writer under Grove's own Lease."""

    holder: LeaseHolder | None = None
    """Who holds the Lease; None: it has no holder, or has expired."""
    is_engine: bool = False
    """Whether it is a process of this engine."""
    unknown: str = ""
    """Why it is not known."""

    @property
    def fault(self) -> str:
        """Why nothing may be written beside it; empty if there is none."""
        if self.holder is None:
            return ""
        what = "another installation of the engine writes" if self.is_engine else "Grove's operator runs"
        way_out = "use its configuration with --config FILE, or remove it" if self.is_engine else "stop it first (docs/migrating.md)"
        return f"{what} in this cluster: the Lease {GROVE_OPERATOR} is held by {self.holder}; {way_out}"

    @property
    def note(self) -> str:
        """What is said if it is not known; empty if it is."""
        return f"whether Grove's operator runs is not known: {self.unknown}" if self.unknown else ""


NO_WRITER: Final = OtherWriter()


async def refuse_beside_others(client: Client, clock: Clock, ours: LeasePlace | None) -> tuple[str, ...]:
    """Notes about what could not be checked. Raises `MissingRequirement` if there is another writer under Grove's own Lease."""
    other = await other_writer(client, clock, ours)
    if other.fault:
        raise MissingRequirement(other.fault)
    return (other.note,) if other.note else ()


async def other_writer(client: Client, clock: Clock, ours: LeasePlace | None) -> OtherWriter:
    """Who writes under Grove's own Lease, unless that is ours.

    A Lease that has not expired by our clock counts as held. One that has may be renewed by a machine whose clock is behind ours: it is
    watched for as long as a Lease usually lasts, unless it was renewed long ago.

    Raises the server's errors, except that the Lease may not be read.
    """
    if str(ours) == str(GROVE_OPERATOR):
        return NO_WRITER
    until, first = clock.monotonic() + LEASE_SECONDS, ""
    while True:
        try:
            lease = await client.get(LEASE, GROVE_OPERATOR.namespace, GROVE_OPERATOR.name)
        except NotFound:
            return NO_WRITER
        except Forbidden as error:
            return OtherWriter(unknown=clipped(str(error), MAX_ERROR))
        holder, spec, left = holder_of(lease), str(lease.get("spec")), _time_left(lease, clock)
        if not holder.identity or is_gone(holder.identity):
            return NO_WRITER
        if left > timedelta(0) or first not in ("", spec):
            return OtherWriter(holder, annotations_of(lease).get(HELD_BY) == holder.identity)
        if left < -LONG_AGO or clock.monotonic() >= until:
            return NO_WRITER
        first = spec
        await clock.sleep(LOOK_SECONDS)


async def operator_has_started(client: Client, clock: Clock, ours: LeasePlace | None) -> str:
    """Why a process that writes must end: Grove's operator holds its own Lease now, unless that is ours. Empty if it does not.

    One read: a process that was started beside an expired Lease has watched it. Raises the server's errors.
    """
    if str(ours) == str(GROVE_OPERATOR):
        return ""
    try:
        lease = await client.get(LEASE, GROVE_OPERATOR.namespace, GROVE_OPERATOR.name)
    except NotFound:
        return ""
    holder = holder_of(lease)
    is_held = bool(holder.identity) and not is_gone(holder.identity) and _time_left(lease, clock) > timedelta(0)
    is_engine = annotations_of(lease).get(HELD_BY) == holder.identity
    return OtherWriter(holder).fault if is_held and not is_engine else ""


def _time_left(lease: Mapping[str, Any], clock: Clock) -> timedelta:
    """How long the Lease is still valid by our clock; negative if it has expired, zero if that is not known."""
    text, seconds = renewed_at(lease), mapping(lease.get("spec")).get("leaseDurationSeconds")
    if not text:
        return timedelta(0)
    lasts = min(seconds, MAX_LEASE_SECONDS) if isinstance(seconds, int) and seconds > 0 else LEASE_SECONDS
    return datetime.fromisoformat(text) + timedelta(seconds=lasts) - clock.now()
