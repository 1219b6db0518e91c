"""Names of a graph's objects. Names of cliques and scaling groups are shortened where the names that Grove derives would be too long."""

from msgspec import Struct

from engine.canonical import token
from resources.dynamo.model.graph import GraphService, InferenceGraph, Role

LIMIT = 45
"""Grove's limit for the sum of the lengths of a set's, a scaling group's and a clique's name, in characters."""
SUFFIXES = {Role.LEADER: "-ldr", Role.WORKER: "-wkr", Role.MAIN: ""}
DIGEST = 5
"""The number of characters of a digest at the end of a shortened name."""


class CliqueNames(Struct, frozen=True):
    """The names of one service on the Grove path."""

    base: str
    """The name of the scaling group or, of a single-node service, of its clique: the service's name unless it is too long."""

    def clique(self, role: Role) -> str:
        """The clique of that role."""
        return f"{self.base}{SUFFIXES[role]}"


def clique_names(graph: InferenceGraph, service: GraphService) -> CliqueNames:
    """The names of a service's cliques. If they do not fit even when shortened, the shortest."""
    room = LIMIT - len(graph.name)
    limit = (room - len(SUFFIXES[Role.LEADER])) // 2 if service.is_multinode else room
    return CliqueNames(shortened(service.key, limit))


def combined_length(graph: InferenceGraph, service: GraphService) -> int:
    """The sum that is limited, for the full names of a service."""
    length = len(service.name)
    return len(graph.name) + (2 * length + len(SUFFIXES[Role.LEADER]) if service.is_multinode else length)


def fits(graph: InferenceGraph, service: GraphService) -> bool:
    """Whether the names of a service can be shortened so that they fit."""
    names = clique_names(graph, service).base
    return len(graph.name) + (2 * len(names) + len(SUFFIXES[Role.LEADER]) if service.is_multinode else len(names)) <= LIMIT


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
    return f"{graph.name}-0-{clique_names(graph, service).base}"
