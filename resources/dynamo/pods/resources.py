"""Resources: a service's `resources` as those of its main container."""

from typing import Literal

from engine.quantity import amount
from engine.resource import Body
from resources.base import names
from resources.dynamo.backends.faults import PodFault
from resources.dynamo.model.graph import GraphService
from resources.dynamo.pods.fields import Path, map_at, maps_at
from resources.schema.dynamo import ServiceResources

NOTHING = ServiceResources()
FAILED = "failed to get resources config"


def with_resources(container: Body, service: GraphService, path: Path) -> Body:
    """The container with the limits, requests and claims of a service over its own.

    GPUs are a limit only, under the name in `limits.gpuType` or as `nvidia.com/gpu`. Raises `PodFault` for a value that is no quantity.
    """
    requested = service.spec.resources or NOTHING
    below = (*path, "resources")
    own = map_at(container, (*path, "extraPodSpec", "mainContainer"), "resources")
    limits = {**map_at(own, below, "limits"), **_amounts(requested, below, "limits")}
    requests = {**map_at(own, below, "requests"), **_amounts(requested, below, "requests")}
    claims = [*maps_at(own, below, "claims"), *requested.claims]
    resources = {**own, "limits": limits, "requests": requests, "claims": claims}
    present = {field: value for field, value in resources.items() if value}
    return {**{field: value for field, value in container.items() if field != "resources"}, **({"resources": present} if present else {})}


def _amounts(resources: ServiceResources, path: Path, kind: Literal["limits", "requests"]) -> dict[str, str]:
    """Resource -> quantity, of the limits or the requests."""
    item = getattr(resources, kind)
    if item is None:
        return {}
    below = (*path, kind)
    named = [("cpu", "cpu", item.cpu), ("memory", "memory", item.memory)]
    named += [("gpu", item.gpu_type or names.NVIDIA_GPU, item.gpu)] if kind == "limits" else []
    amounts = {key: _quantity(value, kind, field, (*below, field)) for field, key, value in named if value}
    return amounts | {key: _quantity(value, kind, key, (*below, "custom", key)) for key, value in item.custom.items()}


def _quantity(value: str, kind: str, name: str, path: Path) -> str:
    if amount(value) is None:
        raise PodFault(path, f"{FAILED}: parse {kind} {name} quantity: {value!r:.100} is no quantity")
    return value
