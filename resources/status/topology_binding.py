"""The status of a ClusterTopologyBinding: whether the topologies of the schedulers agree with it."""

from collections.abc import Mapping, Sequence
from typing import Any

from engine.conditions import condition, merge
from engine.observed import Live
from engine.resource import Body
from resources.model.topology import BackendTopology

DRIFT = "SchedulerTopologyDrift"


def of(root: Live, topologies: Sequence[BackendTopology]) -> Body | None:
    """The desired status of the binding; None if this pass creates or corrects a topology: the status would be out of date at once.

    `observedGeneration` is set unless one of the topologies has `failed`.
    """
    if any(topology.due for topology in topologies):
        return None
    old: Mapping[str, Any] = root.body.get("status") or {}
    body: dict[str, Any] = {"schedulerTopologyStatuses": [_entry(topology) for topology in topologies] or None}
    known = old.get("conditions") or []
    conditions = merge(known, _conditions(topologies, root.generation), owned=(DRIFT,))
    if conditions or known:
        body["conditions"] = conditions or None
    return body if any(topology.failed for topology in topologies) else {**body, "observedGeneration": root.generation}


def _entry(topology: BackendTopology) -> dict[str, Any]:
    entry: dict[str, Any] = {"schedulerName": topology.scheduler, "topologyReference": topology.name, "inSync": not topology.mismatch}
    if topology.live is not None and topology.live.generation:
        entry["schedulerBackendTopologyObservedGeneration"] = topology.live.generation
    return entry | {"message": topology.mismatch} if topology.mismatch else entry


def _conditions(topologies: Sequence[BackendTopology], generation: int) -> list[dict[str, Any]]:
    if not topologies:
        return []
    drift, reason, message = _drift(topologies)
    return [condition(DRIFT, drift, reason, message, generation=generation)]


def _drift(topologies: Sequence[BackendTopology]) -> tuple[bool | None, str, str]:
    if not all(topology.available for topology in topologies):
        return None, "TopologyNotFound", "One or more referenced scheduler backends are unavailable for topology management"
    if any(topology.mismatch for topology in topologies):
        return True, "Drift", "One or more scheduler backend topologies have drifted"
    return False, "InSync", "All scheduler backend topologies are in sync"
