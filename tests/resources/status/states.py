"""States: pods in a given state, and the statuses that our kinds have or should have."""

from datetime import timedelta
from typing import Any

from engine.ids import Kind, ResourceId
from engine.memo import Memo
from engine.paths import stamp
from engine.resource import Want
from resources.base import kinds
from resources.registry import BLUEPRINTS
from tests.laws.toy import CONFIGURATION, Toy

ROOT = kinds.PODCLIQUESET.id("default", "demo")
STARTED = {"name": "main", "started": True, "ready": False}
CRASHED = {"name": "main", "started": False, "ready": False, "lastState": {"terminated": {"exitCode": 1}}}
SCHEDULED = {"type": "PodScheduled", "status": "True"}
READY = {"type": "Ready", "status": "True"}
PODS: dict[str, dict[str, Any]] = {
    "ready": {"phase": "Running", "conditions": [SCHEDULED, READY]},
    "pulling": {"phase": "Pending", "conditions": [SCHEDULED]},
    "unready": {"phase": "Running", "conditions": [SCHEDULED], "containerStatuses": [STARTED]},
    "crashed": {"phase": "Running", "conditions": [SCHEDULED], "containerStatuses": [CRASHED]},
    "unscheduled": {"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]},
    "gated": {"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}]},
}
"""State -> the status of a pod in it."""


def up(manifest: dict[str, Any]) -> Toy:
    """A cluster in which the set has been running for a minute."""
    toy = Toy()
    toy.put(manifest)
    toy.settle()
    toy.now += timedelta(minutes=1)
    return toy


def set_pods(toy: Toy, prefix: str, *states: str) -> None:
    """Put the pods with that prefix, in the order of their names, into these states; `terminating` is a ready pod that is being deleted."""
    pods = [pod for pod in toy.pods() if pod.name.startswith(prefix)]
    for pod, state in zip(pods, states, strict=True):
        toy.objects[pod] = {**toy.objects[pod], "status": {}}
        toy.write(pod, {"status": PODS["ready" if state == "terminating" else state]})
        if state == "terminating":
            toy.delete(pod)


def edit(toy: Toy, id: ResourceId, **spec: Any) -> None:
    """Change the spec of an object as a user does."""
    generation = toy.objects[id]["metadata"]["generation"] + 1
    toy.write(id, {"spec": spec, "metadata": {"generation": generation}})


def desired_status(toy: Toy, kind: Kind, name: str) -> dict[str, Any]:
    """The status that an object should have now, with the current time in place of the marker for it."""
    (observed,) = toy.world().roots
    resources = BLUEPRINTS[0].desire(observed, toy.now, CONFIGURATION, Memo()).graph.resources
    resource = resources[kind.id("default", name)]
    assert isinstance(resource, Want)
    status: dict[str, Any] = dict(stamp(resource.status or {}, toy.stamp()))
    return status


def live_status(toy: Toy, kind: Kind, name: str) -> dict[str, Any]:
    """The status that an object has."""
    return dict(toy.objects[kind.id("default", name)].get("status") or {})


IDLE = {"UpdateInProgress": ("False", "NoActiveUpdate", "No update is in progress")}
"""What a status says of updates while none runs."""


def conditions(status: dict[str, Any]) -> dict[str, tuple[str, str, str]]:
    """Type -> status, reason, message."""
    return {entry["type"]: (entry["status"], entry["reason"], entry["message"]) for entry in status.get("conditions", ())}


def since(status: dict[str, Any], type: str) -> str:
    """When the status of a condition last changed."""
    return next(str(entry["lastTransitionTime"]) for entry in status["conditions"] if entry["type"] == type)
