"""Pod obstacles: why one pod of a set does not run, from its status and from the objects that it waits for."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from itertools import chain
from typing import Final

from engine.conditions import find
from resources.base import kinds, labels
from resources.base.fields import mapping, mappings
from resources.model.pod_facts import PodFacts
from resources.reports.container_obstacles import container_obstacles, end_text, logs, statuses_of
from resources.reports.obstacle import RunObstacle, explaining, pod_obstacle_of
from resources.reports.set_pods import SetPods

CLAIM_SOURCES: Final = {"resourceClaimTemplateName": kinds.RESOURCE_CLAIM_TEMPLATE, "resourceClaimName": kinds.RESOURCE_CLAIM}
"""Field of a claim of a pod -> the kind of the object that it names."""
OVERDUE: Final = timedelta(minutes=2)
"""How long after the end of its grace period a pod may be there without a special reason."""
NODE_ADVICE: Final = "look after the node; if it is lost for good, delete its Node object, then the pod goes"
SCHEDULE_ADVICE: Final = "free or add nodes with what the message names, or ask for less"


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
        return pod_obstacle_of(pod, "Terminating", text, "whoever has set the finalizers has to remove them")
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
    """A pod with scheduling gates. Ours is removed once the base gang of the replica is scheduled."""
    gates = [str(gate.get("name")) for gate in mappings(mapping(pod.live.body.get("spec")).get("schedulingGates"))]
    if labels.GATE in gates:
        base = pod.live.labels.get(labels.BASE_PODGANG, "")
        text = f"its gang {pod.live.labels.get(labels.PODGANG, '')} may be scheduled after gang {base}, which {_gang_state(pods, base)}"
        yield pod_obstacle_of(pod, "SchedulingGated", text, explaining("podgang", base, pod.live.id.namespace))
    elif gates:
        text = f"has the scheduling gates {', '.join(gates)}, which are not ours"
        yield pod_obstacle_of(pod, "SchedulingGated", text, "whoever has set the gates has to remove them")


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
    condition = find(mapping(pod.live.body.get("status")).get("conditions") or (), "PodScheduled") or {}
    if missing:
        yield pod_obstacle_of(pod, "ClaimMissing", "; ".join(filter(None, (*missing, pod.reason))), "create it, or correct its name")
    elif incomplete:
        counts = "; ".join(f"{group} has {count} of {minimum} pods" for group, (count, minimum) in incomplete.items())
        text = "; ".join(filter(None, (f"its gang {gang} is incomplete: {counts}", pod.reason)))
        yield pod_obstacle_of(pod, "GangIncomplete", text, explaining("podgang", gang, pod.live.id.namespace))
    elif condition.get("status") == "False":
        message = str(condition.get("message") or pod.reason or "no node suits it")
        yield pod_obstacle_of(pod, "Unschedulable", "; ".join((message, *unallocated)), SCHEDULE_ADVICE)
    else:
        scheduler = mapping(pod.live.body.get("spec")).get("schedulerName") or "default-scheduler"
        text = "; ".join((f"{scheduler} has not said anything about it", *unallocated))
        yield pod_obstacle_of(pod, "Unscheduled", text, f"if that lasts, see whether {scheduler} runs")


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
