"""Graph schedulers: the admission rules for `schedulerName` in the pods of a graph's services. A gang has one scheduler."""

from collections.abc import Iterator, Mapping
from typing import Final

from resources.admission.computable_rules import NOT_ENABLED
from resources.admission.graph_rules import quote, service_path
from resources.base.labels import GRAPH_SCHEDULER
from resources.dynamo.model.graph import ENABLE_GROVE, InferenceGraph
from resources.dynamo.objects.group_scheduler import VOLCANO
from resources.dynamo.orchestrator import volcano_queue
from resources.ports.configuration import KAI_SCHEDULER, Configuration
from resources.schema.issues import ErrorType, Issue, Path
from resources.schema.unknown_fields import instead

ON_GROVE: Final = f'for Grove; without it, {ENABLE_GROVE}: "false" lets each service have its own'
"""Whose rule it is. The manifest does not say that the cluster has no Grove, and which scheduler is right without it."""


def issues(graph: InferenceGraph, configuration: Configuration) -> Iterator[Issue]:
    """The issues of the schedulers that services name."""
    yield from _grove_issues(graph, configuration) if graph.may_use_grove else _component_issues(graph)


def implied_scheduler(graph: InferenceGraph, configuration: Configuration, kept: str = "") -> str:
    """The scheduler of a PodCliqueSet's pods that name none: Volcano if the graph names its queue, KAI where it is enabled, else the
    default. Where no profiles are listed, KAI has them if the graph records it or the other services name it.

    `kept`: what the stored graph records.
    """
    if volcano_queue(graph, configuration.schedulers) is not None:
        return VOLCANO
    if configuration.graph_scheduler_where_served:
        recorded = graph.annotations.get(GRAPH_SCHEDULER) or kept
        named = {service.scheduler for service in graph.services if service.scheduler}
        is_by_kai = recorded == KAI_SCHEDULER or (not recorded and named == {KAI_SCHEDULER})
        return KAI_SCHEDULER if is_by_kai else configuration.default_scheduler
    return KAI_SCHEDULER if KAI_SCHEDULER in configuration.schedulers else configuration.default_scheduler


def _grove_issues(graph: InferenceGraph, configuration: Configuration) -> Iterator[Issue]:
    """All services must have the same scheduler, which must be enabled. One that names none has the implied one."""
    named = {service.name: service.scheduler for service in graph.services if service.scheduler}
    schedulers = {service.name: named.get(service.name) or implied_scheduler(graph, configuration) for service in graph.services}
    reference = next((service for service in schedulers if service not in named), next(iter(named), ""))
    for service, name in named.items():
        if name != schedulers[reference]:
            yield Issue(_path(service), ErrorType.INVALID, _difference(reference, schedulers, named), name)
        elif name not in configuration.schedulers:
            message = f"{NOT_ENABLED}{instead([name], sorted(configuration.schedulers))} ({ON_GROVE})"
            yield Issue(_path(service), ErrorType.INVALID, message, name)


def _difference(reference: str, schedulers: Mapping[str, str], named: Mapping[str, str]) -> str:
    how = "has" if reference in named else "names none and has"
    what = f"must be that of the other services: {quote(reference)} {how} {quote(schedulers[reference])}"
    return f"{what}, and a gang has one scheduler ({ON_GROVE})"


def _component_issues(graph: InferenceGraph) -> Iterator[Issue]:
    for service in graph.services:
        if service.is_multinode and service.scheduler not in ("", VOLCANO) and not graph.is_recorded:
            message = f"must be {VOLCANO} or empty: without Grove, a service on several nodes is scheduled by {VOLCANO}"
            yield Issue(_path(service.name), ErrorType.INVALID, message, service.scheduler)


def _path(service: str) -> Path:
    return *service_path(service), "extraPodSpec", "schedulerName"
