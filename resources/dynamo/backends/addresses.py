"""Addresses: how the pods of a multinode service reach one another: the leader's host, the workers' hosts, and a worker's rank.

A pod learns its hosts when it starts, from variables that its orchestrator adds. A shell line has them as `$NAME`; outside a shell,
the kubelet replaces `$(NAME)`.
"""

from collections.abc import Callable
from typing import Protocol

from msgspec import Struct

from resources.dynamo.model.graph import GraphService, InferenceGraph, Orchestrator, Role
from resources.dynamo.model.names import clique_names

Notation = Callable[[str], str]
"""How the value of a variable is written."""


def in_shell(variable: str) -> str:
    """The value of a variable in a shell line."""
    return f"${variable}"


def by_kubelet(variable: str) -> str:
    """The value of a variable in a word of `command` or `args`."""
    return f"$({variable})"


class NodeAddresses(Protocol):
    """The addresses of the nodes of one replica."""

    @property
    def rank(self) -> str:
        """The rank of a worker, from 1, in a shell line."""

    @property
    def rank_word(self) -> str:
        """The same as a word that the kubelet expands; empty where only a shell can compute it."""

    @property
    def rank_term(self) -> str:
        """The same within the arithmetic of a shell, `$((…))`. Without a dollar sign: a kubelet would take `$(` for its own."""

    @property
    def rank_variable(self) -> str:
        """The variable of the orchestrator that has the rank of a pod, the leader's as well."""

    @property
    def needs_name_wait(self) -> bool:
        """Whether the names of workers may not be known yet when the leader starts."""

    def leader(self, notation: Notation) -> str:
        """The leader's host."""

    def workers(self, count: int) -> list[str]:
        """The workers' hosts in rank order, for a shell line."""


class GroveAddresses(Struct, frozen=True):
    """Hosts of the cliques of a scaling group, from the variables of Grove."""

    leader_clique: str
    worker_clique: str
    rank: str = "$((GROVE_PCLQ_POD_INDEX + 1))"
    rank_word: str = ""
    rank_term: str = "(GROVE_PCLQ_POD_INDEX + 1)"
    rank_variable: str = "GROVE_PCSG_POD_INDEX"
    needs_name_wait: bool = False

    def leader(self, notation: Notation) -> str:
        """The leader's host."""
        return self._host(notation, self.leader_clique, 0)

    def workers(self, count: int) -> list[str]:
        """The workers' hosts in rank order, for a shell line."""
        return [self._host(in_shell, self.worker_clique, index) for index in range(count)]

    def _host(self, notation: Notation, clique: str, index: int) -> str:
        group = f"{notation('GROVE_PCSG_NAME')}-{notation('GROVE_PCSG_INDEX')}"
        return f"{group}-{clique}-{index}.{notation('GROVE_HEADLESS_SERVICE')}"


class LwsAddresses(Struct, frozen=True):
    """Hosts of a LeaderWorkerSet. Only the leader's is a variable; a worker's has `-<rank>` before its first dot."""

    rank: str = "$LWS_WORKER_INDEX"
    rank_word: str = "$(LWS_WORKER_INDEX)"
    rank_term: str = "LWS_WORKER_INDEX"
    rank_variable: str = "LWS_WORKER_INDEX"
    needs_name_wait: bool = True

    def leader(self, notation: Notation) -> str:
        """The leader's host."""
        return notation("LWS_LEADER_ADDRESS")

    def workers(self, count: int) -> list[str]:
        """The workers' hosts in rank order, for a shell line."""
        return [f"${{LWS_LEADER_ADDRESS%%.*}}-{rank}.${{LWS_LEADER_ADDRESS#*.}}" for rank in range(1, count + 1)]


def addresses_of(graph: InferenceGraph, service: GraphService, orchestrator: Orchestrator) -> NodeAddresses:
    """The addresses of a multinode service."""
    if orchestrator is Orchestrator.COMPONENTS:
        return LwsAddresses()
    names = clique_names(graph, service)
    return GroveAddresses(names.clique(Role.LEADER).lower(), names.clique(Role.WORKER).lower())
