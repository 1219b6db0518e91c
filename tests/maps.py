"""A scheduler with a topology of its own: a Map, whose rows are the keys of a binding's levels and cannot be changed."""

from typing import Any

from engine.ids import Kind
from engine.observed import Live
from engine.paths import get
from engine.resource import Body, Policy
from resources.base.kinds import TOPOLOGY_BINDING
from resources.ports.scheduler import Levels, Scheduler, TopologyObjects

MAP = Kind("maps.example.com", "v1", "Map", "maps", namespaced=False)


class Maps(TopologyObjects):
    """The map of each binding."""

    kind = MAP
    policy = Policy(exact=(("spec", "rows"),), immutable=(("spec", "rows"),))

    def object_for(self, levels: Levels) -> Body:
        """A map of that name."""
        return map_of(levels.binding, *levels.keys)

    def drift(self, name: str, live: Live | None, levels: Levels) -> str:
        """Whether its rows are the keys."""
        if live is None:
            return f"no Map {name}"
        return "" if get(live.body, ("spec", "rows")) == list(levels.keys) else "the rows are others"

    def conflict(self, name: str, levels: Levels) -> str:
        """Whose it is not."""
        return f"Map {name} is not of {levels.binding}"


class Mapper(Scheduler):
    """The back end `mapper`."""

    name = "mapper"
    topologies: TopologyObjects = Maps()


def map_of(name: str, *rows: str, **metadata: Any) -> dict[str, Any]:
    """A Map."""
    return {"apiVersion": MAP.api_version, "kind": MAP.name, "metadata": {"name": name, **metadata}, "spec": {"rows": list(rows)}}


def binding(name: str, *keys: str, **references: str) -> dict[str, Any]:
    """A ClusterTopologyBinding with these levels, and the objects of schedulers that somebody else keeps."""
    levels = [{"domain": key.rpartition("/")[2], "key": key} for key in keys]
    named = [{"schedulerName": scheduler, "topologyReference": reference} for scheduler, reference in references.items()]
    spec = {"levels": levels} | ({"schedulerTopologyBindings": named} if named else {})
    return {"apiVersion": TOPOLOGY_BINDING.api_version, "kind": TOPOLOGY_BINDING.name, "metadata": {"name": name}, "spec": spec}


def definition() -> dict[str, Any]:
    """The CustomResourceDefinition of maps."""
    rows = {"type": "array", "items": {"type": "string"}}
    spec = {"type": "object", "properties": {"rows": rows}}
    version = {
        "name": MAP.version,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}},
    }
    names = {"plural": MAP.plural, "singular": "map", "kind": MAP.name, "listKind": "MapList"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{MAP.plural}.{MAP.group}"},
        "spec": {"group": MAP.group, "scope": "Cluster", "names": names, "versions": [version]},
    }
