"""Names of a graph's objects. Those of cliques and scaling groups are shortened where the names that Grove derives would be too long; where
that is not enough, that of the PodCliqueSet is, as Dynamo's operator shortens it."""

from typing import Final

from msgspec import Struct

from engine.canonical import token
from resources.dynamo.model.graph import GraphService, InferenceGraph, Role

LIMIT = 45
"""Grove's limit for the sum of the lengths of a set's, a scaling group's and a clique's name, in characters."""
SUFFIXES = {Role.LEADER: "-ldr", Role.WORKER: "-wkr", Role.MAIN: ""}
DIGEST = 5
"""The number of characters of a digest at the end of a shortened name."""
LEAST: Final = 8
"""The smallest number of characters to which the name of a set is shortened."""
FNV_OFFSET: Final = 0x811C9DC5
FNV_PRIME: Final = 0x01000193


class CliqueNames(Struct, frozen=True):
    """The names of one service on the Grove path."""

    base: str
    """The name of the scaling group or, of a single-node service, of its clique: the service's name unless it is too long."""

    def clique(self, role: Role) -> str:
        """The clique of that role."""
        return f"{self.base}{SUFFIXES[role]}"


def set_name(graph: InferenceGraph) -> str:
    """The PodCliqueSet of a graph: the graph's name or, where no clique would fit beside it, the one that Dynamo's operator gives it."""
    return graph.memo.recall("set name", (), lambda: _set_name(graph))


def _set_name(graph: InferenceGraph) -> str:
    """Dynamo's operator leaves as much room as the full names of the cliques need. What scales a service does not change the name.
    With all services at 0 replicas it is the name of the set that has all of them."""
    services = [service for service in graph.services if graph.spec.services[service.name].replicas != 0] or graph.services
    if all(len(graph.name) + _length(service, min(len(service.key), DIGEST)) <= LIMIT for service in services):
        return graph.name
    room = max(LIMIT - max(_length(service, len(service.key)) for service in services), LEAST)
    return f"{graph.name[: room - DIGEST]}-{_fnv(graph.name) & 0xFFFF:04x}"


def clique_names(graph: InferenceGraph, service: GraphService) -> CliqueNames:
    """The names of a service's cliques."""
    return CliqueNames(base_name(set_name(graph), service.key, is_multinode=service.is_multinode))


def base_name(of_set: str, key: str, *, is_multinode: bool) -> str:
    """The scaling group or, of a single-node service, the clique of a service in a set of that name. `key`: the service in lower case."""
    room = LIMIT - len(of_set)
    return shortened(key, (room - len(SUFFIXES[Role.LEADER])) // 2 if is_multinode else room)


def _length(service: GraphService, name: int) -> int:
    """What the names of a service's cliques take of the limit, if its name has so many characters."""
    return 2 * name + len(SUFFIXES[Role.LEADER]) if service.is_multinode else name


def _fnv(text: str) -> int:
    """The digest FNV-1a of 32 bits."""
    digest = FNV_OFFSET
    for byte in text.encode():
        digest = (digest ^ byte) * FNV_PRIME % 2**32
    return digest


def shortened(name: str, limit: int) -> str:
    """The name or, if it is longer than `limit`, its beginning and five characters of its digest; those alone where no more fit."""
    if len(name) <= limit:
        return name
    beginning = name[: max(limit - DIGEST - 1, 0)].rstrip("-.")
    if not beginning:
        return token(name, DIGEST)
    return f"{beginning}-{token(name, DIGEST)}"


def component(graph: InferenceGraph, service: GraphService) -> str:
    """`<graph>-<service>` in lower case: the Deployment and the Services of a service, and the SSH Secret's `{component}`."""
    return f"{graph.name}-{service.key}".lower()


def instance(graph: InferenceGraph, service: GraphService, index: int) -> str:
    """The LeaderWorkerSet and the PodGroup of one replica of a multinode service."""
    return f"{component(graph, service)}-{index}"


def grove_target(graph: InferenceGraph, service: GraphService) -> str:
    """The PodCliqueScalingGroup or, of a single-node service, the PodClique that Grove makes of a service."""
    return f"{set_name(graph)}-0-{clique_names(graph, service).base}"
