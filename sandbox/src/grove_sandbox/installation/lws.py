"""LWS: what the installation of the LeaderWorkerSet controller, v0.9, creates.

Its webhooks are part of the definition: the defaults that they fill in are defaults of the schema, and what they reject of the size and of
the name, the schema rejects. Pod templates are kept as they are: a real definition has the schema of pods in it.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from grove_sandbox.installation.custom_kind import (
    ANYTHING,
    COUNT,
    INT_OR_TEXT,
    TEXT,
    TIME,
    Schema,
    choice,
    definition,
    list_of,
    object_of,
)
from grove_sandbox.product import Kind, kinds

_ROLLING: Final = {"maxUnavailable": 1, "maxSurge": 0, "partition": 0}
_NAME: Final = {"type": "string", "maxLength": 63, "pattern": "^[a-z]([-a-z0-9]*[a-z0-9])?$"}
"""Of a DNS-1035 label: the headless Service has the name, too."""


_MOST: Final = 1_000_000
"""Of groups, and of pods in one."""


def installation() -> Iterable[tuple[Kind, Mapping[str, Any]]]:
    """All objects in the order in which they can be created."""
    yield (
        kinds.CRD,
        definition(
            kinds.LEADER_WORKER_SET,
            object_of({"metadata": object_of({"name": _NAME}), "spec": _SPEC, "status": _STATUS}, ("spec",)),
            short_names=("lws",),
            columns=(
                ("Ready", "integer", ".status.readyReplicas"),
                ("Desired", "integer", ".spec.replicas"),
                ("Up-to-date", "integer", ".status.updatedReplicas"),
                ("Age", "date", ".metadata.creationTimestamp"),
            ),
            scale={
                "specReplicasPath": ".spec.replicas",
                "statusReplicasPath": ".status.replicas",
                "labelSelectorPath": ".status.hpaPodSelector",
            },
        ),
    )


def _pod_template() -> Schema:
    texts = {"type": "object", "additionalProperties": TEXT}
    metadata = {**ANYTHING, "properties": {"labels": texts, "annotations": texts}}
    environment = list_of({**ANYTHING, "required": ["name"], "properties": {"name": TEXT}})
    containers = list_of({**ANYTHING, "required": ["name"], "properties": {"name": TEXT, "env": environment}})
    spec = {**ANYTHING, "required": ["containers"], "properties": {"containers": containers, "initContainers": containers}}
    return object_of({"metadata": metadata, "spec": spec}, ("spec",))


_TEMPLATE: Final = object_of(
    {
        "leaderTemplate": _pod_template(),
        "workerTemplate": _pod_template(),
        "size": {**COUNT, "default": 1, "minimum": 1, "maximum": _MOST},
        "restartPolicy": choice(
            "Default", "RecreateGroupOnPodRestart", "RecreateGroupAfterStart", "None", default="RecreateGroupOnPodRestart"
        ),
        "subGroupPolicy": object_of(
            {"subGroupPolicyType": choice("LeaderWorker", "LeaderExcluded", default="LeaderWorker"), "subGroupSize": COUNT}
        ),
        "volumeClaimTemplates": list_of(ANYTHING),
        "persistentVolumeClaimRetentionPolicy": object_of({"whenDeleted": TEXT, "whenScaled": TEXT}),
    },
    ("workerTemplate",),
)
_ROLLOUT: Final = object_of(
    {
        "type": choice("RollingUpdate", default="RollingUpdate"),
        "rollingUpdateConfiguration": object_of(
            {
                "maxUnavailable": {**INT_OR_TEXT, "default": 1},
                "maxSurge": {**INT_OR_TEXT, "default": 0},
                "partition": {**COUNT, "default": 0, "minimum": 0},
            },
            default=_ROLLING,
        ),
    },
    ("type",),
    default={"type": "RollingUpdate", "rollingUpdateConfiguration": _ROLLING},
)
_SPEC: Final = object_of(
    {
        "replicas": {**COUNT, "default": 1, "minimum": 0, "maximum": _MOST},
        "leaderWorkerTemplate": _TEMPLATE,
        "rolloutStrategy": _ROLLOUT,
        "startupPolicy": choice("LeaderCreated", "LeaderReady", default="LeaderCreated"),
        "networkConfig": object_of(
            {"subdomainPolicy": choice("Shared", "UniquePerReplica")}, ("subdomainPolicy",), default={"subdomainPolicy": "Shared"}
        ),
    },
    ("leaderWorkerTemplate",),
)
_CONDITION: Final = object_of(
    {
        "type": TEXT,
        "status": choice("True", "False", "Unknown"),
        "reason": TEXT,
        "message": TEXT,
        "lastTransitionTime": TIME,
        "observedGeneration": {"type": "integer", "format": "int64"},
    },
    ("lastTransitionTime", "message", "reason", "status", "type"),
)
_STATUS: Final = object_of(
    {
        "conditions": list_of(_CONDITION, **{"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]}),
        "hpaPodSelector": TEXT,
        "observedGeneration": {"type": "integer", "format": "int64"},
        "readyReplicas": COUNT,
        "replicas": COUNT,
        "updatedReplicas": COUNT,
    }
)
