"""Life: the status that a bound pod should have now, as a function of the pod, its script and the time.

Everything that has happened to a pod stands in its status; so a kubelet may be stopped and started anywhere and the story goes on.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from engine import conditions
from engine.verdict import Verdict, earliest
from providers.sandbox.actors.body import Body, conditions_of, is_finished, status_of
from providers.sandbox.actors.moments import read, written
from providers.sandbox.actors.run import BACKOFF, NEW, RUNNING, TERMINATED, Run, run_of, told
from providers.sandbox.actors.script import EVICT, EXIT, IMAGE_PULL, UNREADY, Script

Status = dict[str, Any]

IMEX_LOST: Final = "IMEXLost"
"""Why a container ended that had no domain any more: the stand-in for the CUDA error that a real one meets when it touches its peers."""
FIRST_BACKOFF, LAST_BACKOFF = timedelta(seconds=10), timedelta(minutes=5)


@dataclass(frozen=True, slots=True)
class Scene:
    """What a pod's life depends on besides the pod."""

    now: datetime
    """In whole seconds, as everything that is written down."""
    address: str
    host: str
    may_end: Callable[[Body], bool]
    """Whether what an init container waits for has come true."""
    may_begin: bool = True
    """Whether the devices are prepared that the pod's first container waits for."""
    is_lost: bool = False
    """Whether the domain that the containers talk through has gone from under them."""


def life(pod: Body, script: Script, scene: Scene) -> Verdict[Body]:
    """The whole status as far as a kubelet writes it, and until when it holds. None stands for a field that has to go."""
    status = status_of(pod)
    if is_finished(pod):
        return Verdict(status)
    born = read(status.get("startTime")) or scene.now
    evicted_at = born + script.after if script.act == EVICT else None
    if evicted_at and evicted_at <= scene.now:
        return Verdict(_evicted(pod, born, scene))
    containers = pod["spec"]["containers"]
    inits, since, init_until = _initialised(pod, script, scene, born)
    runs, until = _played(pod, script, scene, since + script.start_after if since else None)
    ready = {name: _is_ready(run, script, scene.now) for name, run in runs.items()}
    phase = _phase(runs)
    wanted: Status = {
        "phase": phase,
        "startTime": written(born),
        "hostIP": scene.host or None,
        "podIP": status.get("podIP") or scene.address,
        "podIPs": status.get("podIPs") or [{"ip": scene.address}],
        "conditions": _conditions(pod, scene.now, phase, [name for name, state in inits.items() if not state["ready"]], ready),
        "containerStatuses": [told(one, runs[one["name"]], ready[one["name"]]) for one in containers],
    }
    if inits:
        wanted["initContainerStatuses"] = list(inits.values())
    return Verdict(wanted, until=earliest([evicted_at, init_until, until]))


def departed(pod: Body, now: datetime) -> Status:
    """The last status of a pod that was deleted and whose processes have obeyed."""
    return _over(pod, now, {"phase": "Succeeded"}, code=0)


def differs(wanted: Body, live: Body) -> bool:
    """Whether a status lacks something of what is wanted of it."""
    return any(not _agrees(name, value, live.get(name)) for name, value in wanted.items())


def _agrees(name: str, wanted: Any, live: Any) -> bool:
    if name != "conditions":
        return bool(wanted == live)
    seen = {one["type"]: one for one in live or ()}
    return all(one["type"] in seen and all(seen[one["type"]].get(key) == value for key, value in one.items()) for one in wanted)


def _initialised(pod: Body, script: Script, scene: Scene, born: datetime) -> tuple[dict[str, Status], datetime | None, datetime | None]:
    """The init containers' statuses, since when the last of them is done with (None: not yet), and until when this holds."""
    old = {one["name"]: one for one in status_of(pod).get("initContainerStatuses") or ()}
    statuses: dict[str, Status] = {}
    since: datetime | None = born if scene.may_begin else None
    until: datetime | None = None
    for container in pod["spec"].get("initContainers") or ():
        name = container["name"]
        before = run_of(old.get(name))
        if since is None:
            run = Run()
        elif container.get("restartPolicy") == "Always":
            run = before if before.state == RUNNING else Run(RUNNING, began=scene.now)
        else:
            run, until = _initialising(container, before, script, scene)
            since = max(since, run.ended) if run.ended else None
        # Ready, of an init container, means that the next one may begin: it has completed, or runs on beside the others.
        done = run.state == TERMINATED or (run.state == RUNNING and container.get("restartPolicy") == "Always")
        statuses[name] = told(container, run if run.state != NEW else run.but(why=("PodInitializing", "")), done)
    return statuses, since, until


def _initialising(container: Body, run: Run, script: Script, scene: Scene) -> tuple[Run, datetime | None]:
    """One init container that may run now, and when it is over by itself."""
    if run.state == TERMINATED:
        return run, None
    if run.state != RUNNING:
        run = Run(RUNNING, began=scene.now)
    over = run.began + script.init_after
    if over > scene.now:
        return run, over
    return (Run(TERMINATED, began=run.began, ended=scene.now), None) if scene.may_end(container) else (run, None)


def _played(pod: Body, script: Script, scene: Scene, since: datetime | None) -> tuple[dict[str, Run], datetime | None]:
    """The containers' runs as of now, and until when this holds. They may begin at `since`, if they may at all."""
    old = {one["name"]: one for one in status_of(pod).get("containerStatuses") or ()}
    policy = pod["spec"].get("restartPolicy", "Always")
    runs: dict[str, Run] = {}
    moments: list[datetime | None] = []
    for container in pod["spec"]["containers"]:
        run = _caught_up(run_of(old.get(container["name"])), script, policy, scene, since)
        if run.state == NEW:
            held = since is None and bool(pod["spec"].get("initContainers"))
            run = run.but(why=_why_not_begun(container, script, is_initialising=held))
        runs[container["name"]] = run
        moments += _next_moments(run, script, since)
    return runs, earliest(moment for moment in moments if moment and moment > scene.now)


def _caught_up(run: Run, script: Script, policy: str, scene: Scene, since: datetime | None) -> Run:
    """The run after everything that is due by now. It ends because each restart waits longer than the one before."""
    now = scene.now
    while True:
        if run.state == NEW and since is not None and since <= now and not script.mistake and script.act != IMAGE_PULL:
            run = Run(RUNNING, began=now)
        elif run.state == RUNNING and script.act == EXIT and run.began + script.after <= now:
            run = run.but(state=TERMINATED, ended=now, code=script.exit_code)
        elif run.state == RUNNING and scene.is_lost:
            run = run.but(state=TERMINATED, ended=now, code=1, cause=IMEX_LOST)
        elif run.state == TERMINATED and _restarts(run, policy):
            run = Run(BACKOFF, restarts=run.restarts, last=run)
        elif run.state == BACKOFF and _restart_at(run) <= now:
            run = Run(RUNNING, began=now, restarts=run.restarts + 1, last=run.last)
        else:
            return run


def _restarts(run: Run, policy: str) -> bool:
    return policy == "Always" or (policy == "OnFailure" and run.code != 0)


def _restart_at(run: Run) -> datetime:
    """The first restart is immediate, then they come ever more slowly."""
    if run.last is None or run.last.ended is None or run.restarts == 0:
        return run.began
    pause = min(FIRST_BACKOFF * (1 << min(run.restarts - 1, 8)), LAST_BACKOFF)
    return run.last.ended + pause


def _next_moments(run: Run, script: Script, since: datetime | None) -> Iterable[datetime | None]:
    """When this run changes by itself, or its readiness does; moments that are past do no harm."""
    if run.state == NEW:
        return (since,)
    if run.state == BACKOFF:
        return (_restart_at(run),)
    if run.state == RUNNING:
        return (run.began + script.ready_after, run.began + script.after if script.act in (EXIT, UNREADY) else None)
    return ()


def _why_not_begun(container: Body, script: Script, *, is_initialising: bool) -> tuple[str, str]:
    if is_initialising:
        return "PodInitializing", ""
    if script.mistake:
        return "CreateContainerConfigError", script.mistake
    if script.act == IMAGE_PULL:
        return "ImagePullBackOff", f'Back-off pulling image "{container.get("image", "")}"'
    return "ContainerCreating", ""


def _is_ready(run: Run, script: Script, now: datetime) -> bool:
    if run.state != RUNNING or run.began + script.ready_after > now:
        return False
    return script.act != UNREADY or run.began + script.after > now


def _phase(runs: Mapping[str, Run]) -> str:
    states = {run.state for run in runs.values()}
    if states <= {NEW}:
        return "Pending"
    if states == {TERMINATED}:
        return "Succeeded" if all(run.code == 0 for run in runs.values()) else "Failed"
    return "Running"


def _conditions(pod: Body, now: datetime, phase: str, uninitialised: list[str], ready: Mapping[str, bool]) -> list[Status]:
    live = conditions_of(pod)
    if phase in ("Succeeded", "Failed"):
        return _final_conditions(pod, now, "PodCompleted" if phase == "Succeeded" else "PodFailed")
    waiting, unready = " ".join(uninitialised), " ".join(name for name, is_ready in ready.items() if not is_ready)
    gates = [gate["conditionType"] for gate in pod["spec"].get("readinessGates") or ()]
    closed = next((gate for gate in gates if not conditions.is_true(live, gate)), "")
    not_ready = ("ContainersNotReady", f"containers with unready status: [{unready}]") if unready else None
    not_let = ("ReadinessGatesNotReady", f'the status of pod readiness gate "{closed}" is not "True", but False') if closed else None
    not_initialised = ("ContainersNotInitialized", f"containers with incomplete status: [{waiting}]") if waiting else None
    return [
        _condition(live, now, "PodScheduled", None),
        _condition(live, now, "Initialized", not_initialised),
        _condition(live, now, "ContainersReady", not_ready),
        _condition(live, now, "Ready", not_ready or not_let),
    ]


def _final_conditions(pod: Body, now: datetime, reason: str) -> list[Status]:
    live = conditions_of(pod)
    return [
        _condition(live, now, "PodScheduled", None),
        {**_condition(live, now, "Initialized", None), "reason": "PodCompleted" if reason == "PodCompleted" else None},
        _condition(live, now, "ContainersReady", (reason, "")),
        _condition(live, now, "Ready", (reason, "")),
    ]


def _condition(live: Iterable[Body], now: datetime, type: str, against: tuple[str, str] | None) -> Status:
    """True unless something speaks against it; its onset is kept unless it flips."""
    status = "False" if against else "True"
    old = conditions.find(live, type)
    kept = old.get("lastTransitionTime") if old and old.get("status") == status else None
    reason, message = against or ("", "")
    said = {"type": type, "status": status, "reason": reason or None, "message": message or None}
    return said | {"lastTransitionTime": kept or written(now)}


def _evicted(pod: Body, born: datetime, scene: Scene) -> Status:
    message = "The node was low on resource: memory."
    status = _over(pod, scene.now, {"phase": "Failed", "reason": "Evicted", "message": message, "startTime": written(born)}, code=137)
    target = _condition(conditions_of(pod), scene.now, "DisruptionTarget", None)
    return status | {"conditions": [*status["conditions"], {**target, "reason": "TerminationByKubelet", "message": message}]}


def _over(pod: Body, now: datetime, head: Status, *, code: int) -> Status:
    """The status of a pod all of whose containers are stopped at this moment."""
    old = {one["name"]: one for one in status_of(pod).get("containerStatuses") or ()}
    stopped = [told(container, _stopped(run_of(old.get(container["name"])), now, code), False) for container in pod["spec"]["containers"]]
    reason = "PodCompleted" if head["phase"] == "Succeeded" else "PodFailed"
    return head | {"conditions": _final_conditions(pod, now, reason), "containerStatuses": stopped}


def _stopped(run: Run, now: datetime, code: int) -> Run:
    """A container that never began is stopped as it waits; one that crashed last keeps how."""
    return run.but(state=TERMINATED, ended=now, code=code) if run.state == RUNNING else run
