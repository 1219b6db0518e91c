"""Env: the variables with which a container learns where it stands."""

from collections.abc import Mapping, Sequence
from typing import Any

from resources.base import labels

Variable = Mapping[str, Any]


def literal(name: str, value: str) -> Variable:
    """A variable with a value."""
    return {"name": name, "value": value}


def from_label(name: str, label: str) -> Variable:
    """A variable whose value is a label of the pod."""
    return {"name": name, "valueFrom": {"fieldRef": {"fieldPath": f"metadata.labels['{label}']"}}}


def of_group(pods: int) -> tuple[Variable, ...]:
    """What members of a scaling group are told; `pods` is the number of pods of one replica of the group in the template."""
    return (
        from_label("GROVE_PCSG_NAME", labels.SCALING_GROUP),
        literal("GROVE_PCSG_TEMPLATE_NUM_PODS", str(pods)),
        from_label("GROVE_PCSG_INDEX", labels.GROUP_REPLICA_INDEX),
    )


def of_pod(root: str, replica: int, podclique: str, address: str) -> tuple[Variable, ...]:
    """What every pod is told."""
    return (
        literal("GROVE_PCS_NAME", root),
        literal("GROVE_PCS_INDEX", str(replica)),
        literal("GROVE_PCLQ_NAME", podclique),
        literal("GROVE_HEADLESS_SERVICE", address),
        from_label("GROVE_PCLQ_POD_INDEX", labels.POD_INDEX),
    )


def in_front(pod_spec: Mapping[str, Any], variables: Sequence[Variable]) -> dict[str, Any]:
    """The pod spec with these variables first in every container and init container; the user's of the same names are dropped."""
    dressed = dict(pod_spec)
    for field in ("containers", "initContainers"):
        if pod_spec.get(field):
            dressed[field] = [_with(container, variables) for container in pod_spec[field]]
    return dressed


def _with(container: Mapping[str, Any], variables: Sequence[Variable]) -> dict[str, Any]:
    ours = {variable["name"] for variable in variables}
    theirs = [variable for variable in container.get("env") or () if variable.get("name") not in ours]
    return {**container, "env": [*variables, *theirs]}
