"""Resources: a service's `resources` as those of its main container."""

from typing import Any

from engine.quantity import amount
from engine.resource import Body
from resources.base import names
from resources.dynamo.backends.faults import PodFault
from resources.dynamo.pods.fields import Path, map_at, maps_at

FAILED = "failed to get resources config"


def with_resources(container: Body, service: Body, path: Path) -> Body:
    """The container with the limits, requests and claims of a service over its own.

    GPUs are a limit only, under the name in `limits.gpuType` or as `nvidia.com/gpu`. Raises `PodFault` for a value that is no quantity.
    """
    requested = map_at(service, path, "resources")
    below = (*path, "resources")
    own = map_at(container, (*path, "extraPodSpec", "mainContainer"), "resources")
    limits = {**map_at(own, below, "limits"), **_amounts(requested, below, "limits")}
    requests = {**map_at(own, below, "requests"), **_amounts(requested, below, "requests")}
    claims = [*maps_at(own, below, "claims"), *maps_at(requested, below, "claims")]
    resources = {**own, "limits": limits, "requests": requests, "claims": claims}
    present = {field: value for field, value in resources.items() if value}
    return {**{field: value for field, value in container.items() if field != "resources"}, **({"resources": present} if present else {})}


def _amounts(resources: Body, path: Path, kind: str) -> dict[str, str]:
    """Resource -> quantity, of the limits or the requests."""
    item = map_at(resources, path, kind)
    below = (*path, kind)
    gpu = str(item.get("gpuType") or names.NVIDIA_GPU)
    named = [("cpu", "cpu", item.get("cpu")), ("memory", "memory", item.get("memory"))]
    named += [("gpu", gpu, item.get("gpu"))] if kind == "limits" else []
    amounts = {key: _quantity(value, kind, field, (*below, field)) for field, key, value in named if value not in (None, "")}
    custom = map_at(item, below, "custom")
    return amounts | {key: _quantity(value, kind, key, (*below, "custom", key)) for key, value in custom.items()}


def _quantity(value: Any, kind: str, name: str, path: Path) -> str:
    if not isinstance(value, str | int) or isinstance(value, bool) or amount(str(value)) is None:
        raise PodFault(path, f"{FAILED}: parse {kind} {name} quantity: {value!r:.100} is no quantity")
    return str(value)
