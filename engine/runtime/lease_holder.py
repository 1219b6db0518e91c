"""LeaseHolder: who holds a lease, since when and for what, as its Lease object says; and what a candidate knows of the current one."""

import os
import re
import secrets
import socket
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

from msgspec import Struct

from engine.errors import ClusterError
from engine.report.printable import clipped
from engine.shards import MAX_SHARDS

OURS = re.compile(r"(?P<host>.+)_(?P<pid>\d+)_([0-9a-f]{12})?_[0-9a-f]{8}", re.DOTALL)
"""A name that `identify` makes."""

CLIENT_GO = re.compile(r"(?P<host>.+)_[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.DOTALL)
"""A name that controllers written in Go usually have: their host and a UUID."""
HELD_BY, HELD_FOR = "engine.grove.io/held-by", "engine.grove.io/held-for"
"""Annotations of a Lease: the identity of the holder that wrote them, and what it holds the lease for, for people.

The second counts only while the first names the holder: other programs that take the lease leave annotations as they are.
"""
SHARDS = "engine.grove.io/shards"
"""Annotation of the first shard's Lease: the number of shards that the namespaces are divided into; absent: 1."""
MAX_IDENTITY, MAX_PURPOSE = 160, 200
"""Characters that are shown of what is in a Lease: every account with the permission may have written it."""
MICRO_TIME = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(\.\d+)?(Z|\+00:00)")


def identify(pod: str = "") -> str:
    """A globally unique name of this process: `host_pid_machine_token`, where `machine` stands for this boot and pid namespace.

    `pod`: the `namespace/name` of the pod that it runs in, which takes the place of the host.
    """
    return "_".join((pod or socket.gethostname(), str(os.getpid()), _machine(), secrets.token_hex(4)))


def readable(identity: str) -> str:
    """Who has that name, for people: `pod namespace/name`, `process 41 on host1`, or the name itself if it says neither."""
    if ours := OURS.fullmatch(identity):
        host = ours["host"]
        # A slash cannot be part of a host name.
        return f"pod {host}" if "/" in host else f"process {ours['pid']} on {host}"
    other = CLIENT_GO.fullmatch(identity)
    return other["host"] if other else identity


def is_gone(identity: str) -> bool:
    """Whether the process with that name has certainly ended.

    This can be known only on the same machine, boot and pid namespace. A name from anywhere else, or one that `identify` did not make,
    counts as alive; so does a pid that another process uses now.
    """
    match identity.rsplit("_", 3):
        case [_, pid, machine, _] if machine and machine == _machine() and pid.isascii() and pid.isdecimal():
            return not _exists(int(pid))
    return False


def _machine() -> str:
    """A digest of this boot and pid namespace; empty where the system does not provide them."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text()
        namespace = os.readlink("/proc/self/ns/pid")
    except OSError:
        return ""
    return sha256(f"{boot} {namespace}".encode()).hexdigest()[:12]


def _exists(pid: int) -> bool:
    """Whether there is such a process. Signal 0 sends nothing, and works even where /proc hides other users' processes."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        return True
    return True


class LeaseHolder(Struct, frozen=True):
    """The holder that a Lease names. As text it is safe to print: `process 41 on host1, since 2026-01-01T00:00:00Z, for: run in …`."""

    identity: str
    acquired_at: str = ""
    """When it acquired the lease, to the second, by its own clock; empty if the Lease does not say it."""
    purpose: str = ""
    """The command that it holds the lease for, and in which namespaces; empty if it is not known."""

    def __str__(self) -> str:
        since = f", since {self.acquired_at}" if self.acquired_at else ""
        purpose = f", for: {clipped(self.purpose, MAX_PURPOSE)}" if self.purpose else ""
        return f"{clipped(readable(self.identity), MAX_IDENTITY)}{since}{purpose}"


def holder_of(lease: Mapping[str, Any]) -> LeaseHolder:
    """The holder in a Lease object; its identity is empty if the lease is free. Values of a wrong type count as absent."""
    spec, annotations = _mapping(lease.get("spec")), _mapping(_mapping(lease.get("metadata")).get("annotations"))
    identity, acquired = _text(spec.get("holderIdentity")), MICRO_TIME.fullmatch(_text(spec.get("acquireTime")))
    purpose = _text(annotations.get(HELD_FOR)) if annotations.get(HELD_BY) == identity else ""
    return LeaseHolder(identity, f"{acquired[1]}Z" if acquired else "", purpose)


def renewed_at(lease: Mapping[str, Any]) -> str:
    """When a Lease was renewed last, to the second, by its holder's clock; empty if it does not say it."""
    renewed = MICRO_TIME.fullmatch(_text(_mapping(lease.get("spec")).get("renewTime")))
    return f"{renewed[1]}Z" if renewed else ""


def annotated(lease: Mapping[str, Any], identity: str, purpose: str) -> dict[str, Any]:
    """The metadata of a Lease with our annotations for that holder; without them if there is no holder or no purpose."""
    metadata = _mapping(lease.get("metadata"))
    others = {key: value for key, value in _mapping(metadata.get("annotations")).items() if key not in (HELD_BY, HELD_FOR)}
    ours = {HELD_BY: identity, HELD_FOR: purpose} if identity and purpose else {}
    bare = {key: value for key, value in metadata.items() if key != "annotations"}
    return bare | ({"annotations": others | ours} if others or ours else {})


def layout_of(lease: Mapping[str, Any]) -> int:
    """The number of shards that the holder of the first shard's Lease knows of; that of the last holder if the Lease is free.

    1 if the Lease does not say it, and if another program has taken the Lease and left the annotations as they were: it knows of no shards.
    """
    holder = _text(_mapping(lease.get("spec")).get("holderIdentity"))
    annotations = _mapping(_mapping(lease.get("metadata")).get("annotations"))
    number = _text(annotations.get(SHARDS))
    is_known = number.isascii() and number.isdecimal() and len(number) <= len(str(MAX_SHARDS)) and 1 <= int(number) <= MAX_SHARDS
    return int(number) if is_known and (not holder or annotations.get(HELD_BY) == holder) else 1


def with_layout(metadata: Mapping[str, Any], count: int) -> dict[str, Any]:
    """The metadata of the first shard's Lease with that number of shards; without the annotation for a single one."""
    annotations = {key: value for key, value in _mapping(metadata.get("annotations")).items() if key != SHARDS}
    annotations |= {SHARDS: str(count)} if count > 1 else {}
    return {**metadata, "annotations": annotations}


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


class CurrentHolder:
    """What a candidate knows of the current holder of a lease. Kept between attempts, it also learns that a holder has died."""

    def __init__(self) -> None:
        self.was_read = False
        """Whether the Lease has been read at least once."""
        self.holder = LeaseHolder("")
        self.expires_at = 0.0
        """When the lease expires if it is not renewed, on our monotonic clock."""
        self.error: ClusterError | None = None
        """Why the last attempt failed."""
        self._record: tuple[object, ...] = ()
        """Holder, renew time and transitions as last read; a change of any means that the holder is alive."""
        self._reported = ""
        """The holder that the last call of `is_new` reported."""

    @property
    def description(self) -> str:
        """The end of the sentence "the lease … is"."""
        return f"held by {self.holder}" if self.holder.identity else "contested"

    def is_new(self) -> bool:
        """Whether the holder is another than at the last call. A lease without a holder is contested: the next reading shows who won."""
        before, self._reported = self._reported, self.holder.identity or self._reported
        return before != self._reported

    def may_be_replaced(self, existing: Mapping[str, Any], identity: str, now: float, duration: float) -> bool:
        """Whether we may write the Lease that was just read: it is free, has expired, or its holder has ended or is this process.

        `identity` is ours, `now` a time of our monotonic clock, `duration` that of a Lease which does not name one.
        """
        spec = _mapping(existing.get("spec"))
        self.holder = holder_of(existing)
        name = self.holder.identity
        record = (name, spec.get("renewTime"), spec.get("leaseTransitions"))
        if record != self._record:
            self._record, self.expires_at = record, now + (spec.get("leaseDurationSeconds") or duration)
        # It names this process if the answer to our write was lost.
        return name in ("", identity) or now >= self.expires_at or is_gone(name)
