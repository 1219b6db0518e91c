"""Pod obstacles: why one pod of a set does not run, from its status and from the objects that it waits for."""

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from itertools import chain
from typing import Any, Final

from engine.conditions import find
from resources.base import kinds, labels
from resources.base.fields import mapping, mappings
from resources.base.names import WAITER
from resources.model.pod_facts import CRASH_LOOP, IMAGE, PodFacts, unmade_claims
from resources.reports.obstacle import RunObstacle, command, completing, explaining, pod_obstacle_of
from resources.reports.set_pods import SetPods, minimums

CLAIM_SOURCES: Final = {"resourceClaimTemplateName": kinds.RESOURCE_CLAIM_TEMPLATE, "resourceClaimName": kinds.RESOURCE_CLAIM}
"""Field of a claim of a pod -> the kind of the object that it names."""
OVERDUE: Final = timedelta(minutes=2)
"""How long after the end of its grace period a pod may be there without a special reason."""
NODE_ADVICE: Final = "look after the node; if it is lost for good, delete its Node object, then the pod goes"
SCHEDULE_ADVICE: Final = "free or add nodes with what the message names, create what does not exist, or ask for less"


def pod_obstacle(pods: SetPods, pod: PodFacts, now: datetime) -> RunObstacle | None:
    """Why a pod does not run; None if it is ready or has completed. Of several reasons the one that comes first in its life."""
    if pod.terminating:
        return _terminating(pod, now)
    if pod.ended:
        return _ended(pod)
    if pod.completed or pod.ready:
        return None
    return next(chain(_gated(pods, pod), _unscheduled(pods, pod), container_obstacles(pods, pod)))


def _terminating(pod: PodFacts, now: datetime) -> RunObstacle:
    """A pod that is being deleted, and why it is still there if its grace period ended a while ago."""
    since = pod.live.deleting_since
    if since is None or now - since <= OVERDUE:
        return pod_obstacle_of(pod, "Terminating", "is being deleted")
    if finalizers := [str(name) for name in pod.live.body["metadata"].get("finalizers") or ()]:
        text = f"is being deleted, and its grace period is over: finalizers {', '.join(finalizers)}"
        return pod_obstacle_of(pod, "Terminating", text, "remove the finalizers, or repair their controllers")
    text = f"is being deleted, and its grace period is over: node {pod.node} has not ended it"
    return pod_obstacle_of(pod, "Terminating", text, NODE_ADVICE)


def _ended(pod: PodFacts) -> RunObstacle:
    """A pod that has failed or completed and has to be replaced."""
    status = mapping(pod.live.body.get("status"))
    message = ": ".join(str(status[key]) for key in ("reason", "message") if status.get(key))
    detail = message or "; ".join(text for container in statuses_of(pod) if (text := end_text(container, "state")))
    text = f"has ended ({pod.phase}) and is replaced" + (f": {detail}" if detail else "")
    return pod_obstacle_of(pod, "Ended", text, logs(pod) if pod.phase == "Failed" else "")


def _gated(pods: SetPods, pod: PodFacts) -> Iterator[RunObstacle]:
    """A pod with scheduling gates. Ours is removed once the base gang of the replica, and the minimum of its own gang, are scheduled."""
    gates = [str(gate.get("name")) for gate in mappings(mapping(pod.live.body.get("spec")).get("schedulingGates"))]
    if labels.GATE in gates:
        own, base = (pod.live.labels.get(key, "") for key in (labels.PODGANG, labels.BASE_PODGANG))
        waits_for_own = _is_beyond_minimum(pods, pod, own) and _has_minimum(pods, base) and not _has_minimum(pods, own)
        follows_base = bool(base) and not waits_for_own
        relation = f"its gang {own} may be scheduled after gang {base}" if follows_base else f"it is beyond the minimum of its gang {own}"
        awaited = base if follows_base else own
        text = f"{relation}, which {_gang_state(pods, awaited)}"
        yield pod_obstacle_of(pod, "SchedulingGated", text, explaining("podgang", awaited, pod.live.id.namespace))
    elif gates:
        text = f"has the scheduling gates {', '.join(gates)}, which are not ours"
        yield pod_obstacle_of(pod, "SchedulingGated", text, "remove the gates, or repair the controllers that set them")


def _is_beyond_minimum(pods: SetPods, pod: PodFacts, gang: str) -> bool:
    """Whether its gang has its minimum of the clique without it."""
    clique = pod.live.labels.get(labels.PODCLIQUE, "")
    return pod.index is not None and pod.index >= minimums(pods.reference(kinds.PODGANG, gang)).get(clique, 0)


def _has_minimum(pods: SetPods, name: str) -> bool:
    """Whether a gang exists and its minimum is scheduled."""
    live = pods.reference(kinds.PODGANG, name)
    return live is not None and not pods.lacking(live)


def _gang_state(pods: SetPods, name: str) -> str:
    """What a gang lacks before others may be scheduled, as a predicate."""
    live = pods.reference(kinds.PODGANG, name)
    if live is None:
        return "does not exist yet"
    lacking = pods.lacking(live)
    counts = "; ".join(f"{group} has {scheduled} of {minimum} pods scheduled" for group, (scheduled, minimum) in lacking.items())
    return f"has not its minimum: {counts}" if counts else "is scheduled: the next pass removes the gate"


def _unscheduled(pods: SetPods, pod: PodFacts) -> Iterator[RunObstacle]:
    """A pod without a node: claims that it lacks, and what the scheduler says."""
    if pod.node or pod.scheduled:
        return
    missing, unallocated = list(_missing_claims(pods, pod)), list(_unallocated_claims(pods, pod))
    gang = pod.live.labels.get(labels.PODGANG, "")
    incomplete = pods.incomplete(pods.reference(kinds.PODGANG, gang))
    unmade = ", ".join(unmade_claims(pod.live))
    condition = find(mapping(pod.live.body.get("status")).get("conditions") or (), "PodScheduled") or {}
    if missing:
        yield pod_obstacle_of(pod, "ClaimMissing", "; ".join(filter(None, (*missing, pod.reason))), "create it, or correct its name")
    elif incomplete:
        counts = "; ".join(f"{group} has {count} of {minimum} pods" for group, (count, minimum) in incomplete.items())
        text = "; ".join(filter(None, (f"its gang {gang} is incomplete: {counts}", pod.reason)))
        yield pod_obstacle_of(pod, "GangIncomplete", text, _completing(pods, gang) or explaining("podgang", gang, pod.live.id.namespace))
    elif unmade:
        text = "; ".join(filter(None, (f"what its template asks for is not made: claim {unmade}", pod.reason)))
        yield pod_obstacle_of(pod, "ClaimMissing", text, "see its events: a ResourceQuota may have no room for it")
    elif condition.get("status") == "False":
        message = str(condition.get("message") or pod.reason or "no node suits it")
        yield pod_obstacle_of(pod, "Unschedulable", "; ".join((message, *unallocated)), SCHEDULE_ADVICE)
    else:
        scheduler = mapping(pod.live.body.get("spec")).get("schedulerName") or "default-scheduler"
        text = "; ".join((f"{scheduler} has not said anything about it", *unallocated))
        yield pod_obstacle_of(pod, "Unscheduled", text, f"if that lasts, see whether {scheduler} runs")


def _completing(pods: SetPods, gang: str) -> str:
    """The command that completes a gang; empty if no clique of it was scaled below what its scheduler needs."""
    live = pods.reference(kinds.PODGANG, gang)
    return completing(live, pods.needed(live)) if live is not None else ""


def _missing_claims(pods: SetPods, pod: PodFacts) -> Iterator[str]:
    """The ResourceClaimTemplates, and the ResourceClaims, that a pod names and that do not exist."""
    for claim in mappings(mapping(pod.live.body.get("spec")).get("resourceClaims")):
        for field, kind in CLAIM_SOURCES.items():
            name = claim.get(field)
            if isinstance(name, str) and kind.name not in pods.unlisted and pods.reference(kind, name) is None:
                yield f"{kind.name} {name} does not exist"


def _unallocated_claims(pods: SetPods, pod: PodFacts) -> Iterator[str]:
    """The claims of a pod that exist and have no devices yet."""
    of_templates = mappings(mapping(pod.live.body.get("status")).get("resourceClaimStatuses"))
    named = mappings(mapping(pod.live.body.get("spec")).get("resourceClaims"))
    for name in dict.fromkeys(claim.get("resourceClaimName") for claim in (*of_templates, *named)):
        live = pods.reference(kinds.RESOURCE_CLAIM, name) if isinstance(name, str) else None
        if live is not None and not mapping(live.body.get("status")).get("allocation"):
            yield f"ResourceClaim {name} is not allocated"


STARTING: Final = ("", "ContainerCreating", "PodInitializing")
"""The reasons with which a container waits that is about to start."""
IMAGE_ADVICE: Final = "correct the image, or give the node access to its registry (imagePullSecrets)"

Container = Mapping[str, Any]
"""The status of a container."""


def container_obstacles(pods: SetPods, pod: PodFacts) -> Iterator[RunObstacle]:
    """Why a pod with a node is not ready, the reason that comes first in its life first: at least one."""
    containers = statuses_of(pod)
    yield from (blocked for container in containers for blocked in _blocked(pod, container))
    yield from _initializing(pods, pod)
    yield from _creating(pod)
    yield from (failed for container in containers for failed in _failed(pod, container))
    yield from _unready(pod)


def statuses_of(pod: PodFacts) -> list[Container]:
    """The statuses of the containers of a pod, those of init containers first."""
    status = mapping(pod.live.body.get("status"))
    return [*mappings(status.get("initContainerStatuses")), *mappings(status.get("containerStatuses"))]


def end_text(container: Container, state: str) -> str:
    """How a container has failed, e.g. `has ended with exit code 137 (OOMKilled)`; empty if it has not, or without an error."""
    end = mapping(mapping(container.get(state)).get("terminated"))
    if not end.get("exitCode"):
        return ""
    reason = f" ({end['reason']})" if end.get("reason") else ""
    message = f": {end['message']}" if end.get("message") else ""
    hint = "; its memory limit is too low" if end.get("reason") == "OOMKilled" else ""
    return f"has ended with exit code {end['exitCode']}{reason}{message}{hint}"


def logs(pod: PodFacts, container: str = "") -> str:
    """The command that shows what a container has written before it failed."""
    restarted = any(entry.get("restartCount") for entry in statuses_of(pod) if container in ("", entry.get("name")))
    words = ["kubectl", "logs", "-n", pod.live.id.namespace, pod.name]
    return command(*words, *(["-c", container] if container else []), *(["--previous"] if restarted else []))


def _blocked(pod: PodFacts, container: Container) -> Iterator[RunObstacle]:
    """A container that cannot start."""
    waiting = mapping(mapping(container.get("state")).get("waiting"))
    reason, name = str(waiting.get("reason") or ""), str(container.get("name"))
    message = f": {waiting['message']}" if waiting.get("message") else ""
    if reason in IMAGE:
        yield pod_obstacle_of(pod, "ImagePull", f"container {name}: {reason}, image {container.get('image')}{message}", IMAGE_ADVICE)
    elif reason == CRASH_LOOP:
        text = f"container {name} {end_text(container, 'lastState') or 'ends again and again'}{_restarts(container)}"
        yield pod_obstacle_of(pod, "Crashing", text, logs(pod, name))
    elif reason not in STARTING:
        yield pod_obstacle_of(pod, "ContainerBlocked", f"container {name}: {reason}{message}", _describe(pod))


def _initializing(pods: SetPods, pod: PodFacts) -> Iterator[RunObstacle]:
    """A pod with an init container that runs. Sidecars, which run as long as the pod, do not count."""
    specified = mappings(mapping(pod.live.body.get("spec")).get("initContainers"))
    sidecars = {container.get("name") for container in specified if container.get("restartPolicy")}
    for container in mappings(mapping(pod.live.body.get("status")).get("initContainerStatuses")):
        name = str(container.get("name"))
        if mapping(container.get("state")).get("running") is None or name in sidecars:
            continue
        if name == WAITER:
            yield _start_order(pods, pod)
        else:
            yield pod_obstacle_of(pod, "Initializing", f"init container {name} runs", logs(pod, name))


def _start_order(pods: SetPods, pod: PodFacts) -> RunObstacle:
    awaited = dict(_awaited(pods, pod))
    if not awaited:
        return pod_obstacle_of(pod, "StartOrder", "the pods that it starts after are ready, and its init container is about to end")
    advice = explaining("pclq", next(iter(awaited)), pod.live.id.namespace)
    return pod_obstacle_of(pod, "StartOrder", f"starts after others: {'; '.join(awaited.values())}", advice)


def _awaited(pods: SetPods, pod: PodFacts) -> Iterator[tuple[str, str]]:
    """The PodCliques that the init container waits for and that lack ready pods in the gang: name, and the numbers in words."""
    specified = mappings(mapping(pod.live.body.get("spec")).get("initContainers"))
    waiter: Container = next((container for container in specified if container.get("name") == WAITER), {})
    gang = pod.live.labels.get(labels.PODGANG)
    for argument in waiter.get("args") or ():
        name, _, minimum = str(argument).removeprefix("--podcliques=").rpartition(":")
        ready = sum(other.ready for other in pods.by_clique.get(name, ()) if other.live.labels.get(labels.PODGANG) == gang)
        if minimum.isdecimal() and len(minimum) < 8 and ready < int(minimum):
            yield name, f"{name} has {ready} of {minimum} pods ready"


def _creating(pod: PodFacts) -> Iterator[RunObstacle]:
    """A pod whose containers are being created."""
    containers = mappings(mapping(pod.live.body.get("status")).get("containerStatuses"))
    if not containers or any(mapping(entry.get("state")).get("waiting") is not None for entry in containers):
        failed = next((text for entry in statuses_of(pod) if (text := end_text(entry, "lastState"))), "")
        text = f"node {pod.node} creates its containers" + (f"; before, one {failed}" if failed else "")
        yield pod_obstacle_of(pod, "Creating", text, f"if that lasts: {_describe(pod)}")


def _failed(pod: PodFacts, container: Container) -> Iterator[RunObstacle]:
    """A container that has failed, or runs again after a failure."""
    text = end_text(container, "state") or (end_text(container, "lastState") if pod.failing else "")
    if text and not container.get("ready"):
        name = str(container.get("name"))
        yield pod_obstacle_of(pod, "Crashing", f"container {name} {text}{_restarts(container)}", logs(pod, name))


def _unready(pod: PodFacts) -> Iterator[RunObstacle]:
    """A pod whose containers run and are not ready, or that is not ready for another reason."""
    status = mapping(pod.live.body.get("status"))
    for container in (entry for entry in mappings(status.get("containerStatuses")) if not entry.get("ready")):
        probe = "readiness" if container.get("started") else "startup"
        text = f"container {container.get('name')} runs; its {probe} probe has not succeeded"
        yield pod_obstacle_of(pod, "NotReady", text, logs(pod, str(container.get("name"))))
    condition = find(status.get("conditions") or (), "Ready") or {}
    message = ": ".join(str(condition[key]) for key in ("reason", "message") if condition.get(key))
    yield pod_obstacle_of(pod, "NotReady", "its condition Ready is not True" + (f": {message}" if message else ""), _describe(pod))


def _restarts(container: Container) -> str:
    count = container.get("restartCount")
    return "" if not isinstance(count, int) or count < 1 else ", 1 restart" if count == 1 else f", {count} restarts"


def _describe(pod: PodFacts) -> str:
    return command("kubectl", "describe", "pod", "-n", pod.live.id.namespace, pod.name)
