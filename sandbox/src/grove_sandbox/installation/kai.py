"""KAI: what the installation of the KAI scheduler, v0.12, creates: its PodGroups, Queues and Topologies. It has no queue from the start."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from grove_sandbox.installation.custom_kind import (
    ANYTHING,
    COUNT,
    FLAG,
    NUMBER,
    QUANTITIES,
    TEXT,
    TIME,
    choice,
    definition,
    list_of,
    object_of,
)
from grove_sandbox.product import Kind, kinds

_MEMBERS: Final = {**COUNT, "minimum": 1}
_IMMUTABLE: Final = {"rule": "self == oldSelf", "message": "field is immutable"}


def installation() -> Iterable[tuple[Kind, Mapping[str, Any]]]:
    """All objects in the order in which they can be created."""
    yield kinds.CRD, definition(kinds.KAI_POD_GROUP, object_of({"spec": _POD_GROUP, "status": _POD_GROUP_STATUS}), short_names=("pg",))
    columns = (
        ("Priority", "string", ".spec.priority"),
        ("Parent", "string", ".spec.parentQueue"),
        ("Children", "string", ".status.childQueues"),
        ("DisplayName", "string", ".spec.displayName"),
    )
    yield kinds.CRD, definition(kinds.KAI_QUEUE, object_of({"spec": _QUEUE, "status": _QUEUE_STATUS}), columns=columns)
    yield kinds.CRD, definition(kinds.KAI_TOPOLOGY, object_of({"spec": _TOPOLOGY}, ("spec",)))


_TOPOLOGY_CONSTRAINT: Final = object_of({"topology": TEXT, "requiredTopologyLevel": TEXT, "preferredTopologyLevel": TEXT})
_SUBGROUP: Final = object_of(
    {
        "name": {**TEXT, "minLength": 1},
        "minMember": _MEMBERS,
        "parent": TEXT,
        "topologyConstraint": _TOPOLOGY_CONSTRAINT,
    },
    ("name",),
)
_POD_GROUP: Final = object_of(
    {
        "minMember": _MEMBERS,
        "queue": TEXT,
        "subGroups": list_of(_SUBGROUP),
        "topologyConstraint": _TOPOLOGY_CONSTRAINT,
        "priorityClassName": TEXT,
        "preemptibility": choice("preemptible", "non-preemptible"),
        "markUnschedulable": FLAG,
        "schedulingBackoff": COUNT,
        "backoffLimit": COUNT,
        "completions": COUNT,
        "parallelism": COUNT,
    }
)
_CONDITION: Final = object_of(
    {"type": TEXT, "status": TEXT, "reason": TEXT, "message": TEXT, "transitionID": TEXT, "lastTransitionTime": TIME}
)
_SCHEDULING_CONDITION: Final = object_of({**_CONDITION["properties"], "nodePool": TEXT, "reasons": list_of(ANYTHING)})
_POD_GROUP_STATUS: Final = object_of(
    {
        "phase": TEXT,
        "conditions": list_of(_CONDITION),
        "schedulingConditions": list_of(_SCHEDULING_CONDITION),
        "resourcesStatus": object_of({"allocated": QUANTITIES, "allocatedNonPreemptible": QUANTITIES, "requested": QUANTITIES}),
    }
    | {name: COUNT for name in ("failed", "pending", "running", "succeeded")}
)
_RESOURCE: Final = object_of({"quota": NUMBER, "overQuotaWeight": NUMBER, "limit": NUMBER})
_QUEUE: Final = object_of(
    {
        "displayName": TEXT,
        "parentQueue": TEXT,
        "priority": {"type": "integer"},
        "preemptMinRuntime": TEXT,
        "reclaimMinRuntime": TEXT,
        "resources": object_of({"cpu": _RESOURCE, "gpu": _RESOURCE, "memory": _RESOURCE}),
    }
)
_QUEUE_STATUS: Final = object_of(
    {
        "childQueues": list_of(TEXT),
        "conditions": list_of(ANYTHING),
        "allocated": QUANTITIES,
        "allocatedNonPreemptible": QUANTITIES,
        "requested": QUANTITIES,
    }
)
_LEVEL: Final = object_of({"nodeLabel": {**TEXT, "minLength": 1, "maxLength": 316}}, ("nodeLabel",))
_TOPOLOGY: Final = object_of(
    {"levels": list_of(_LEVEL, minItems=1, maxItems=16, **{"x-kubernetes-list-type": "atomic", "x-kubernetes-validations": [_IMMUTABLE]})},
    ("levels",),
)
