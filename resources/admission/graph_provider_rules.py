"""Graph provider rules: the admission rules and warnings for annotations about what runs a graph, in which queue, and how it is updated.

They are rules from the fourth form of pods on: older graphs may have had any value, without effect.
"""

from collections.abc import Iterator, Mapping
from typing import Final

from resources.dynamo.model.form import PROVIDER, PodForm
from resources.dynamo.model.graph import KAI_QUEUE, VOLCANO_QUEUE, InferenceGraph
from resources.dynamo.objects.podcliqueset import UPDATE_STRATEGIES, UPDATE_STRATEGY
from resources.dynamo.orchestrator import PROVIDERS, volcano_queue
from resources.ports.configuration import VOLCANO_SCHEDULER, Configuration
from resources.schema.issues import ErrorType, Issue, Located, Path

ANNOTATIONS: Final[Path] = ("metadata", "annotations")
DISAGGREGATED_SETS: Final = "nvidia.com/enable-disaggregatedset"
DISAGGREGATED: Final = "disaggregatedset"
NO_DISAGGREGATED_SETS: Final = "DisaggregatedSets are not supported by the engine"
TWO_QUEUES: Final = "kai-scheduler and volcano scheduler integrations cannot both be enabled for Grove"


def issues(graph: InferenceGraph, annotations: Mapping[str, str]) -> Iterator[Issue]:
    """The issues of a graph; `annotations` are those of its object, with the record of what runs it."""
    if not graph.form.includes(PodForm.FOURTH):
        return
    if graph.annotations.get(DISAGGREGATED_SETS, "").lower() == "true":
        yield Issue((*ANNOTATIONS, DISAGGREGATED_SETS), ErrorType.FORBIDDEN, NO_DISAGGREGATED_SETS)
    provider = annotations.get(PROVIDER)
    if provider == DISAGGREGATED:
        yield Issue((*ANNOTATIONS, PROVIDER), ErrorType.FORBIDDEN, NO_DISAGGREGATED_SETS)
    elif provider and provider not in PROVIDERS:
        yield _unsupported(PROVIDER, provider, tuple(PROVIDERS))
    strategy = graph.annotations.get(UPDATE_STRATEGY)
    if strategy and strategy not in UPDATE_STRATEGIES:
        yield _unsupported(UPDATE_STRATEGY, strategy, UPDATE_STRATEGIES)
    if graph.may_use_grove and _named(graph, KAI_QUEUE) and _named(graph, VOLCANO_QUEUE):
        yield Issue((*ANNOTATIONS, VOLCANO_QUEUE), ErrorType.FORBIDDEN, f"{TWO_QUEUES}: {KAI_QUEUE} names a queue as well")


def warnings(graph: InferenceGraph, configuration: Configuration) -> Iterator[str]:
    """Warnings about what has no effect."""
    if _named(graph, VOLCANO_QUEUE) and volcano_queue(graph, configuration.schedulers) is None:
        why = f"the configuration does not enable the scheduler profile {VOLCANO_SCHEDULER}"
        if not graph.may_use_grove:
            why = "without Grove, Volcano schedules services on several nodes in its queue default"
        elif not graph.form.includes(PodForm.FOURTH):
            why = "the graph keeps the scheduler that it was made with"
        yield Located(f"the annotation {VOLCANO_QUEUE} has no effect: {why}", (*ANNOTATIONS, VOLCANO_QUEUE))
    if graph.annotations.get(UPDATE_STRATEGY) and not graph.may_use_grove:
        yield Located(f"the annotation {UPDATE_STRATEGY} has no effect without Grove", (*ANNOTATIONS, UPDATE_STRATEGY))


def _unsupported(key: str, value: str, supported: tuple[str, ...]) -> Issue:
    names = ", ".join(f'"{each}"' for each in supported)
    return Issue((*ANNOTATIONS, key), ErrorType.UNSUPPORTED, f"supported values: {names}", value)


def _named(graph: InferenceGraph, key: str) -> str:
    return graph.annotations.get(key, "").strip()
