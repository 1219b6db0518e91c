"""Run: what one container of a pod is at, read from its status and written back to it."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from providers.sandbox.actors.moments import LONG_AGO, read, written

NEW, RUNNING, TERMINATED, BACKOFF = "new", "running", "terminated", "backoff"
PLAIN_CAUSES = "Completed", "Error"
"""Why a run ended, by whether its exit code is another than 0."""


@dataclass(frozen=True, slots=True)
class Run:
    """One run of a container, or the wait for the next one."""

    state: str = NEW
    began: datetime = LONG_AGO
    ended: datetime | None = None
    code: int = 0
    restarts: int = 0
    last: "Run | None" = None
    """The run before, which ended."""
    why: tuple[str, str] = ("ContainerCreating", "")
    """Reason and message of a run that has not begun."""
    cause: str = ""
    """Why it ended, where its exit code does not say it."""

    def but(self, **changes: Any) -> "Run":
        """The same with some fields changed."""
        return replace(self, **changes)


def run_of(status: Mapping[str, Any] | None) -> Run:
    """What a container status says."""
    if status is None:
        return Run()
    state, restarts = status.get("state") or {}, status.get("restartCount", 0)
    ended = (status.get("lastState") or {}).get("terminated")
    last = _ended(ended) if ended else None
    if "running" in state:
        return Run(RUNNING, began=read(state["running"].get("startedAt")) or LONG_AGO, restarts=restarts, last=last)
    if "terminated" in state:
        return _ended(state["terminated"]).but(restarts=restarts, last=last)
    return Run(BACKOFF, restarts=restarts, last=last) if last else Run()


def _ended(terminated: Mapping[str, Any]) -> Run:
    began, ended = read(terminated.get("startedAt")), read(terminated.get("finishedAt"))
    reason = terminated.get("reason") or ""
    cause = "" if reason in PLAIN_CAUSES else reason
    return Run(TERMINATED, began=began or LONG_AGO, ended=ended or LONG_AGO, code=terminated.get("exitCode", 0), cause=cause)


def told(container: Mapping[str, Any], run: Run, ready: bool) -> dict[str, Any]:
    """The container status that says so."""
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


def _state(name: str, run: Run) -> dict[str, Any]:
    if run.state == RUNNING:
        return {"running": {"startedAt": written(run.began)}}
    if run.state == TERMINATED:
        return {"terminated": _terminated(run)}
    if run.state == BACKOFF:
        return {"waiting": {"reason": "CrashLoopBackOff", "message": f"back-off restarting failed container {name}"}}
    reason, message = run.why
    return {"waiting": {"reason": reason} | ({"message": message} if message else {})}


def _terminated(run: Run) -> dict[str, Any]:
    return {
        "exitCode": run.code,
        "reason": run.cause or PLAIN_CAUSES[run.code != 0],
        "startedAt": written(run.began),
        "finishedAt": written(run.ended or run.began),
    }
