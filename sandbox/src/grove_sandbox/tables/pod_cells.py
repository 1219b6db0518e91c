"""Pod cells: the readiness, the status word and the restarts of a pod, as kubectl prints them."""

import datetime
from collections.abc import Sequence

from msgspec import Struct

from grove_sandbox.product import Body, conditions
from grove_sandbox.tables import ages


def ready(pod: Body) -> str:
    """`1/2`: the containers that are ready, of all that keep running."""
    summary = _summary(pod)
    return f"{summary.ready}/{summary.total}"


def status(pod: Body) -> str:
    """The one word that sums up a pod: its phase, or why it is not running."""
    return _summary(pod).status


def restarts(pod: Body, now: datetime.datetime) -> str:
    """`3 (5m ago)`: how often containers have been restarted, and how long ago the last one was."""
    summary = _summary(pod)
    if summary.restarts and summary.restarted_at:
        return f"{summary.restarts} ({ages.human((now - summary.restarted_at).total_seconds())} ago)"
    return str(summary.restarts)


class _Summary(Struct, frozen=True):
    ready: int
    total: int
    status: str
    restarts: int
    restarted_at: datetime.datetime | None


def _summary(pod: Body) -> _Summary:
    spec, status = pod.get("spec") or {}, pod.get("status") or {}
    inits = spec.get("initContainers") or ()
    sidecars = {container["name"] for container in inits if container.get("restartPolicy") == "Always"}
    stopped_at, init_statuses, ready_count = _initialization(inits, status.get("initContainerStatuses") or (), sidecars)
    word, counted = _phase(status), init_statuses
    if stopped_at and not conditions.is_true(status.get("conditions") or (), "Initialized"):
        word = stopped_at
    else:
        containers = status.get("containerStatuses") or ()
        word, running = _containers_word(word, containers)
        if word == "Completed" and running:
            word = "Running" if conditions.is_true(status.get("conditions") or (), "Ready") else "NotReady"
        ready_count += running
        counted = [*(each for each in init_statuses if each["name"] in sidecars), *containers]
    return _Summary(
        ready=ready_count,
        total=len(spec.get("containers") or ()) + len(sidecars),
        status=_terminating_word(pod, word),
        restarts=sum(each.get("restartCount", 0) for each in counted),
        restarted_at=max(filter(None, map(_last_end, counted)), default=None),
    )


def _phase(status: Body) -> str:
    for condition in status.get("conditions") or ():
        if condition.get("type") == "PodScheduled" and condition.get("reason") == "SchedulingGated":
            return "SchedulingGated"
    return str(status.get("reason") or status.get("phase") or "")


def _initialization(inits: Sequence[Body], statuses: Sequence[Body], sidecars: set[str]) -> tuple[str, list[Body], int]:
    """The word for the init container that is not done (empty: all are), the statuses up to it, and how many sidecars are ready."""
    passed: list[Body] = []
    ready_sidecars = 0
    for index, container in enumerate(statuses):
        passed.append(container)
        state = container.get("state") or {}
        ended, reason = state.get("terminated"), (state.get("waiting") or {}).get("reason")
        if ended and not ended.get("exitCode"):
            continue
        if container.get("name") in sidecars and container.get("started"):
            ready_sidecars += bool(container.get("ready"))
            continue
        if ended:
            return f"Init:{_ending(ended)}", passed, ready_sidecars
        if reason not in (None, "", "PodInitializing"):
            return f"Init:{reason}", passed, ready_sidecars
        return f"Init:{index}/{len(inits)}", passed, ready_sidecars
    return "", passed, ready_sidecars


def _containers_word(word: str, statuses: Sequence[Body]) -> tuple[str, int]:
    """The word of the first container that has one, and how many are running and ready."""
    running = 0
    for container in reversed(statuses):
        state = container.get("state") or {}
        ended, waiting = state.get("terminated"), state.get("waiting") or {}
        if waiting.get("reason"):
            word = waiting["reason"]
        elif ended:
            word = _ending(ended)
        elif container.get("ready") and "running" in state:
            running += 1
    return word, running


def _ending(ended: Body) -> str:
    if ended.get("reason"):
        return str(ended["reason"])
    return f"Signal:{ended['signal']}" if ended.get("signal") else f"ExitCode:{ended.get('exitCode', 0)}"


def _terminating_word(pod: Body, word: str) -> str:
    status = pod.get("status") or {}
    if not pod["metadata"].get("deletionTimestamp"):
        return word
    if status.get("reason") == "NodeLost":
        return "Unknown"
    return word if status.get("phase") in ("Succeeded", "Failed") else "Terminating"


def _last_end(container: Body) -> datetime.datetime | None:
    return ages.moment(((container.get("lastState") or {}).get("terminated") or {}).get("finishedAt"))
