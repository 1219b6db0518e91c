"""Graph services: how many replicas and nodes the services of a graph ask for, read as it is written, in either version."""

from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import Struct

from engine.resource import Body
from resources.base.fields import annotations_of, count, mapping, mappings
from resources.base.labels import ENABLE_GROVE, PROVIDER
from resources.base.set_size import GraphSize, ScaledPart, json_bytes
from resources.schema.graph_values import NODE_COUNT, unquoted

NOT_SCALED: Mapping[str, int] = {}


class WrittenService(Struct, frozen=True):
    """A service of a graph."""

    name: str
    replicas: int
    nodes: int

    @property
    def is_multinode(self) -> bool:
        """Whether one replica needs more than one node."""
        return self.nodes > 1


def size_of_graph(graph: Body) -> GraphSize:
    """How large a graph is."""
    provider = annotations_of(graph).get(PROVIDER)
    has_set = provider == "grove" or (provider != "component" and not forbids_grove(graph))
    parts = tuple(ScaledPart(service.name, service.replicas, service.nodes) for service in services(graph))
    return GraphSize(parts, json_bytes(graph.get("spec")), has_set)


def forbids_grove(graph: Body) -> bool:
    """Whether a graph asks to run without Grove."""
    return str(annotations_of(graph).get(ENABLE_GROVE, "")).lower() == "false"


def services(graph: Body, scaled: Mapping[str, int] = NOT_SCALED) -> Iterator[WrittenService]:
    """The services of a graph; those in `scaled` have that number of replicas. What has a wrong shape counts as 0."""
    for name, fields in _entries(mapping(graph.get("spec"))):
        nodes = mapping(fields["multinode"]).get("nodeCount", NODE_COUNT) if isinstance(fields.get("multinode"), Mapping) else 1
        replicas = unquoted(fields.get("replicas"))
        yield WrittenService(name, scaled.get(name, 1 if replicas is None else count(replicas)), count(unquoted(nodes)))


def _entries(spec: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The names and fields of services."""
    yield from ((name, mapping(fields)) for name, fields in mapping(spec.get("services")).items())
    yield from ((str(fields.get("name")), fields) for fields in mappings(spec.get("components")))
