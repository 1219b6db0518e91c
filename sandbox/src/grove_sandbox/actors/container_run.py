"""ContainerRun: the state of one container of a pod, read from its status and written back to it."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from grove_sandbox.actors.body import LONG_AGO, parse_time, timestamp

NEW, RUNNING, TERMINATED, BACKOFF = "new", "running", "terminated", "backoff"
REASONS = "Completed", "Error"
"""Why a run ended: with exit code 0, or with another."""


class ContainerRun(Struct, frozen=True):
    """One run of a container, or the wait for the next one."""

    state: str = NEW
    started: datetime = LONG_AGO
    ended: datetime | None = None
    code: int = 0
    restarts: int = 0
    last: "ContainerRun | None" = None
    """The run before."""
    waiting: tuple[str, str] = ("ContainerCreating", "")
    """Reason and message of a run that has not started."""
    reason: str = ""
    """Why the run ended, if that does not follow from the exit code."""

    def but(self, **changes: Any) -> "ContainerRun":
        """The same with some fields changed."""
        return replace(self, **changes)


def run_of(status: Mapping[str, Any] | None) -> ContainerRun:
    """The run that a container status describes."""
    if status is None:
        return ContainerRun()
    state, restarts = status.get("state") or {}, status.get("restartCount", 0)
    terminated = (status.get("lastState") or {}).get("terminated")
    last = _ended_run(terminated) if terminated else None
    if "running" in state:
        started = parse_time(state["running"].get("startedAt")) or LONG_AGO
        return ContainerRun(RUNNING, started=started, restarts=restarts, last=last)
    if "terminated" in state:
        return _ended_run(state["terminated"]).but(restarts=restarts, last=last)
    return ContainerRun(BACKOFF, restarts=restarts, last=last) if last else ContainerRun()


def _ended_run(terminated: Mapping[str, Any]) -> ContainerRun:
    started, ended = (parse_time(terminated.get(field)) or LONG_AGO for field in ("startedAt", "finishedAt"))
    reason = terminated.get("reason") or ""
    code = terminated.get("exitCode", 0)
    return ContainerRun(TERMINATED, started=started, ended=ended, code=code, reason="" if reason in REASONS else reason)


def container_status(container: Mapping[str, Any], run: ContainerRun, ready: bool) -> dict[str, Any]:
    """The container status that describes the run."""
    return {
        "name": container["name"],
        "image": container.get("image", ""),
        "imageID": "",
        "ready": ready,
        "started": run.state == RUNNING,
        "restartCount": run.restarts,
        "state": _state(container["name"], run),
        "lastState": {"terminated": _terminated(run.last)} if run.last else {},
    }


def _state(name: str, run: ContainerRun) -> dict[str, Any]:
    if run.state == RUNNING:
        return {"running": {"startedAt": timestamp(run.started)}}
    if run.state == TERMINATED:
        return {"terminated": _terminated(run)}
    if run.state == BACKOFF:
        return {"waiting": {"reason": "CrashLoopBackOff", "message": f"back-off restarting failed container {name}"}}
    reason, message = run.waiting
    return {"waiting": {"reason": reason} | ({"message": message} if message else {})}


def _terminated(run: ContainerRun) -> dict[str, Any]:
    return {
        "exitCode": run.code,
        "reason": run.reason or REASONS[run.code != 0],
        "startedAt": timestamp(run.started),
        "finishedAt": timestamp(run.ended or run.started),
    }
