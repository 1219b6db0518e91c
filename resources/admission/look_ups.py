"""Look-ups: which objects the rules read besides the object they judge, and which of their fields."""

from collections.abc import Iterator
from typing import Any, Final

from msgspec import Struct

from engine.ids import Kind
from engine.resource import Body
from resources.admission.managed_rules import DISABLE_PROTECTION
from resources.base.fields import annotations_of, mapping
from resources.base.kinds import DYNAMO_GRAPH, PODCLIQUESET, TOPOLOGY_BINDING
from resources.base.set_size import GraphSize, SetSize, size_of
from resources.ports.configuration import Configuration
from resources.ports.references import graph_size

IDENTITY: Final = ("name", "namespace", "uid", "resourceVersion")
"""The metadata that is always kept."""


SIZE: Final = "engine.grove.io/size"
"""The key of a kept set under which its `SetSize` is; of a graph its `GraphSize`."""


class LookUp(Struct, frozen=True):
    """One kind that the rules read."""

    kind: Kind
    fields: tuple[str, ...] = ("spec", "status")
    """The top-level fields that they read."""
    annotations: tuple[str, ...] = ()
    sized: bool = False
    """Whether the rules read how large it is: it is kept under `SIZE`."""

    def kept(self, body: Body) -> Body:
        """What the rules read of an object: for each object that is kept in memory, as little as possible."""
        metadata = mapping(body.get("metadata"))
        identity: dict[str, Any] = {key: metadata[key] for key in IDENTITY if key in metadata}
        annotations = annotations_of(body) if self.annotations else {}
        if chosen := {key: annotations[key] for key in self.annotations if key in annotations}:
            identity["annotations"] = chosen
        kept = {key: body[key] for key in self.fields if key in body}
        if self.sized:
            kept[SIZE] = _size(self.kind, body, str(metadata.get("namespace") or ""))
        return {"apiVersion": self.kind.api_version, "kind": self.kind.name, "metadata": identity, **kept}


SETS: Final = LookUp(PODCLIQUESET, (), (DISABLE_PROTECTION,), sized=True)
"""All sets: those that managed objects belong to, and those of a namespace, whose sizes count together."""
GRAPHS: Final = LookUp(DYNAMO_GRAPH, (), sized=True)
"""All graphs: those without a set count in their namespace, and their scaling adapters are judged by their services."""
BINDINGS: Final = LookUp(TOPOLOGY_BINDING, ("spec",))


def _size(kind: Kind, body: Body, namespace: str) -> SetSize | GraphSize:
    """The size of a set or a graph."""
    return graph_size(body) if kind == DYNAMO_GRAPH else size_of(body, namespace)


def look_ups(configuration: Configuration) -> tuple[LookUp, ...]:
    """What the rules read with this configuration, each kind once."""
    return tuple({look_up.kind: look_up for look_up in _needed(configuration)}.values())


def _needed(configuration: Configuration) -> Iterator[LookUp]:
    if configuration.topology:
        yield BINDINGS
    yield SETS
    if configuration.dynamo.enabled:
        yield GRAPHS
    for scheduler in configuration.schedulers.values():
        yield from map(LookUp, scheduler.referenced_kinds)
