"""States: what our kinds would say of themselves, pods being as a test puts them."""

from datetime import timedelta
from typing import Any

from engine.ids import Kind, ResourceId
from engine.memo import Memo
from engine.paths import stamp
from resources.base import kinds
from resources.registry import BLUEPRINTS
from tests.laws.toy import SETUP, Toy

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
"""What a pod may be like."""


def up(manifest: dict[str, Any]) -> Toy:
    """A cluster in which the set has been up for a while."""
    toy = Toy()
    toy.put(manifest)
    toy.settle()
    toy.now += timedelta(minutes=1)
    return toy


def be(toy: Toy, prefix: str, *how: str) -> None:
    """The pods of that prefix are now like this, one after the other; `going` is a ready one that is being deleted."""
    pods = [pod for pod in toy.pods() if pod.name.startswith(prefix)]
    for pod, state in zip(pods, how, strict=True):
        toy.objects[pod] = {**toy.objects[pod], "status": {}}
        toy.write(pod, {"status": PODS["ready" if state == "going" else state]})
        if state == "going":
            toy.delete(pod)


def edit(toy: Toy, id: ResourceId, **spec: Any) -> None:
    """Somebody changes the spec of an object."""
    generation = toy.objects[id]["metadata"]["generation"] + 1
    toy.write(id, {"spec": spec, "metadata": {"generation": generation}})


def wanted(toy: Toy, kind: Kind, name: str) -> dict[str, Any]:
    """What an object should say of itself now; what is to be written now bears the time."""
    (observed,) = toy.world().roots
    resources = BLUEPRINTS[0].desire(observed, toy.now, SETUP, Memo()).graph.resources
    said: dict[str, Any] = dict(stamp(resources[kind.id("default", name)].status or {}, toy.stamp()))
    return said


def told(toy: Toy, kind: Kind, name: str) -> dict[str, Any]:
    """What an object says of itself."""
    return dict(toy.objects[kind.id("default", name)].get("status") or {})


def conditions(status: dict[str, Any]) -> dict[str, tuple[str, str, str]]:
    """Type -> status, reason, message."""
    return {one["type"]: (one["status"], one["reason"], one["message"]) for one in status.get("conditions", ())}


def since(status: dict[str, Any], type: str) -> str:
    """When the answer of a condition last changed."""
    return next(str(one["lastTransitionTime"]) for one in status["conditions"] if one["type"] == type)
