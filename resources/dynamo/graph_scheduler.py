"""Graph scheduler: whether KAI schedules the pods of a graph on Grove. Where the configuration lists profiles, these decide.

Where it lists none, graphs made from now on have KAI where the cluster serves it; they record it, and keep it.
"""

from collections.abc import Collection, Iterator

from engine.observed import Observed
from engine.paths import get
from engine.report.printable import printable
from resources.base import kinds, labels
from resources.base.fields import mappings
from resources.dynamo.model.form import is_new
from resources.dynamo.model.graph import KAI_QUEUE, InferenceGraph
from resources.dynamo.model.overrides import is_constrained
from resources.dynamo.orchestrator import queue_of, volcano_queue
from resources.dynamo.orchestrator import uses_kai as is_enabled_and_served
from resources.ports.configuration import KAI_SCHEDULER, Configuration, serves_graph_scheduler


def recorded_scheduler(observed: Observed, graph: InferenceGraph, configuration: Configuration) -> str:
    """KAI if it schedules the pods of a graph and the configuration lists no profiles; else empty.

    What the graph records counts first, then what runs, so that what a cluster serves later changes nothing. A new graph has it where the
    cluster serves its kinds.
    """
    if not configuration.graph_scheduler_where_served:
        return ""
    if named := graph.annotations.get(labels.GRAPH_SCHEDULER):
        return KAI_SCHEDULER if named == KAI_SCHEDULER else ""
    if observed.nested:
        return KAI_SCHEDULER if KAI_SCHEDULER in _running_schedulers(observed) else ""
    is_chosen = is_new(observed.root.body) and graph.is_recorded and _may_have_kai(graph, configuration)
    return KAI_SCHEDULER if is_chosen and serves_graph_scheduler(observed.unserved) else ""


def _may_have_kai(graph: InferenceGraph, configuration: Configuration) -> bool:
    """Whether a new graph may have KAI: no service names another one, and no profile is needed for its topology."""
    named: Collection[str] = {service.scheduler for service in graph.services if service.scheduler}
    if named:
        return named == {KAI_SCHEDULER}
    return not (configuration.topology and is_constrained(graph))


def _running_schedulers(observed: Observed) -> Iterator[object]:
    """The schedulers that the cliques of the graph's set name."""
    for nested in observed.nested.values():
        for clique in mappings(get(nested.root.body, ("spec", "template", "cliques"), ())):
            yield get(clique, ("spec", "podSpec", "schedulerName"))


def uses_kai(observed: Observed, configuration: Configuration, scheduler: str) -> bool:
    """Whether KAI schedules the pods: the graph records it or, where profiles are listed, it is served and enabled, or it is the default,
    even where it is not served."""
    if configuration.graph_scheduler_where_served:
        return scheduler == KAI_SCHEDULER
    is_default = configuration.default_scheduler == KAI_SCHEDULER
    return is_default or is_enabled_and_served(configuration.schedulers, observed.unserved)


def may_be_kai(graph: InferenceGraph, configuration: Configuration, *, unprocessed: bool) -> bool:
    """Whether KAI may schedule the pods, whatever the cluster serves. `unprocessed`: nothing about the graph has been decided yet."""
    if configuration.graph_scheduler_where_served:
        return unprocessed or graph.annotations.get(labels.GRAPH_SCHEDULER) == KAI_SCHEDULER
    return KAI_SCHEDULER in configuration.schedulers and volcano_queue(graph, configuration.schedulers) is None


def kai_notes(observed: Observed, graph: InferenceGraph, configuration: Configuration, scheduler: str) -> Iterator[str]:
    """Why KAI does not schedule the pods, although the cluster has queues or the graph names one; of a new graph, that it does."""
    is_listed = KAI_SCHEDULER in configuration.listed_schedulers
    if scheduler == KAI_SCHEDULER and is_new(observed.root.body):
        queue = printable(queue_of(graph))
        yield f"KAI schedules the pods, in its queue {queue}: the cluster has KAI, and the configuration lists no scheduler profiles"
    if is_listed or scheduler == KAI_SCHEDULER:
        if graph.annotations.get(KAI_QUEUE) and kinds.KAI_QUEUE.key in observed.unserved:
            yield f"the annotation {KAI_QUEUE} has no effect: the cluster does not serve {kinds.KAI_QUEUE.group}"
        return
    queues = (live for live in observed.references.of(kinds.KAI_QUEUE.name) if live.id.group == kinds.KAI_QUEUE.group)
    if not graph.annotations.get(KAI_QUEUE) and not any(queues):
        return
    if not configuration.graph_scheduler_where_served:
        yield f"pods are not scheduled by KAI: the configuration does not enable the scheduler profile {KAI_SCHEDULER}"
    elif kinds.KAI_QUEUE.key in observed.unserved:
        yield f"the annotation {KAI_QUEUE} has no effect: the cluster does not serve {kinds.KAI_QUEUE.group}"
    elif not _may_have_kai(graph, configuration):
        yield f"pods are not scheduled by KAI: {_other_scheduler(graph)}"
    elif not is_new(observed.root.body):
        asking = f'the annotation {labels.GRAPH_SCHEDULER}: "{KAI_SCHEDULER}" asks for it, and replaces all of them'
        yield f"pods are not scheduled by KAI, as graphs made from now on are: they keep their scheduler; {asking}"


def _other_scheduler(graph: InferenceGraph) -> str:
    """Why a graph has another scheduler than KAI."""
    if any(service.scheduler for service in graph.services):
        return "a service names another scheduler"
    return f"for topology constraints, the configuration has to list the scheduler profile {KAI_SCHEDULER}"
