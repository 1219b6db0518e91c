"""Reading: graphs from the objects that users write, as admission reads them."""

from typing import Any, cast

from resources.base import kinds
from resources.dynamo.model.graph import InferenceGraph, read_graph
from resources.schema.dynamo import DynamoGraphDeployment
from resources.schema.parse import parse


def graph_in(metadata: dict[str, Any], spec: Any) -> InferenceGraph:
    """The graph with these metadata and this spec. Raises `Rejected` if they do not have their shape."""
    body = {"apiVersion": kinds.DYNAMO_GRAPH.api_version, "kind": kinds.DYNAMO_GRAPH.name, "metadata": metadata, "spec": spec}
    model = cast(DynamoGraphDeployment, parse(kinds.DYNAMO_GRAPH, body, strict=False))
    id = kinds.DYNAMO_GRAPH.id(metadata.get("namespace", "default"), metadata["name"])
    return read_graph(id, model.metadata.annotations or {}, model.spec)
