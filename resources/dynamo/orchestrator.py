"""Orchestrator choice: what runs a graph, given what the cluster serves."""

from collections.abc import Collection

from msgspec import Struct

from resources.base import kinds
from resources.dynamo.model.graph import ENABLE_GROVE, KAI_QUEUE, InferenceGraph, Orchestrator
from resources.ports.configuration import KAI_SCHEDULER

NOT_AVAILABLE = "no multinode orchestrator available"
DEFAULT_QUEUE = "dynamo"
"""The KAI queue of graphs that name none."""


class Choice(Struct, frozen=True):
    """What runs a graph, or why nothing can."""

    orchestrator: Orchestrator | None
    error: str = ""


def choose(graph: InferenceGraph, unserved: Collection[str]) -> Choice:
    """The orchestrator of a graph; `unserved` are the keys of the kinds that the cluster does not serve.

    Grove runs every graph if it is served and the graph does not disable it. Otherwise services on several nodes need LeaderWorkerSet and
    Volcano, and services on one node need nothing.
    """
    if graph.may_use_grove and kinds.PODCLIQUESET.key not in unserved:
        return Choice(Orchestrator.GROVE)
    missing = [kind.group for kind in (kinds.LEADER_WORKER_SET, kinds.VOLCANO_POD_GROUP) if kind.key in unserved]
    if not graph.is_multinode or not missing:
        return Choice(Orchestrator.COMPONENTS)
    unserved_grove, disabled = f"the cluster does not serve {kinds.PODCLIQUESET.group}", f'Grove is disabled by {ENABLE_GROVE}: "false"'
    grove = unserved_grove if graph.may_use_grove else disabled
    return Choice(None, f"{NOT_AVAILABLE}: {grove}; LeaderWorkerSets need {' and '.join(missing)}, which it does not serve")


def queue_of(graph: InferenceGraph) -> str:
    """The KAI queue that the graph names, else the default one."""
    return graph.annotations.get(KAI_QUEUE, "").strip() or DEFAULT_QUEUE


def uses_kai(schedulers: Collection[str], unserved: Collection[str]) -> bool:
    """Whether pods of Grove are scheduled by KAI: the cluster serves its queues and the configuration enables its profile."""
    return KAI_SCHEDULER in schedulers and kinds.KAI_QUEUE.key not in unserved


def queue_missing(queue: str) -> str:
    """The reason why nothing is created for a graph whose queue does not exist."""
    return f"queue '{queue}' not found in cluster. Ensure the queue exists before using {KAI_SCHEDULER}"
