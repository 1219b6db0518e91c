"""Usage: CPU seconds and memory of a process and of those that it has started, from /proc."""

import os
import time
from dataclasses import dataclass
from pathlib import Path

PROC = Path("/proc")
TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Usage:
    """What processes have used so far."""

    cpu: float
    """CPU seconds of all of them."""
    peak_mib: float
    """The most memory that was resident at a time, of the largest one."""


def usage(pid: int) -> Usage:
    """What that process and its descendants have used since they were started. Raises `OSError` if it has ended."""
    used = [_used(each) for each in _with_descendants(pid)]
    return Usage(round(sum(each.cpu for each in used), 2), max(each.peak_mib for each in used))


def until_idle(pid: int, limit: float, *, share: float = 0.06, seconds: float = 2.0) -> float:
    """Wait until the processes have used less than that share of a core for so many seconds, at most `limit` seconds.

    Returns the seconds until they became idle.
    """
    began = since = time.monotonic()
    before = usage(pid).cpu
    while time.monotonic() - since < seconds and time.monotonic() - began < limit:
        time.sleep(0.5)
        now = usage(pid).cpu
        if now - before >= share * 0.5:
            since = time.monotonic()
        before = now
    return round(since - began, 1)


def _with_descendants(pid: int) -> list[int]:
    found, pending = list[int](), [pid]
    while pending:
        found.append(pending.pop())
        for children in PROC.glob(f"{found[-1]}/task/*/children"):
            pending += map(int, children.read_text().split())
    return found


def _used(pid: int) -> Usage:
    fields = (PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
    status = dict(line.split(":", 1) for line in (PROC / str(pid) / "status").read_text().splitlines())
    return Usage((int(fields[11]) + int(fields[12])) / TICKS, int(status["VmHWM"].split()[0]) / 1024)
