"""Desired graph: what a valid DynamoGraphDeployment consists of: a PodCliqueSet or components, and the objects that both need."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from engine.blueprint import NestedRoot
from engine.conditions import completed_generation
from engine.ids import ResourceId
from engine.observed import Live, Observed
from engine.paths import overlay
from engine.plan import Wait
from engine.report.printable import printable
from engine.resource import Body, Drop, Policy, Resource, Scaled
from resources.admission import size_rules
from resources.admission.admit import admit
from resources.admission.graph_version import set_version, update_memo
from resources.admission.request import Act, Request
from resources.admission.set_version import VERSION
from resources.base import kinds, labels
from resources.base.fields import as_specified
from resources.blueprints.graph_mounts import blockers_of, mounted, pods_of, with_existing_secrets
from resources.blueprints.graph_records import may_replace
from resources.blueprints.replacement_trials import gate_of_components, gate_of_set, held_back, replaces_runners, unchanged, wait_of
from resources.dynamo import graph_scheduler, orchestrator
from resources.dynamo.model.form import PROVIDER
from resources.dynamo.model.graph import ENABLE_GROVE, InferenceGraph, Orchestrator
from resources.dynamo.model.names import clique_names, set_name
from resources.dynamo.model.state import ServiceState
from resources.dynamo.objects import pvc, replica_limit, ssh_secret
from resources.dynamo.objects.components import component_notes, component_resources, component_warnings
from resources.dynamo.objects.group_scheduler import GroupSchedulers, group_schedulers, notes_on_groups
from resources.dynamo.objects.ingress import ingress_notes, ingresses
from resources.dynamo.objects.obsolete_components import obsolete_components
from resources.dynamo.objects.podcliqueset import PlannedSet, podcliqueset
from resources.dynamo.objects.scaling import scale_targets, scaler_notes
from resources.dynamo.objects.scaling_adapter import adapter_notes, adapters_of, scaled, scaling_adapters, unwritten
from resources.dynamo.objects.service import frontend_services, service_notes
from resources.dynamo.readiness_components import component_states
from resources.dynamo.readiness_grove import service_states
from resources.dynamo.restart import RestartRequest, restart
from resources.lifecycle.update_gate import OPEN, UpdateGate
from resources.model.membership import effective_set, records_of, specified_body
from resources.ports.configuration import ONLY, UNLIMITED, Configuration

FIT = "Scale it in, or raise the limits of the operator configuration."
"""What to do if the set of a graph must be replaced, or come in place of components, and is too large to be created."""
TOO_LARGE = "the PodCliqueSet could not be created"


class GraphPlan(Struct, frozen=True, eq=False):
    """What should exist for a graph now."""

    resources: tuple[Resource, ...] = ()
    nested: tuple[NestedRoot, ...] = ()
    """The PodCliqueSet; empty on the component path, and while the set must not be changed."""
    states: tuple[ServiceState, ...] = ()
    deferred: tuple[Wait, ...] = ()
    notes: tuple[str, ...] = ()
    missing: str = ""
    """What does not exist although pods that are needed mount it, and by which service; empty if nothing is missing."""
    lost: str = ""
    """What does not exist any more although pods that run mount it, and by which service; empty if nothing is."""
    limited: str = ""
    """What is not created because the graph would be too large; empty if everything is."""
    failure: str = ""
    """Why the graph cannot be carried out at all; empty if it can."""
    gate: UpdateGate = OPEN
    """Whether the API server has accepted the pods that running ones are replaced with."""
    orchestrator: Orchestrator | None = None
    """What runs the graph; None if nothing can."""
    scheduler: str = ""
    """The scheduler that the graph records; empty if it records none."""
    restart: Body | None = None
    """`status.restart`; None without one."""
    replaces: bool = True
    """Whether the gate is that of objects that come in place of what runs, and not only of other templates."""


def graph_plan(
    observed: Observed, graph: InferenceGraph, configuration: Configuration, request: RestartRequest, scheduler: str = ""
) -> GraphPlan:
    """The plan of a valid graph; `request` is the restart that it asks for, `scheduler` the one of its pods that it records.

    It has no words of the API server yet: `with_gate` adds them.

    Raises `PodFault` and `GraphError` if its objects cannot be computed.
    """
    may_be_replaced = may_replace(graph, configuration.dynamo)
    schedulers = _schedulers(observed, graph, configuration)
    groups = tuple(dict.fromkeys(scheduler.kind for scheduler in schedulers.values()))
    recorded = orchestrator.recorded_orchestrator(observed)
    runs = orchestrator.is_decided(observed)
    choice = orchestrator.choose(graph, observed.unserved, recorded, runs=runs, may_replace=may_be_replaced, groups=groups)
    most = configuration.limits.of_set.pods
    if runs and (recorded, choice.orchestrator) == (Orchestrator.COMPONENTS, Orchestrator.GROVE):
        if too_large := _too_large(scaled(observed, graph, choice.orchestrator), configuration):
            kept = orchestrator.choose(graph, observed.unserved, recorded, runs=runs, groups=groups)
            choice = replace(kept, note=f"{kept.note}, and {TOO_LARGE}: {too_large}", asked=choice.orchestrator, to_do=FIT)
    if choice.orchestrator is None:
        return GraphPlan(_kept(observed), failure=choice.error, scheduler=scheduler)  # What exists stays: it may still serve.
    configuration = with_existing_secrets(observed, graph, configuration)
    specified, running = graph, scaled(observed, graph, choice.orchestrator)
    is_on_grove = choice.orchestrator is Orchestrator.GROVE
    allowed = {} if is_on_grove else replica_limit.allowed_replicas(running, observed, most)
    limited, running = replica_limit.limited_text(running, allowed, most), replica_limit.limited(running, allowed)
    states = _states(observed, running, choice.orchestrator)
    restarting = restart(observed, specified if is_on_grove else running, request, choice.orchestrator, states)
    graph = restarting.graph
    if is_on_grove:
        plan = replace(_on_grove(observed, graph, configuration, scheduler, running), scheduler=scheduler)
    else:
        plan = _on_components(observed, graph, configuration, is_as_specified=running is specified)
    plan = replace(_with_choice(plan, observed, graph, choice), restart=restarting.status)
    if plan.failure:
        return replace(plan, resources=_kept(observed), nested=())
    shared = _shared_objects(observed, graph, configuration)
    by_service = {state.service: state for state in plan.states}
    resources = (*shared, *plan.resources, *scaling_adapters(observed, specified, by_service, choice.orchestrator))
    resources = (*resources, *_undesired(observed, graph, configuration, {resource.id for resource in resources}))
    blockers = blockers_of(observed, graph, configuration)
    return replace(
        plan,
        resources=resources,
        states=_with_blockers(_with_limits(plan.states, allowed), blockers),
        deferred=(*plan.deferred, *unwritten(observed, specified)),
        limited=limited,
        missing=_listed(blockers, (service for service in blockers if not by_service[service].is_ready)),
        lost=_listed(blockers, (service for service in blockers if by_service[service].is_ready and by_service[service].replicas)),
        notes=(
            *plan.notes,
            *ingress_notes(graph, configuration.dynamo),
            *service_notes(graph),
            *adapter_notes(observed, specified, choice.orchestrator),
            *(scaler_notes(observed, specified, adapters_of(specified), running) if is_on_grove else ()),
        ),
    )


def with_gate(observed: Observed, graph: InferenceGraph, plan: GraphPlan) -> GraphPlan:
    """The plan with what the API server has said of its new pods, in the server's words."""
    plan = replace(plan, notes=(*plan.notes, *plan.gate.notes))
    return plan if plan.gate.closed is None else _held_back(observed, graph, plan)


def _states(observed: Observed, graph: InferenceGraph, orchestrator: Orchestrator) -> tuple[ServiceState, ...]:
    """The states of the services, as this orchestrator runs them."""
    if orchestrator is Orchestrator.COMPONENTS:
        return component_states(graph, observed.slice(ONLY).objects.get)
    return service_states(graph, observed.elsewhere, lambda: pods_of(observed))


def _schedulers(observed: Observed, graph: InferenceGraph, configuration: Configuration) -> GroupSchedulers:
    """Which scheduler places the pods of a replica together, for each service on several nodes that runs without Grove."""
    return group_schedulers(graph, observed.slice(ONLY), configuration.schedulers, observed.unserved)


def _held_back(observed: Observed, graph: InferenceGraph, plan: GraphPlan) -> GraphPlan:
    """The plan while the API server has not accepted the new pods: what runs stays as it is."""
    own = observed.slice(ONLY).objects
    held = (held_back(resource, own.get(resource.id), replaces=plan.replaces) for resource in plan.resources)
    wait = wait_of(plan.gate, next(iter(observed.nested), graph.id))
    states = tuple(replace(state, reason=wait.why) if wait.blocked and state.is_ready else state for state in plan.states)
    resources = tuple(resource for resource in held if resource is not None)
    return replace(plan, resources=resources, nested=(), states=states, deferred=(*plan.deferred, wait))


def _with_choice(plan: GraphPlan, observed: Observed, graph: InferenceGraph, choice: orchestrator.Choice) -> GraphPlan:
    """The plan with the record of what runs the graph. It is blocked where its annotation asks for something else, which is not allowed."""
    plan = replace(plan, orchestrator=choice.orchestrator, notes=(*plan.notes, *((choice.note,) if choice.note else ())))
    if choice.asked is None:
        return plan
    remedy = choice.to_do or _remedy(graph) if orchestrator.is_decided(observed) else f"remove the annotation {ENABLE_GROVE} or {PROVIDER}"
    wait = Wait(graph.id, choice.note, blocked=True, to_do=remedy)
    return replace(plan, deferred=(*plan.deferred, wait))


def _remedy(graph: InferenceGraph) -> str:
    return f'allow it with --allow-replace or the annotation {labels.ALLOW_REPLACE}: "true" on {graph.id.kind} {graph.name}'


def set_id(graph: InferenceGraph) -> ResourceId:
    """The PodCliqueSet of a graph."""
    return kinds.PODCLIQUESET.id(graph.namespace, set_name(graph))


def _shared_objects(observed: Observed, graph: InferenceGraph, configuration: Configuration) -> tuple[Resource, ...]:
    """The objects that do not depend on the orchestrator: claims, SSH keys and Ingresses."""
    own = {live.id for live in observed.slice(ONLY).objects.values()}
    foreign = {id.name for id, live in observed.looked_up.items() if live is not None and id.kind == kinds.PVC.name and id not in own}
    secrets = {id.name: live for id, live in observed.looked_up.items() if live is not None and id.kind == kinds.SECRET.name}
    return (
        *pvc.created_claims(graph, foreign),
        *ssh_secret.created_secrets(graph, configuration.dynamo, secrets),
        *ingresses(graph, configuration.dynamo),
    )


def lookups(graph: InferenceGraph, configuration: Configuration, *, unprocessed: bool = False) -> tuple[ResourceId, ...]:
    """The Secrets and claims that the pods of a graph mount, and the KAI queue that it names, if KAI may schedule them.

    `unprocessed`: whether nothing about the graph has been decided yet.
    """
    queues = [orchestrator.queue_of(graph)] if graph_scheduler.may_be_kai(graph, configuration, unprocessed=unprocessed) else []
    return (*mounted(graph, configuration), *(kinds.KAI_QUEUE.id("", name) for name in queues))


def _on_components(observed: Observed, graph: InferenceGraph, configuration: Configuration, *, is_as_specified: bool) -> GraphPlan:
    root, lives = observed.root, observed.slice(ONLY)
    was_ready = is_as_specified and observed.proposal is None and completed_generation(root.body) == root.generation
    blockers = blockers_of(observed, graph, configuration)
    schedulers = _schedulers(observed, graph, configuration)
    components = tuple(component_resources(graph, configuration.dynamo, lives, blockers, schedulers, was_ready=was_ready))
    return GraphPlan(
        (*components, *_removed_sets(observed, "components run the graph now")),
        gate=gate_of_components(observed, components),
        replaces=replaces_runners(observed, components),
        states=_states(observed, graph, Orchestrator.COMPONENTS),
        notes=(
            *component_notes(graph, schedulers),
            *notes_on_groups(graph, lives),
            *component_warnings(graph, configuration.dynamo),
        ),
    )


def _too_large(graph: InferenceGraph, configuration: Configuration) -> str:
    """Which limits the PodCliqueSet of a graph exceeds; empty if it exceeds none."""
    planned = podcliqueset(graph, configuration.dynamo, None)
    issues = size_rules.set_issues(planned.body, None, graph.namespace, configuration.limits, None) if planned is not None else ()
    return "; ".join(map(str, issues))


def _on_grove(
    observed: Observed, graph: InferenceGraph, configuration: Configuration, scheduler: str, running: InferenceGraph
) -> GraphPlan:
    """The plan of a graph on Grove. `running`: the graph with the replicas of its scaling adapters, which its set does not have."""
    services = tuple(frontend_services(graph, configuration.dynamo))
    resources = (*services, *obsolete_components(graph, observed.slice(ONLY), {each.id for each in services}, "Grove runs the graph now"))
    notes = tuple(graph_scheduler.kai_notes(observed, graph, configuration, scheduler))
    volcano = orchestrator.volcano_queue(graph, configuration.schedulers)
    queue = orchestrator.queue_of(graph) if volcano is None and graph_scheduler.uses_kai(observed, configuration, scheduler) else None
    states = _states(observed, running, Orchestrator.GROVE)
    id = set_id(graph)
    if queue is not None and observed.looked_up.get(kinds.KAI_QUEUE.id("", queue), observed.root) is None:
        why = orchestrator.queue_missing(queue)
        failure = f"failed to determine kai-scheduler queue: kai-scheduler queue validation failed: {why}"
        return GraphPlan(states=states, deferred=(Wait(id, why, blocked=True),), failure=failure)
    planned = podcliqueset(graph, configuration.dynamo, queue, volcano)
    if planned is None:
        return GraphPlan((*resources, *_removed_sets(observed, "no service has replicas")), states=states)
    plan = GraphPlan(resources, states=states, notes=(*planned.warnings, *notes))
    if id in observed.foreign:
        foreign = (
            f"{id.kind} {id.namespace}/{id.name} already exists but is not controlled by {graph.id.kind} {graph.namespace}/{graph.name}"
        )
        return replace(plan, deferred=(Wait(id, foreign, blocked=observed.foreign[id].deleting_since is None),), failure=foreign)
    return _with_set(observed, graph, configuration, planned, plan, scale_targets(graph, running))


def _with_set(
    observed: Observed,
    graph: InferenceGraph,
    configuration: Configuration,
    planned: PlannedSet,
    plan: GraphPlan,
    targets: Iterator[tuple[ResourceId, int]],
) -> GraphPlan:
    """The plan with the set: proposed, or replaced if it exists and the API does not allow the change."""
    id = set_id(graph)
    existing = observed.nested.get(id) or next(iter(observed.nested.values()), None)
    if existing is None:
        gate = gate_of_set(observed, planned, configuration)
        return replace(plan, nested=(_proposed(observed, graph, configuration, planned),), gate=gate)
    if existing.root.deleting_since is not None:
        return replace(plan, deferred=(Wait(existing.root.id, "is being deleted; it is created again once it is gone"),))
    if existing.root.id != id:
        return _replaced(observed, existing.root.id, graph, configuration, planned, plan, (f"its name is to be {id.name}",))
    if changes := _forbidden_changes(existing, planned, configuration):
        return _replaced(observed, id, graph, configuration, planned, plan, changes)
    replicas = tuple(_scaled(target, number) for target, number in targets)
    return replace(plan, resources=(*plan.resources, *replicas), nested=(_proposed(observed, graph, configuration, planned),))


def _proposed(observed: Observed, graph: InferenceGraph, configuration: Configuration, planned: PlannedSet) -> NestedRoot:
    """The set, and the cliques of services whose pods must not be created yet."""
    blockers = blockers_of(observed, graph, configuration)
    holds = {
        clique_names(graph, service).clique(role): blockers[service.name]
        for service in graph.services
        if service.name in blockers
        for role in service.roles
    }
    return NestedRoot(planned.body, holds, {VERSION: set_version(planned)})


def _forbidden_changes(existing: Observed, planned: PlannedSet, configuration: Configuration) -> tuple[str, ...]:
    """The changes of the existing set that the API does not allow, each with its field.

    The set counts as its objects record it: to put an edited annotation back is no change. No set is replaced because it
    grows beyond the limits.
    """
    records, stored = records_of(existing, configuration, planned.memo), as_specified(specified_body(existing))

    def make() -> tuple[str, ...]:
        recorded = effective_set(stored, records).body
        body = {**planned.body, "metadata": overlay(recorded["metadata"], planned.body.get("metadata") or {})}
        request = Request(Act.UPDATE, existing.root.id, body, recorded)
        decision = admit(request, replace(configuration, limits=UNLIMITED), memo=update_memo(planned))
        return tuple(map(str, decision.issues))

    return planned.memo.recall("forbidden changes", (stored, records, configuration), make)


def _replaced(
    observed: Observed,
    id: ResourceId,
    graph: InferenceGraph,
    configuration: Configuration,
    planned: PlannedSet,
    plan: GraphPlan,
    changes: tuple[str, ...],
) -> GraphPlan:
    """The plan with the set deleted, if that is allowed, so that a later pass creates it anew; otherwise blocked with the remedy."""
    pods = sum(len(part.of(kinds.POD.name)) for part in observed.nested[id].slices.values())
    what = f"{id.kind} {id.name} must be replaced, which restarts {'its pod' if pods == 1 else f'all its {pods} pods'}"
    why = "; ".join(changes)
    if too_large := tuple(map(str, size_rules.set_issues(planned.body, None, id.namespace, configuration.limits, None))):
        why = f"{why}; it could not be created again: {'; '.join(too_large)}"
        return replace(plan, deferred=(Wait(id, f"{what}: {why}", blocked=True, to_do=FIT),))
    if may_replace(graph, configuration.dynamo):
        gate = gate_of_set(observed, planned, configuration)
        removed = _removed(id, f"{what}: {why}")
        return replace(plan, resources=(*plan.resources, removed), notes=(*plan.notes, f"{what}: {why}"), gate=gate)
    return replace(plan, deferred=(Wait(id, f"{what}: {why}", blocked=True, to_do=_remedy(graph)),))


def _scaled(target: ResourceId, replicas: int) -> Resource:
    count = "1 replica" if replicas == 1 else f"{replicas} replicas"
    return Scaled(target, f"its service asks for {count}", policy=Policy(nested=True), replicas=replicas)


def _removed(id: ResourceId, why: str) -> Resource:
    return Drop(id, why, policy=Policy(nested=True))


def _removed_sets(observed: Observed, why: str) -> Iterator[Resource]:
    """The removal of the PodCliqueSets that the graph controls."""
    return (_removed(id, why) for id in observed.nested)


def _own(observed: Observed) -> tuple[Live, ...]:
    return tuple(observed.slice(ONLY).objects.values())


def _kept(observed: Observed) -> tuple[Resource, ...]:
    """The graph's objects as they are, while nothing can be decided about them."""
    return tuple(map(unchanged, _own(observed)))


def _listed(blockers: Mapping[str, str], services: Iterable[str]) -> str:
    """What these services lack, as a text."""
    return "; ".join(f"service {printable(service)}: {blockers[service]}" for service in sorted(services))


def _with_limits(states: Sequence[ServiceState], allowed: Mapping[str, replica_limit.Allowed]) -> tuple[ServiceState, ...]:
    """The states; a service that does not get all that it asks for is not ready. `allowed`: what such services get."""
    return tuple(
        replace(state, reason=_limit(allowed[state.service])) if state.is_ready and state.service in allowed else state for state in states
    )


def _limit(allowed: replica_limit.Allowed) -> str:
    on = "" if allowed.nodes == 1 else f" on {allowed.nodes} nodes each"
    return f"{allowed.replicas} replicas{on} are created, more are not allowed"


def _with_blockers(states: Sequence[ServiceState], blockers: Mapping[str, str]) -> tuple[ServiceState, ...]:
    """The states; that of a service that is held says why."""
    return tuple(
        replace(state, reason=f"{state.reason}: {blockers[state.service]}") if state.reason and state.service in blockers else state
        for state in states
    )


def _undesired(observed: Observed, graph: InferenceGraph, configuration: Configuration, desired: set[ResourceId]) -> Iterator[Resource]:
    """The removal of the graph's objects that it no longer needs. Claims stay until the graph is deleted: they hold data.

    So do SSH keys that its pods mount: whether missing ones are created is a choice of the configuration, not their end.
    """
    in_use = set(ssh_secret.needed_secrets(graph, configuration.dynamo).values())
    for live in _own(observed):
        if live.id in desired:
            continue
        if live.id.kind == kinds.SECRET.name and live.id.name in in_use:
            yield unchanged(live, "holds the SSH keys that pods mount")
        elif live.id.kind == kinds.PVC.name:
            yield unchanged(live, "is no longer in spec.pvcs; it is kept, with its data, until the graph is deleted")
        else:
            yield Drop(live.id, "the graph no longer needs it")
