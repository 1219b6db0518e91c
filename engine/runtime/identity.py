"""Identity: the name under which a process holds a lease, and whether the process of such a name can still be alive."""

import os
import secrets
import socket
from hashlib import sha256
from pathlib import Path


def identify() -> str:
    """A name that no other process has or will have: `host_pid_machine_token`, where `machine` stands for this boot and pid namespace."""
    return "_".join((socket.gethostname(), str(os.getpid()), _machine(), secrets.token_hex(4)))


def is_gone(identity: str) -> bool:
    """Whether the process of that name is certainly no more.

    That can be told only where its pid means something to us: on the same boot of the same machine, in the same pid namespace. A name
    from anywhere else, or not made by `identify`, counts as alive; so does a pid that lives on in another process.
    """
    match identity.rsplit("_", 3):
        case [_, pid, machine, _] if machine and machine == _machine() and pid.isascii() and pid.isdecimal():
            return not _exists(int(pid))
    return False


def _machine() -> str:
    """This boot and pid namespace, as a digest; empty where the system does not tell."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text()
        namespace = os.readlink("/proc/self/ns/pid")
    except OSError:
        return ""
    return sha256(f"{boot} {namespace}".encode()).hexdigest()[:12]


def _exists(pid: int) -> bool:
    """Whether there is such a process. Signal 0 is only a question; it is answered even where /proc hides the processes of others."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        return True
    return True
