"""Pod columns: the one word that sums up a pod, and what stands beside it."""

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from providers.sandbox.tables import ages
from providers.sandbox.tables.columns import AGE, NAME, Body, Column

_TERMINAL = ("Succeeded", "Failed")


@dataclass(frozen=True, slots=True)
class _Summary:
    ready: int
    total: int
    status: str
    restarts: int
    restarted_at: datetime.datetime | None


def _summary(pod: Body) -> _Summary:
    spec, status = pod.get("spec") or {}, pod.get("status") or {}
    inits = spec.get("initContainers") or ()
    sidecars = {each["name"] for each in inits if each.get("restartPolicy") == "Always"}
    stopped_at, init_seen, sidecars_ready = _initialization(inits, status.get("initContainerStatuses") or (), sidecars)
    word, ready = _phase(status), sidecars_ready
    counted = init_seen
    if stopped_at and not _holds(status, "Initialized"):
        word = stopped_at
    else:
        containers = status.get("containerStatuses") or ()
        word, running = _containers_word(word, containers)
        if word == "Completed" and running:
            word = "Running" if _holds(status, "Ready") else "NotReady"
        ready += running
        counted = [*(each for each in init_seen if each["name"] in sidecars), *containers]
    return _Summary(
        ready=ready,
        total=len(spec.get("containers") or ()) + len(sidecars),
        status=_leaving(pod, word),
        restarts=sum(each.get("restartCount", 0) for each in counted),
        restarted_at=max(filter(None, map(_last_end, counted)), default=None),
    )


def _phase(status: Mapping[str, Any]) -> str:
    for condition in status.get("conditions") or ():
        if condition.get("type") == "PodScheduled" and condition.get("reason") == "SchedulingGated":
            return "SchedulingGated"
    return str(status.get("reason") or status.get("phase") or "")


def _initialization(
    inits: Sequence[Mapping[str, Any]], statuses: Sequence[Mapping[str, Any]], sidecars: set[str]
) -> tuple[str, list[Mapping[str, Any]], int]:
    """The word for where initialization stands (empty: through), the statuses looked at, and how many sidecars are ready."""
    seen: list[Mapping[str, Any]] = []
    ready = 0
    for index, each in enumerate(statuses):
        seen.append(each)
        state = each.get("state") or {}
        ended, waiting = state.get("terminated"), state.get("waiting") or {}
        if ended and not ended.get("exitCode"):
            continue
        if each.get("name") in sidecars and each.get("started"):
            ready += bool(each.get("ready"))
            continue
        if ended:
            return f"Init:{_ending(ended)}", seen, ready
        if waiting.get("reason") not in (None, "", "PodInitializing"):
            return f"Init:{waiting['reason']}", seen, ready
        return f"Init:{index}/{len(inits)}", seen, ready
    return "", seen, ready


def _containers_word(word: str, statuses: Sequence[Mapping[str, Any]]) -> tuple[str, int]:
    running = 0
    for each in reversed(statuses):
        state = each.get("state") or {}
        ended, waiting = state.get("terminated"), state.get("waiting") or {}
        if waiting.get("reason"):
            word = waiting["reason"]
        elif ended:
            word = _ending(ended)
        elif each.get("ready") and "running" in state:
            running += 1
    return word, running


def _ending(ended: Mapping[str, Any]) -> str:
    if ended.get("reason"):
        return str(ended["reason"])
    return f"Signal:{ended['signal']}" if ended.get("signal") else f"ExitCode:{ended.get('exitCode', 0)}"


def _leaving(pod: Body, word: str) -> str:
    if not pod["metadata"].get("deletionTimestamp"):
        return word
    if (pod.get("status") or {}).get("reason") == "NodeLost":
        return "Unknown"
    return word if (pod.get("status") or {}).get("phase") in _TERMINAL else "Terminating"


def _holds(status: Mapping[str, Any], condition: str) -> bool:
    return any(each.get("type") == condition and each.get("status") == "True" for each in status.get("conditions") or ())


def _last_end(container: Mapping[str, Any]) -> datetime.datetime | None:
    return ages.moment(((container.get("lastState") or {}).get("terminated") or {}).get("finishedAt"))


def _ready(pod: Body, now: datetime.datetime) -> str:
    summary = _summary(pod)
    return f"{summary.ready}/{summary.total}"


def _status(pod: Body, now: datetime.datetime) -> str:
    return _summary(pod).status


def _restarts(pod: Body, now: datetime.datetime) -> str:
    summary = _summary(pod)
    if summary.restarts and summary.restarted_at:
        return f"{summary.restarts} ({ages.human((now - summary.restarted_at).total_seconds())} ago)"
    return str(summary.restarts)


def _ip(pod: Body, now: datetime.datetime) -> str:
    status = pod.get("status") or {}
    return str(next((each["ip"] for each in status.get("podIPs") or () if each.get("ip")), status.get("podIP")) or "<none>")


def _gates(pod: Body, now: datetime.datetime) -> str:
    gates = (pod.get("spec") or {}).get("readinessGates") or ()
    met = sum(_holds(pod.get("status") or {}, gate["conditionType"]) for gate in gates)
    return f"{met}/{len(gates)}" if gates else "<none>"


POD = (
    NAME,
    Column("Ready", _ready, description="The aggregate readiness state of this pod for accepting traffic."),
    Column("Status", _status, description="The aggregate status of the containers in this pod."),
    Column(
        "Restarts", _restarts, description="The number of times the containers in this pod have been restarted and when the last one was."
    ),
    AGE,
    Column("IP", _ip, priority=1),
    Column("Node", lambda pod, now: (pod.get("spec") or {}).get("nodeName") or "<none>", priority=1),
    Column("Nominated Node", lambda pod, now: (pod.get("status") or {}).get("nominatedNodeName") or "<none>", priority=1),
    Column("Readiness Gates", _gates, priority=1),
)
