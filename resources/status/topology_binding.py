"""The status of a ClusterTopologyBinding: whether what schedulers have for it says the same."""

from collections.abc import Mapping, Sequence
from typing import Any

from engine.conditions import condition, keep
from engine.observed import Live
from engine.resource import Body
from resources.model.scheduler_topology import BackendTopology

DRIFT = "SchedulerTopologyDrift"


def of(root: Live, found: Sequence[BackendTopology]) -> Body | None:
    """What the binding says of itself; None while something is about to be made so, for that will be over before anybody can read it.

    Its generation has been dealt with where everything that is kept here could be.
    """
    if any(one.due for one in found):
        return None
    old: Mapping[str, Any] = root.body.get("status") or {}
    body: dict[str, Any] = {"schedulerTopologyStatuses": [_entry(one) for one in found] or None}
    known = old.get("conditions") or []
    conditions = keep(known, _conditions(found, root.generation), owned=(DRIFT,))
    if conditions or known:
        body["conditions"] = conditions or None
    return body if any(one.failed for one in found) else {**body, "observedGeneration": root.generation}


def _entry(one: BackendTopology) -> dict[str, Any]:
    entry: dict[str, Any] = {"schedulerName": one.scheduler, "topologyReference": one.name, "inSync": not one.trouble}
    if one.live is not None and one.live.generation:
        entry["schedulerBackendTopologyObservedGeneration"] = one.live.generation
    return entry | {"message": one.trouble} if one.trouble else entry


def _conditions(found: Sequence[BackendTopology], generation: int) -> list[dict[str, Any]]:
    if not found:
        return []
    drift, reason, message = _standing(found)
    return [condition(DRIFT, drift, reason, message, generation=generation)]


def _standing(found: Sequence[BackendTopology]) -> tuple[bool | None, str, str]:
    if not all(one.available for one in found):
        return None, "TopologyNotFound", "One or more referenced scheduler backends are unavailable for topology management"
    if any(one.trouble for one in found):
        return True, "Drift", "One or more scheduler backend topologies have drifted"
    return False, "InSync", "All scheduler backend topologies are in sync"
