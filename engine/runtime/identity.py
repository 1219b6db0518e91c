"""Identity: the name under which a process holds a lease, how people read it, and whether the process with such a name has ended."""

import os
import re
import secrets
import socket
from hashlib import sha256
from pathlib import Path

OURS = re.compile(r"(?P<host>.+)_(?P<pid>\d+)_([0-9a-f]{12})?_[0-9a-f]{8}", re.DOTALL)
"""A name that `identify` makes."""

CLIENT_GO = re.compile(r"(?P<host>.+)_[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.DOTALL)
"""A name that controllers written in Go usually have: their host and a UUID."""


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
