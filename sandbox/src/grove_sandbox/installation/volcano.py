"""Volcano: what the installation of Volcano, v1.15, creates: its PodGroups and Queues, and the queues `root` and `default`.

The status of a PodGroup is no subresource: its scheduler writes it with the rest of the object.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from grove_sandbox.installation.custom_kind import (
    ANYTHING,
    COUNT,
    FLAG,
    QUANTITIES,
    TEXT,
    TIME,
    Schema,
    choice,
    definition,
    list_of,
    object_of,
)
from grove_sandbox.product import Kind, kinds

ROOT, DEFAULT = "root", "default"

_COUNT: Final = {**COUNT, "minimum": 0}
_NAME: Final = {"type": "string", "maxLength": 253, "pattern": r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"}


def installation() -> Iterable[tuple[Kind, Mapping[str, Any]]]:
    """All objects in the order in which they can be created."""
    yield (
        kinds.CRD,
        definition(
            kinds.VOLCANO_POD_GROUP,
            object_of({"spec": _POD_GROUP, "status": _POD_GROUP_STATUS}),
            short_names=("pg", "podgroup-v1beta1"),
            columns=(
                ("STATUS", "string", ".status.phase"),
                ("minMember", "integer", ".spec.minMember"),
                ("RUNNINGS", "integer", ".status.running"),
                ("AGE", "date", ".metadata.creationTimestamp"),
            ),
            has_status=False,
        ),
    )
    columns = (("PARENT", "string", ".spec.parent"),)
    queue = object_of({"spec": _QUEUE, "status": _QUEUE_STATUS})
    yield kinds.CRD, definition(kinds.VOLCANO_QUEUE, queue, short_names=("q", "queue-v1beta1"), columns=columns)
    for name in (ROOT, DEFAULT):
        metadata = {"name": name}
        yield (
            kinds.VOLCANO_QUEUE,
            {"apiVersion": kinds.VOLCANO_QUEUE.api_version, "kind": "Queue", "metadata": metadata, "spec": {"weight": 1}},
        )


def _network_topology() -> Schema:
    tier = {"type": "integer", "minimum": 0}
    return object_of({"highestTierAllowed": tier, "highestTierName": TEXT, "mode": choice("hard", "soft", default="hard")})


_POD_GROUP: Final = object_of(
    {
        "minMember": _COUNT,
        "minTaskMember": {"type": "object", "additionalProperties": COUNT},
        "minResources": QUANTITIES,
        "queue": {**_NAME, "default": DEFAULT},
        "priorityClassName": {**TEXT, "maxLength": 253},
        "networkTopology": _network_topology(),
        "subGroupPolicy": list_of(ANYTHING),
    }
)
_CONDITION: Final = object_of(
    {"type": TEXT, "status": TEXT, "reason": TEXT, "message": TEXT, "transitionID": TEXT, "lastTransitionTime": TIME}
)
_POD_GROUP_STATUS: Final = object_of(
    {
        "phase": choice("Pending", "Running", "Unknown", "Inqueue", "Completed"),
        "running": _COUNT,
        "succeeded": _COUNT,
        "failed": _COUNT,
        "conditions": list_of(_CONDITION),
    }
)
_QUEUE: Final = object_of(
    {
        "weight": {**COUNT, "default": 1, "minimum": 1, "maximum": 65535},
        "capability": QUANTITIES,
        "deserved": QUANTITIES,
        "guarantee": object_of({"resource": QUANTITIES}),
        "parent": _NAME,
        "priority": _COUNT,
        "reclaimable": FLAG,
        "type": TEXT,
        "affinity": ANYTHING,
        "dequeueStrategy": choice("fifo", "traverse", default="traverse"),
        "extendClusters": list_of(ANYTHING),
    }
)
_QUEUE_STATUS: Final = object_of(
    {"state": choice("Open", "Closed", "Closing", "Unknown"), "allocated": QUANTITIES, "reservation": ANYTHING}
    | {name: _COUNT for name in ("completed", "inqueue", "pending", "running", "unknown")}
)
