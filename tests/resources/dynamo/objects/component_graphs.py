"""What the tests of the component path have in common: the objects of a graph, and what becomes of them on a server."""

from collections.abc import Iterable, Mapping
from typing import Any

from engine.ids import ResourceId
from engine.observed import Live, Slice, slice_of
from engine.observed import live as observed
from engine.resource import Body, Drop, Hold, Resource, Want
from resources.dynamo.model.graph import InferenceGraph
from resources.dynamo.objects.components import component_resources
from resources.ports.configuration import DynamoSettings

NOTHING = slice_of([])


def resources(
    graph: InferenceGraph, lives: Slice = NOTHING, blockers: Mapping[str, str] | None = None, *, was_ready: bool = True, **settings: Any
) -> dict[str, Any]:
    """The resources of a graph by `<kind>/<name>`, in their order."""
    made = component_resources(graph, DynamoSettings(**settings), lives, blockers or {}, was_ready=was_ready)
    return {f"{resource.id.kind}/{resource.id.name}": resource for resource in made}


def dropped(made: Mapping[str, Resource]) -> dict[str, str]:
    """`<kind>/<name>` of the objects to delete -> why."""
    return {key: resource.why for key, resource in made.items() if isinstance(resource, Drop)}


def blocked(made: Mapping[str, Resource]) -> dict[str, str]:
    """`<kind>/<name>` of the objects that wait for somebody -> for what."""
    return {key: resource.why for key, resource in made.items() if isinstance(resource, Hold) and resource.blocked}


def wanted(made: Mapping[str, Resource]) -> list[str]:
    """`<kind>/<name>` of the objects to create or to keep in sync."""
    return [key for key, resource in made.items() if isinstance(resource, Want)]


def template_of(resource: Want | Hold, field: str = "leaderTemplate") -> Any:
    """A pod template of a LeaderWorkerSet, or that of a Deployment."""
    spec = resource.body["spec"]
    return spec["leaderWorkerTemplate"][field] if "leaderWorkerTemplate" in spec else spec["template"]


def live_of(resource: Want, **changes: Any) -> Live:
    """The object that a server made of a resource; `changes` replace top-level fields."""
    return observed({**resource.body, **changes})


def lives_of(made: Iterable[Resource]) -> Slice:
    """The objects that a server made of resources."""
    return slice_of(live_of(resource) for resource in made if isinstance(resource, Want))


def finder(*lives: Live) -> Any:
    """A function that returns the live object of an identity."""
    by_id: dict[ResourceId, Live] = {live.id: live for live in lives}
    return by_id.get


def status(resource: Want, **fields: Any) -> Live:
    """The object of a resource with this status; `available` is the status of its condition `Available`, `conditions` are others."""
    available, others = fields.pop("available", "True"), fields.pop("conditions", ())
    body: Body = {**fields, "conditions": [{"type": "Available", "status": available}, *others]}
    return live_of(resource, status=body)
