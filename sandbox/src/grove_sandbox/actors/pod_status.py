"""Pod status: the status that a bound pod should have now, as a function of the pod, its script and the time.

Everything that has happened to a pod is in its status, so a kubelet can be restarted at any time.
"""

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any, Final

from msgspec import Struct

from grove_sandbox.actors.body import Body, condition, conditions_of, is_finished, parse_time, status_of, timestamp
from grove_sandbox.actors.container_run import BACKOFF, NEW, RUNNING, TERMINATED, ContainerRun, container_status, run_of
from grove_sandbox.actors.script import EVICT, EXIT, IMAGE_PULL, UNREADY, Script
from grove_sandbox.product import Verdict, conditions, earliest

Status = dict[str, Any]

IMEX_LOST: Final = "IMEXLost"
"""Why a container ended whose domain is gone. A real one fails with a CUDA error when it accesses the memory of its peers."""
FIRST_BACKOFF, LAST_BACKOFF = timedelta(seconds=10), timedelta(minutes=5)


class NodeState(Struct, frozen=True):
    """What a pod's status depends on besides the pod: the time, its addresses, and what its node has done for it."""

    now: datetime
    """In whole seconds, as all times in statuses."""
    address: str
    host: str
    may_end: Callable[[Body], bool]
    """Whether the condition is met that an init container waits for."""
    is_prepared: bool = True
    """Whether the devices of the pod are prepared; before that no container starts."""
    is_fabric_lost: bool = False
    """Whether the domain through which the containers communicate is gone."""


def desired_status(pod: Body, script: Script, node: NodeState) -> Verdict[Body]:
    """The whole status that a kubelet writes, and until when it holds. A field of None is to be removed."""
    status = status_of(pod)
    if is_finished(pod):
        return Verdict(status)
    start_time = parse_time(status.get("startTime")) or node.now
    evicted_at = start_time + script.after if script.failure == EVICT else None
    if evicted_at and evicted_at <= node.now:
        return Verdict(_evicted(pod, start_time, node))
    containers = pod["spec"]["containers"]
    inits, initialised_at, inits_until = _init_statuses(pod, script, node, start_time)
    runs, until = _runs(pod, script, node, initialised_at + script.start_after if initialised_at else None)
    ready = {name: _is_ready(run, script, node.now) for name, run in runs.items()}
    phase = _phase(runs)
    desired: Status = {
        "phase": phase,
        "startTime": timestamp(start_time),
        "hostIP": node.host or None,
        "podIP": status.get("podIP") or node.address,
        "podIPs": status.get("podIPs") or [{"ip": node.address}],
        "conditions": _conditions(pod, node.now, phase, [name for name, init in inits.items() if not init["ready"]], ready),
        "containerStatuses": [container_status(container, runs[container["name"]], ready[container["name"]]) for container in containers],
    }
    if inits:
        desired["initContainerStatuses"] = list(inits.values())
    return Verdict(desired, until=earliest([evicted_at, inits_until, until]))


def stopped_status(pod: Body, now: datetime) -> Status:
    """The last status of a pod that was deleted and whose containers have been stopped."""
    return _stopped(pod, now, {"phase": "Succeeded"}, code=0)


def differs(desired: Body, live: Body) -> bool:
    """Whether the live status lacks anything of the desired one."""
    return any(not _agrees(name, value, live.get(name)) for name, value in desired.items())


def _agrees(name: str, desired: Any, live: Any) -> bool:
    if name != "conditions":
        return bool(desired == live)
    by_type = {entry["type"]: entry for entry in live or ()}
    return all(by_type.get(entry["type"], {}).get(key) == value for entry in desired for key, value in entry.items())


def _init_statuses(
    pod: Body, script: Script, node: NodeState, start_time: datetime
) -> tuple[dict[str, Status], datetime | None, datetime | None]:
    """The init containers' statuses, when the last of them was done (None: not yet), and until when this holds."""
    live = {status["name"]: status for status in status_of(pod).get("initContainerStatuses") or ()}
    statuses: dict[str, Status] = {}
    done_at: datetime | None = start_time if node.is_prepared else None
    until: datetime | None = None
    for container in pod["spec"].get("initContainers") or ():
        name, is_sidecar = container["name"], container.get("restartPolicy") == "Always"
        before = run_of(live.get(name))
        if done_at is None:
            run = ContainerRun()
        elif is_sidecar:
            run = before if before.state == RUNNING else ContainerRun(RUNNING, started=node.now)
        else:
            run, until = _init_run(container, before, script, node)
            done_at = max(done_at, run.ended) if run.ended else None
        # An init container is ready when the next one may start: it has completed, or it is a sidecar that runs.
        ready = run.state == TERMINATED or (run.state == RUNNING and is_sidecar)
        statuses[name] = container_status(container, run if run.state != NEW else run.but(waiting=("PodInitializing", "")), ready)
    return statuses, done_at, until


def _init_run(container: Body, run: ContainerRun, script: Script, node: NodeState) -> tuple[ContainerRun, datetime | None]:
    """The run of an init container that may run now, and when it ends by itself."""
    if run.state == TERMINATED:
        return run, None
    if run.state != RUNNING:
        run = ContainerRun(RUNNING, started=node.now)
    ends_at = run.started + script.init_after
    if ends_at > node.now:
        return run, ends_at
    return (ContainerRun(TERMINATED, started=run.started, ended=node.now), None) if node.may_end(container) else (run, None)


def _runs(pod: Body, script: Script, node: NodeState, start_at: datetime | None) -> tuple[dict[str, ContainerRun], datetime | None]:
    """The containers' runs as of now, and until when this holds. They start at `start_at`; None: not yet."""
    live = {status["name"]: status for status in status_of(pod).get("containerStatuses") or ()}
    policy = pod["spec"].get("restartPolicy", "Always")
    runs: dict[str, ContainerRun] = {}
    changes: list[datetime | None] = []
    for container in pod["spec"]["containers"]:
        run = _advance(run_of(live.get(container["name"])), script, policy, node, start_at)
        if run.state == NEW:
            is_initialising = start_at is None and bool(pod["spec"].get("initContainers"))
            run = run.but(waiting=_waiting_reason(container, script, is_initialising=is_initialising))
        runs[container["name"]] = run
        changes += _next_changes(run, script, start_at)
    return runs, earliest(change for change in changes if change and change > node.now)


def _advance(run: ContainerRun, script: Script, policy: str, node: NodeState, start_at: datetime | None) -> ContainerRun:
    """The run after everything that is due by now. This ends because each restart is later than the one before."""
    now = node.now
    while True:
        if run.state == NEW and start_at is not None and start_at <= now and not script.error and script.failure != IMAGE_PULL:
            run = ContainerRun(RUNNING, started=now)
        elif run.state == RUNNING and script.failure == EXIT and run.started + script.after <= now:
            run = run.but(state=TERMINATED, ended=now, code=script.exit_code)
        elif run.state == RUNNING and node.is_fabric_lost:
            run = run.but(state=TERMINATED, ended=now, code=1, reason=IMEX_LOST)
        elif run.state == TERMINATED and (policy == "Always" or (policy == "OnFailure" and run.code != 0)):
            run = ContainerRun(BACKOFF, restarts=run.restarts, last=run)
        elif run.state == BACKOFF and _restart_at(run) <= now:
            run = ContainerRun(RUNNING, started=now, restarts=run.restarts + 1, last=run.last)
        else:
            return run


def _restart_at(run: ContainerRun) -> datetime:
    """The first restart is immediate, the next ones back off exponentially."""
    if run.last is None or run.last.ended is None or run.restarts == 0:
        return run.started
    return run.last.ended + min(FIRST_BACKOFF * (1 << min(run.restarts - 1, 8)), LAST_BACKOFF)


def _next_changes(run: ContainerRun, script: Script, start_at: datetime | None) -> Iterable[datetime | None]:
    """The times at which this run, or its readiness, changes by itself; some may be past."""
    if run.state == NEW:
        return (start_at,)
    if run.state == BACKOFF:
        return (_restart_at(run),)
    if run.state == RUNNING:
        return (run.started + script.ready_after, run.started + script.after if script.failure in (EXIT, UNREADY) else None)
    return ()


def _waiting_reason(container: Body, script: Script, *, is_initialising: bool) -> tuple[str, str]:
    if is_initialising:
        return "PodInitializing", ""
    if script.error:
        return "CreateContainerConfigError", script.error
    if script.failure == IMAGE_PULL:
        return "ImagePullBackOff", f'Back-off pulling image "{container.get("image", "")}"'
    return "ContainerCreating", ""


def _is_ready(run: ContainerRun, script: Script, now: datetime) -> bool:
    if run.state != RUNNING or run.started + script.ready_after > now:
        return False
    return script.failure != UNREADY or run.started + script.after > now


def _phase(runs: Mapping[str, ContainerRun]) -> str:
    states = {run.state for run in runs.values()}
    if states <= {NEW}:
        return "Pending"
    if states == {TERMINATED}:
        return "Succeeded" if all(run.code == 0 for run in runs.values()) else "Failed"
    return "Running"


def _conditions(pod: Body, now: datetime, phase: str, incomplete_inits: list[str], ready: Mapping[str, bool]) -> list[Status]:
    if phase in ("Succeeded", "Failed"):
        return _final_conditions(pod, now, "PodCompleted" if phase == "Succeeded" else "PodFailed")
    incomplete, unready = " ".join(incomplete_inits), " ".join(name for name, is_ready in ready.items() if not is_ready)
    gates = [gate["conditionType"] for gate in pod["spec"].get("readinessGates") or ()]
    gate = next((gate for gate in gates if not conditions.is_true(conditions_of(pod), gate)), "")
    not_initialised = ("ContainersNotInitialized", f"containers with incomplete status: [{incomplete}]") if incomplete else None
    not_ready = ("ContainersNotReady", f"containers with unready status: [{unready}]") if unready else None
    gate_closed = ("ReadinessGatesNotReady", f'the status of pod readiness gate "{gate}" is not "True", but False') if gate else None
    return [
        _condition(pod, now, "PodScheduled", None),
        _condition(pod, now, "Initialized", not_initialised),
        _condition(pod, now, "ContainersReady", not_ready),
        _condition(pod, now, "Ready", not_ready or gate_closed),
    ]


def _final_conditions(pod: Body, now: datetime, reason: str) -> list[Status]:
    return [
        _condition(pod, now, "PodScheduled", None),
        {**_condition(pod, now, "Initialized", None), "reason": "PodCompleted" if reason == "PodCompleted" else None},
        _condition(pod, now, "ContainersReady", (reason, "")),
        _condition(pod, now, "Ready", (reason, "")),
    ]


def _condition(pod: Body, now: datetime, type: str, failure: tuple[str, str] | None) -> Status:
    """True unless there is a failure (reason and message). An empty reason or message is removed."""
    reason, message = failure or ("", "")
    return condition(pod, type, failure is None, reason, message, now) | {"reason": reason or None, "message": message or None}


def _evicted(pod: Body, start_time: datetime, node: NodeState) -> Status:
    message = "The node was low on resource: memory."
    fields = {"phase": "Failed", "reason": "Evicted", "message": message, "startTime": timestamp(start_time)}
    status = _stopped(pod, node.now, fields, code=137)
    target = _condition(pod, node.now, "DisruptionTarget", None)
    return status | {"conditions": [*status["conditions"], {**target, "reason": "TerminationByKubelet", "message": message}]}


def _stopped(pod: Body, now: datetime, fields: Status, *, code: int) -> Status:
    """The status of a pod all of whose containers are stopped now; those that did not run keep their state."""
    live = {status["name"]: status for status in status_of(pod).get("containerStatuses") or ()}
    statuses = []
    for container in pod["spec"]["containers"]:
        run = run_of(live.get(container["name"]))
        run = run.but(state=TERMINATED, ended=now, code=code) if run.state == RUNNING else run
        statuses.append(container_status(container, run, False))
    reason = "PodCompleted" if fields["phase"] == "Succeeded" else "PodFailed"
    return fields | {"conditions": _final_conditions(pod, now, reason), "containerStatuses": statuses}
