"""What Grove's operator adds to pod specs: variables, claims of ComputeDomains, shared claims."""

from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import Any

Body = dict[str, Any]
GPU = "nvidia.com/gpu"


def has_gpus(spec: Mapping[str, Any]) -> bool:
    """Whether a container of the pod requests GPUs."""
    return any(container_has_gpus(container) for name in ("containers", "initContainers") for container in spec.get(name) or ())


def container_has_gpus(container: Mapping[str, Any]) -> bool:
    """Whether the container requests GPUs."""
    resources = container.get("resources") or {}
    return any(str((resources.get(name) or {}).get(GPU, "0")) != "0" for name in ("limits", "requests"))


def from_label(name: str, label: str) -> Body:
    """A variable with the value of a label."""
    return {"name": name, "valueFrom": {"fieldRef": {"fieldPath": f"metadata.labels['{label}']"}}}


def with_env(spec: Mapping[str, Any], variables: Sequence[Body]) -> Body:
    """The pod spec with these variables first in every container."""
    names = {variable["name"] for variable in variables}

    def change(container: Mapping[str, Any]) -> Body:
        rest = [variable for variable in container.get("env") or () if variable["name"] not in names]
        return {**container, "env": [*deepcopy(list(variables)), *rest]}

    return _with_containers(spec, change)


def with_channel(spec: Mapping[str, Any], template: str) -> Body:
    """The pod spec with the claim of a ComputeDomain, if it requests GPUs."""
    if not has_gpus(spec):
        return dict(spec)

    def change(container: Mapping[str, Any]) -> Body:
        return _claiming(container, ["mnnvl-claim"]) if container_has_gpus(container) else dict(container)

    claim = {"name": "mnnvl-claim", "resourceClaimTemplateName": template}
    return {**_with_containers(spec, change), "resourceClaims": [*(spec.get("resourceClaims") or ()), claim]}


def with_claims(spec: Mapping[str, Any], names: Sequence[str]) -> Body:
    """The pod spec with shared claims, which every container uses."""
    if not names:
        return dict(spec)
    entries = [{"name": name, "resourceClaimName": name} for name in names]
    return {
        **_with_containers(spec, lambda container: _claiming(container, names)),
        "resourceClaims": [*(spec.get("resourceClaims") or ()), *entries],
    }


def _claiming(container: Mapping[str, Any], names: Sequence[str]) -> Body:
    resources = container.get("resources") or {}
    claims = [*(resources.get("claims") or ()), *({"name": name} for name in names)]
    return {**container, "resources": {**resources, "claims": claims}}


def _with_containers(spec: Mapping[str, Any], change: Any) -> Body:
    fields = [name for name in ("containers", "initContainers") if spec.get(name)]
    return {**spec, **{name: [change(container) for container in spec[name]] for name in fields}}
