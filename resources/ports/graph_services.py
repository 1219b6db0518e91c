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


def adapted(graph: Body) -> Mapping[str, bool]:
    """The services of a graph, and whether each asks for a scaling adapter."""
    is_beta = str(graph.get("apiVersion")).endswith("/v1beta1")
    marks = {name: fields.get("scalingAdapter") for name, fields in _entries(mapping(graph.get("spec")))}
    return {name: mark is not None if is_beta else bool(mapping(mark).get("enabled")) for name, mark in marks.items()}


def with_replicas(graph: Body, numbers: Mapping[str, int]) -> Body:
    """The graph with these numbers of replicas of some of its services; the graph itself for none."""
    if not numbers:
        return graph

    def numbered(name: str, fields: Any) -> Any:
        return {**fields, "replicas": numbers[name]} if name in numbers and isinstance(fields, Mapping) else fields

    spec = dict(mapping(graph.get("spec")))
    if isinstance(spec.get("services"), Mapping):
        spec["services"] = {name: numbered(name, fields) for name, fields in spec["services"].items()}
    if isinstance(spec.get("components"), list):
        spec["components"] = [numbered(str(mapping(fields).get("name")), fields) for fields in spec["components"]]
    return {**graph, "spec": spec}


def kept_replicas(graph: Body, stored: Body, numbers: Mapping[str, int]) -> Mapping[str, int]:
    """The replicas that a graph is written with whose scaling adapters ask for these numbers: they own them, so that those of the stored
    graph stay. A new service has the number of its adapter, but 0; one that is stored with 0 has what the graph says, or stays so.
    """
    known = {service.name: service.replicas for service in services(stored)}
    written = {name for name, fields in _entries(mapping(graph.get("spec"))) if fields.get("replicas") is not None}
    kept = {name: known.get(name, number) for name, number in numbers.items()}
    return {name: number for name, number in kept.items() if number or (name in known and name not in written)}


def judged_replicas(graph: Body, numbers: Mapping[str, int]) -> Mapping[str, int]:
    """Those of these numbers of scaling adapters that are beyond what the graph asks for: a smaller one breaks no rule."""
    return {service.name: number for service in services(graph) if (number := numbers.get(service.name, 0)) > service.replicas}


def _entries(spec: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The names and fields of services."""
    yield from ((name, mapping(fields)) for name, fields in mapping(spec.get("services")).items())
    yield from ((str(fields.get("name")), fields) for fields in mappings(spec.get("components")))
