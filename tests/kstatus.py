"""What kstatus, and `kubectl wait`, conclude from an object of a custom kind."""

from collections.abc import Mapping
from typing import Any


def kstatus(body: Mapping[str, Any]) -> str:
    """The status that kstatus gives the object: Flux and Helm's `--wait` go by it."""
    metadata, status = body["metadata"], body.get("status") or {}
    if metadata.get("deletionTimestamp"):
        return "Terminating"
    if "observedGeneration" in status and status["observedGeneration"] != metadata.get("generation"):
        return "InProgress"
    conditions = status.get("conditions") or []
    verdicts = {"Reconciling": "InProgress", "Stalled": "Failed"}
    for condition in conditions:
        if condition["type"] in verdicts and condition["status"] == "True":
            return verdicts[condition["type"]]
    ready = [condition["status"] for condition in conditions if condition["type"] == "Ready"]
    return "InProgress" if ready and ready[0] != "True" else "Current"


def is_waited_for(body: Mapping[str, Any], type: str) -> bool:
    """Whether `kubectl wait --for=condition=TYPE` ends."""
    status, generation = body.get("status") or {}, body["metadata"].get("generation", 0)
    for condition in status.get("conditions") or []:
        if condition["type"].lower() == type.lower():
            observed = condition.get("observedGeneration", status.get("observedGeneration", generation))
            return bool(condition["status"] == "True" and observed >= generation)
    return False
