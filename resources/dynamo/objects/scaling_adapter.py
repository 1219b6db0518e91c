"""Scaling adapters: an object with the subresource `scale` for each service that asks for one. It owns the service's number of replicas.

The graph's number counts until the adapter exists. It is not written back into the graph: a manifest and an autoscaler never disagree.
The number of an adapter in the files of a command (`Observed.replicas`) is written to the adapter, as `kubectl apply` writes it.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from engine.ids import ResourceId
from engine.observed import Live, Observed
from engine.ownership import scaled_by
from engine.paths import get
from engine.plan import Wait
from engine.reason import Reason
from engine.report.printable import clipped, printable
from engine.resource import NOW, REPLICAS, Body, Policy, Want
from engine.scalers import replicas_of
from resources.base import kinds, labels, names
from resources.base.fields import manifest, mapping
from resources.dynamo.model.form import PodForm
from resources.dynamo.model.graph import GraphService, InferenceGraph, Orchestrator
from resources.dynamo.model.names import component
from resources.dynamo.model.state import ServiceState
from resources.dynamo.objects.labels import GRAPH_NAME, SELECTOR, own_labels, pod_labels
from resources.dynamo.objects.pod_template import COMPONENT, ROLE
from resources.dynamo.objects.scaling import target_id
from resources.dynamo.objects.service import service_name
from resources.ports.configuration import ONLY
from resources.schema.issues import MAX_VALUE

ASKED: Final = Policy(exact=(REPLICAS,))
"""The policy of an adapter whose number a file asks for."""
ASKED_BY: Final = ((REPLICAS, Reason.MANIFEST_CHANGED),)
POLICY: Final = Policy(seeded=(REPLICAS,))
SERVICE_FIELDS: Final = {"v1alpha1": "serviceName", "v1beta1": "componentName"}
"""Version of the kind -> the field of `dgdRef` that has the name of the service."""


def is_adapted(graph: InferenceGraph, service: GraphService) -> bool:
    """Whether a service has a scaling adapter: it asks for one, and its graph has the sixth form or a later one."""
    adapter = service.spec.scaling_adapter
    return graph.form.includes(PodForm.SIXTH) and adapter is not None and bool(adapter.enabled)


def adapter_id(graph: InferenceGraph, service: GraphService) -> ResourceId:
    """The adapter of a service: `<graph>-<service>` in lower case."""
    return kinds.SCALING_ADAPTER.id(graph.namespace, component(graph, service))


def adapters_of(graph: InferenceGraph) -> Mapping[str, str]:
    """Service -> the name of its adapter, for each service that has one."""
    return {service.name: component(graph, service) for service in graph.services if is_adapted(graph, service)}


def scaled(observed: Observed, graph: InferenceGraph, orchestrator: Orchestrator | None) -> InferenceGraph:
    """The graph with the replicas of its adapters; the graph itself if it has none, the same object for the same numbers.

    On Grove, a service that the graph gives 0 replicas has no object that could be scaled: it keeps them.
    """
    numbers = {
        service.name: number
        for service in graph.services
        if is_adapted(graph, service) and not (orchestrator is Orchestrator.GROVE and service.replicas <= 0)
        if (number := _number(observed, graph, service)) is not None
    }
    return with_replicas(graph, numbers)


def with_replicas(graph: InferenceGraph, numbers: Mapping[str, int]) -> InferenceGraph:
    """The graph with these numbers of replicas of some services; the graph itself for none, the same object for the same numbers."""
    if not numbers:
        return graph

    def made() -> InferenceGraph:
        services = tuple(_with_replicas(each, numbers[each.name]) if each.name in numbers else each for each in graph.services)
        return InferenceGraph(graph.id, graph.annotations, graph.spec, services, graph.api_version, graph.faults)

    return graph.memo.recall("scaled", tuple(numbers.items()), made)


def scaling_adapters(
    observed: Observed, graph: InferenceGraph, states: Mapping[str, ServiceState], orchestrator: Orchestrator
) -> Iterator[Want]:
    """The adapters of a graph, with their statuses. `states`: service -> its state. None where the cluster does not serve the kind, and
    none beside an adapter of the same service that is not the graph's own."""
    if kinds.SCALING_ADAPTER.key in observed.unserved:
        return
    for service in graph.services:
        if is_adapted(graph, service) and not _is_foreign(observed, graph, service):
            yield _adapter(observed, graph, service, states.get(service.name), orchestrator)


def adapter_notes(observed: Observed, graph: InferenceGraph, orchestrator: Orchestrator) -> Iterator[str]:
    """What the adapters of a graph cannot do, and others that have our labels."""
    yield from unused_adapters(graph.id, observed.foreign.values())
    for service in graph.services:
        if not is_adapted(graph, service):
            continue
        field, adapter = f"spec.services[{service.name}].scalingAdapter", adapter_id(graph, service)
        if kinds.SCALING_ADAPTER.key in observed.unserved:
            yield f"{field}: no adapter is made, because the cluster does not serve {adapter.kind}; apply `engine manifests crds`"
        elif _is_foreign(observed, graph, service):
            yield f"{field}: {adapter.kind} {adapter.name} is not the graph's own: its replicas count, its status is not written"
        if orchestrator is Orchestrator.GROVE and service.replicas <= 0 and _number(observed, graph, service):
            yield f"{field}: has no effect while the service has 0 replicas in the graph, and so no place in its PodCliqueSet"
        yield from _restored(observed, graph, service)


def unwritten(observed: Observed, graph: InferenceGraph) -> Iterator[Wait]:
    """The adapters in the files of a command whose number cannot be written, each with why and what to do."""
    for service in (service for service in graph.services if service.name in observed.replicas):
        id, number = adapter_id(graph, service), observed.replicas[service.name]
        is_made = is_adapted(graph, service) and kinds.SCALING_ADAPTER.key not in observed.unserved
        if not is_made and service.replicas == number:
            continue  # It is that of the graph, which counts then.
        if kinds.SCALING_ADAPTER.key in observed.unserved:
            yield Wait(id, f"the cluster does not serve {id.kind}", blocked=True, to_do="Apply `engine manifests crds`.")
        elif not is_adapted(graph, service):
            to_do = f'Ask for it by the annotation {labels.POD_FORM}: "{PodForm.CURRENT}" on the graph.'
            yield Wait(id, f"{printable(service.name)} has no adapter: its graph is older than these", blocked=True, to_do=to_do)
        elif _is_foreign(observed, graph, service) and replicas_of(observed.foreign[id]) != number:
            to_do = f"`kubectl scale dgdsa/{id.name} -n {id.namespace} --replicas={number}`"
            yield Wait(id, "is not the graph's own: it was applied by another program, which scales it", blocked=True, to_do=to_do)


def _restored(observed: Observed, graph: InferenceGraph, service: GraphService) -> Iterator[str]:
    """That a file undoes what somebody has scaled."""
    live, asked = observed.slice(ONLY).objects.get(adapter_id(graph, service)), _asked(observed, graph, service)
    if live is None or asked is None or (number := replicas_of(live)) == asked or not (manager := scaled_by(live.body)):
        return
    yield (
        f"{manager} scaled {live.id.kind} {live.id.name} to {number}, but a file asks for {asked}, which is written now; "
        "an adapter that an autoscaler scales belongs in no file that is applied again"
    )


def _asked(observed: Observed, graph: InferenceGraph, service: GraphService) -> int | None:
    """The number that the files of a command ask for, if it can be written to the adapter of the service."""
    if service.name not in observed.replicas or not is_adapted(graph, service) or _is_foreign(observed, graph, service):
        return None
    is_known = kinds.SCALING_ADAPTER.key not in observed.unserved and kinds.SCALING_ADAPTER.key not in observed.incomplete
    return observed.replicas[service.name] if is_known else None


def unused_adapters(graph: ResourceId, lives: Iterable[Live]) -> Iterator[str]:
    """The adapters among these that refer to a graph and have no effect."""
    for live in lives:
        if live.id.kind == kinds.SCALING_ADAPTER.name and live.id.namespace == graph.namespace and _target(live)[0] == graph.name:
            if why := unused(live):
                yield f"{live.id.kind} {live.id.name} {why}"


def unused(live: Live) -> str:
    """Why an adapter has no effect: it has not the name of the one that counts for its service; empty if it has, or names no service."""
    graph, service = _target(live)
    counts = names.scaling_adapter(graph, service)
    if not graph or not service or live.id.name == counts:
        return ""
    shown = (clipped(counts, MAX_VALUE), clipped(service, MAX_VALUE), clipped(graph, MAX_VALUE))
    only = "only an adapter named {} counts for {} of {kind} {}".format(*shown, kind=kinds.DYNAMO_GRAPH.name)
    return f"has no effect: {only}; aim autoscalers at that one, and delete this one"


def _target(live: Live) -> tuple[str, str]:
    """The graph and the service that an adapter names; empty texts for none."""
    reference = mapping(get(live.body, ("spec", "dgdRef")))
    named = (reference.get(field) for field in SERVICE_FIELDS.values())
    return str(reference.get("name") or ""), str(next(filter(None, named), ""))


def _adapter(
    observed: Observed, graph: InferenceGraph, service: GraphService, state: ServiceState | None, orchestrator: Orchestrator
) -> Want:
    id, kind = adapter_id(graph, service), kinds.SCALING_ADAPTER
    if kinds.unread(kind) in observed.unserved:
        kind = kinds.newer(kind)[0]
    keys = {GRAPH_NAME: graph.name, COMPONENT: service.name, **own_labels(graph)}
    reference = {"name": graph.name, SERVICE_FIELDS[kind.version]: service.name}
    asked = _asked(observed, graph, service)
    spec = {"replicas": _first_number(observed, graph, service, orchestrator) if asked is None else asked, "dgdRef": reference}
    body = manifest(kind, graph.namespace, id.name, keys, spec=spec)
    live = observed.slice(ONLY).objects.get(id)
    status = _status(live, state.replicas if state is not None else 0, _selector(graph, service, orchestrator))
    policy, reasons = (POLICY, ()) if asked is None else (ASKED, ASKED_BY)
    return Want(id, f"replicas of {service.name}", (graph.owner,), body=body, policy=policy, status=status, own_reasons=reasons)


def _status(live: Live | None, replicas: int, selector: str) -> Body:
    known = mapping(live.body.get("status")).get("replicas") if live is not None else None
    is_scaled = isinstance(known, int) and known != replicas
    return {"replicas": replicas, "selector": selector, **({"lastScaleTime": NOW} if is_scaled else {})}


def _selector(graph: InferenceGraph, service: GraphService, orchestrator: Orchestrator) -> str:
    """The labels of one pod of each replica: an autoscaler multiplies the pods that it finds, and takes the result for replicas."""
    role = service.roles[0]
    if orchestrator is Orchestrator.GROVE:
        labels = {GRAPH_NAME: graph.name, SELECTOR: pod_labels(graph, service, role)[SELECTOR]}
    elif service.is_multinode:
        labels = {GRAPH_NAME: graph.name, COMPONENT: service.name, ROLE: str(role)}
    else:
        labels = {SELECTOR: service_name(graph, service)}
    return ",".join(f"{key}={value}" for key, value in sorted(labels.items()))


def _first_number(observed: Observed, graph: InferenceGraph, service: GraphService, orchestrator: Orchestrator) -> int:
    """The replicas of what runs the service, which an autoscaler may have set; those of the graph if nothing does."""
    if orchestrator is Orchestrator.GROVE:
        live = observed.elsewhere(target_id(graph, service))
    else:
        live = observed.slice(ONLY).objects.get(kinds.DEPLOYMENT.id(graph.namespace, service_name(graph, service)))
    number = replicas_of(live)
    return service.replicas if number is None else number


def _number(observed: Observed, graph: InferenceGraph, service: GraphService) -> int | None:
    """The replicas that the adapter of a service asks for, or those that it is created with; None if it has none.

    What a file asks of a live adapter counts once it is written: a refused write scales nothing.
    """
    id = adapter_id(graph, service)
    if _is_foreign(observed, graph, service):
        return replicas_of(observed.foreign[id])
    live = observed.slice(ONLY).objects.get(id)
    return _asked(observed, graph, service) if live is None else replicas_of(live)


def _is_foreign(observed: Observed, graph: InferenceGraph, service: GraphService) -> bool:
    """Whether the service has an adapter that a user applied. It names the service."""
    live = observed.foreign.get(adapter_id(graph, service))
    return live is not None and live.deleting_since is None and _target(live) == (graph.name, service.name)


def _with_replicas(service: GraphService, number: int) -> GraphService:
    """The service with that number of replicas, which is no longer left to others."""
    spec = service.spec.model_copy(update={"replicas": number, "scaling_adapter": None})
    return GraphService(service.name, spec, service.framework, service.envs)
