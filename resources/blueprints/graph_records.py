"""Graph records: what is decided once for a graph and then kept: the form of its pods, and what runs it. It has them as annotations."""

from collections.abc import Iterator, Mapping
from typing import Final

from engine.memo import is_equal
from engine.observed import Observed
from engine.paths import get
from engine.report.printable import printable
from engine.resource import Body
from resources.base import kinds, labels
from resources.base.fields import GROUPS, annotations_of, mapping, mappings
from resources.dynamo.backends.executor import (
    BACKEND,
    Executor,
    ExecutorChoice,
    annotation_of,
    distributed_services,
    executor_of,
    executor_record,
    running_executor,
)
from resources.dynamo.model.form import PROVIDER, PodForm, form_of, is_new
from resources.dynamo.model.framework import Framework
from resources.dynamo.model.graph import ENABLE_GROVE, VERSIONS, GraphService, InferenceGraph, Orchestrator, Role, is_beta_as_written
from resources.dynamo.model.names import SUFFIXES
from resources.dynamo.model.runtime import depends_on_its_version
from resources.dynamo.objects.labels import ServiceTypes, types_shown
from resources.dynamo.objects.pod_template import COMPONENT
from resources.dynamo.objects.spread import spread_notes
from resources.dynamo.orchestrator import PROVIDERS
from resources.dynamo.pods.defaults import first_version_shown, standard_variables
from resources.dynamo.versions.api_versions import served_as
from resources.model import withdrawn
from resources.ports.configuration import ONLY, DynamoSettings

UNSHARED: Final = "addresses of the configuration and SSH keys in every container"
"""What graphs before the fifth form lack."""
_RECORDED: Final = tuple(form for form in PodForm if form is not PodForm.FIRST)
"""The forms that the engine records by itself."""
_COMPONENT_TEMPLATES: Final = {
    kinds.LEADER_WORKER_SET.name: ("spec", "leaderWorkerTemplate", "leaderTemplate", "spec"),
    kinds.DEPLOYMENT.name: ("spec", "template", "spec"),
}
"""Kind of what runs a service without Grove -> the path of the pod spec of its leader, or only pod."""
_KEPT: Final = {
    ENABLE_GROVE: "; what runs the graph stays: another orchestrator replaces all of its pods, which sync does with --allow-replace only",
    "grove.io/auto-mnnvl": "; its PodCliqueSet keeps it, for it cannot change",
}


def unrecorded_form(observed: Observed) -> PodForm:
    """The form of the pods of a graph that records none: the current one if it is new, else that of what runs its services.

    What runs carries the record as well, so that a graph that has lost its annotations keeps the form of its pods.
    """
    if not observed.root.uid or is_new(observed.root.body):
        return PodForm.CURRENT
    return next((form for form in map(form_of, map(annotations_of, _runners(observed))) if form is not PodForm.FIRST), PodForm.FIRST)


def first_version(observed: Observed, annotations: Mapping[str, str], running: str) -> str:
    """The version in which an existing graph without a record of it was first written: the one that what runs shows (`running_version`),
    else that of the stored graph. Empty if it is the one in which these annotations say that it is written now."""
    stored = observed.root
    first = running or VERSIONS[is_beta_as_written(served_as(stored.body), annotations_of(stored.body))]
    body = stored.body if observed.proposal is None else observed.proposal
    return "" if first == VERSIONS[is_beta_as_written(served_as(body), annotations)] else first


def running_version(observed: Observed) -> str:
    """The version in which a graph was first written, as the pod templates of what runs show it; empty if they show none, or both."""
    shown = {version for pod in _templates(observed) if (version := first_version_shown(pod))}
    return shown.pop() if len(shown) == 1 else ""


def running_executors(observed: Observed) -> str:
    """By what the nodes of each vLLM service join that runs, as a graph records it; empty if nothing runs on several nodes."""
    executors: dict[str, Executor] = {}
    for name, pod in _leaders(observed):
        executor = running_executor(pod)
        if executor is not None:
            executors.setdefault(name, executor)
    return ",".join(f"{name}={executor}" for name, executor in executors.items())


def running_types(observed: Observed) -> Mapping[str, ServiceTypes]:
    """The types that the pods of each service show which run: by the name of its clique or scaling group, or its own in lower case."""
    types: dict[str, ServiceTypes] = {}
    for nested in observed.nested.values():
        groups = {group.get("name") for group in mappings(get(nested.root.body, GROUPS, ()))}
        for clique in mappings(get(nested.root.body, ("spec", "template", "cliques"), ())):
            name = str(clique.get("name"))
            group = name.removesuffix(SUFFIXES[Role.LEADER])
            types[group if group in groups else name] = types_shown(mapping(clique.get("labels")))
    for kind, path in _COMPONENT_TEMPLATES.items():
        for live in observed.slice(ONLY).of(kind):
            pod = mapping(get(live.body, path[:-1], {}))
            types[live.labels.get(COMPONENT, "").lower()] = types_shown(mapping(mapping(pod.get("metadata")).get("labels")))
    return types


def _leaders(observed: Observed) -> Iterator[tuple[str, Body]]:
    """The services that run on several nodes, by the name of their scaling group or their own, with the pod specs of their leaders."""
    suffix = SUFFIXES[Role.LEADER]
    for nested in observed.nested.values():
        for clique in mappings(get(nested.root.body, ("spec", "template", "cliques"), ())):
            if str(clique.get("name")).endswith(suffix):
                yield str(clique["name"]).removesuffix(suffix), mapping(get(clique, ("spec", "podSpec"), {}))
    seen: set[str] = set()
    for live in observed.slice(ONLY).of(kinds.LEADER_WORKER_SET.name):
        name = live.labels.get(COMPONENT, "").lower()
        if name not in seen:
            seen.add(name)
            yield name, mapping(get(live.body, _COMPONENT_TEMPLATES[live.id.kind], {}))


def _templates(observed: Observed) -> Iterator[Body]:
    """The pod specs of what runs the services of a graph, without the workers of LeaderWorkerSets, which have no probes."""
    for nested in observed.nested.values():
        for clique in mappings(get(nested.root.body, ("spec", "template", "cliques"), ())):
            yield mapping(get(clique, ("spec", "podSpec"), {}))
    for kind, path in _COMPONENT_TEMPLATES.items():
        for live in observed.slice(ONLY).of(kind):
            yield mapping(get(live.body, path, {}))


def _runners(observed: Observed) -> Iterator[Body]:
    """What runs the services of a graph and carries the form of their pods."""
    yield from (nested.root.body for nested in observed.nested.values())
    yield from (live.body for kind in _COMPONENT_TEMPLATES for live in observed.slice(ONLY).of(kind))


def records(graph: InferenceGraph, orchestrator: Orchestrator | None, scheduler: str = "") -> Mapping[str, str]:
    """The annotations by which a graph records what is decided; none in the first form, so that an upgrade writes nothing.

    `scheduler`: as `graph_scheduler.recorded_scheduler`.
    """
    if not graph.is_recorded:
        return {}
    provider = next((name for name, each in PROVIDERS.items() if each is orchestrator), "")
    executors = executor_record(graph) if graph.knows_ranks else ""
    version = VERSIONS[graph.began_as_v1beta1] if depends_on_its_version(graph) else ""
    own = {PROVIDER: provider, labels.VLLM_EXECUTORS: executors, labels.GRAPH_SCHEDULER: scheduler, labels.WRITTEN_AS: version}
    return {labels.POD_FORM: graph.form.value, **{key: value for key, value in own.items() if value}}


def form_notes(observed: Observed, graph: InferenceGraph, settings: DynamoSettings) -> Iterator[str]:
    """That the pods of a graph keep their form although new graphs have another one, and how to ask for that one.

    Only the services are named whose pods would be others.
    """
    if graph.form is PodForm.CURRENT or _asks_for_its_form(observed):
        return
    yield from _adapter_notes(graph)
    distributed = [] if graph.knows_ranks else [service.name for service in graph.services if service.is_multinode]
    if distributed:
        names, missing = distributed, "mp and data parallelism of vLLM" if graph.is_recorded else "different nodes for pods of a replica"
    else:
        names, missing = [service.name for service in graph.services if _has_unshared(service, settings)], UNSHARED
    if not names:
        return
    yield (
        f"the pods of {', '.join(map(printable, names))} keep their form, without what new graphs have ({missing}, among others); "
        f'the annotation {labels.POD_FORM}: "{PodForm.CURRENT}" asks for it, and replaces pods that differ'
    )
    if distributed and any(annotation_of(graph, service, BACKEND) for service in distributed_services(graph)):
        yield f"{BACKEND} has no effect on pods of this form: Ray joins their nodes"


def _adapter_notes(graph: InferenceGraph) -> Iterator[str]:
    """That services have no scaling adapter, because the graph is older: an autoscaler may scale what runs them."""
    if graph.form.includes(PodForm.SIXTH):
        return
    asking = (service for service in graph.services if service.spec.scaling_adapter is not None and service.spec.scaling_adapter.enabled)
    if names := ", ".join(printable(service.name) for service in asking):
        yield (
            f"{names} have no {kinds.SCALING_ADAPTER.name}, which new graphs have: whatever scales the objects that run them goes on; "
            f'the annotation {labels.POD_FORM}: "{PodForm.CURRENT}" asks for it'
        )


def _has_unshared(service: GraphService, settings: DynamoSettings) -> bool:
    """Whether a pod of a service has further containers, which lack what the configuration says."""
    further = (service.extra_pod_spec.get(field) for field in ("containers", "initContainers"))
    uses_keys = service.is_multinode and service.framework is Framework.TRTLLM
    return any(further) and (uses_keys or bool(standard_variables(settings)))


def _asks_for_its_form(observed: Observed) -> bool:
    """Whether the author of a graph has named the form of its pods: in the manifest or, without one, the first form in the stored graph.
    The engine itself records the others."""
    if observed.proposal is not None and annotations_of(observed.proposal).get(labels.POD_FORM):
        return True
    return annotations_of(observed.root.body).get(labels.POD_FORM) not in (None, "", *_RECORDED)


def executor_notes(graph: InferenceGraph) -> Iterator[str]:
    """By what the nodes of vLLM services join, and why: one line for each reason."""
    if not graph.knows_ranks:
        return
    by_choice: dict[ExecutorChoice, list[str]] = {}
    for service in distributed_services(graph):
        by_choice.setdefault(executor_of(graph, service), []).append(printable(service.name))
    for choice, names in by_choice.items():
        yield f"vLLM's executor over several nodes is {choice.executor} for {', '.join(names)}, because {choice.why}"


def may_replace(graph: InferenceGraph, settings: DynamoSettings) -> bool:
    """Whether all pods of a graph may be replaced at once."""
    return settings.allow_replace or graph.annotations.get(labels.ALLOW_REPLACE, "").lower() == "true"


def withdrawal_notes(observed: Observed, *, replaces: bool) -> Iterator[str]:
    """What follows for each annotation that a manifest no longer has: ours are removed, and what runs stays, unless the manifest
    `replaces` it."""
    if observed.proposal is None or not observed.root.uid:
        return
    for key in withdrawn.withdrawn(observed.root.body, observed.proposal, labels.STEERING_GRAPHS):
        kept = "" if key == ENABLE_GROVE and replaces else _KEPT.get(key, "")
        yield f"the annotation {printable(key)} is removed, as the manifest no longer has it{kept}"
    for key in withdrawn.foreign(observed.root.body, observed.proposal, labels.STEERING_GRAPHS):
        yield f"the annotation {printable(key)} stays, although the manifest does not have it: another writer has set it"


def own_notes(observed: Observed, graph: InferenceGraph, settings: DynamoSettings) -> tuple[str, ...]:
    """What is said of the graph itself, besides its objects; of a change of it also the nodes that its services need, and how they join."""
    stored, proposed = observed.root.body, observed.proposal
    is_changing = is_new(stored) or (proposed is not None and not is_equal(proposed.get("spec"), stored.get("spec")))
    spread = spread_notes(graph) if is_changing else ()
    is_joined_anew = annotations_of(stored).get(labels.VLLM_EXECUTORS, "") != executor_record(graph)
    executors = executor_notes(graph) if is_changing or is_joined_anew else ()
    return (*form_notes(observed, graph, settings), *withdrawal_notes(observed, replaces=may_replace(graph, settings)), *spread, *executors)
