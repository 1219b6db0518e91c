"""The meaning of a graph: its PodCliqueSet, its other objects and its status; and its removal."""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from msgspec.structs import replace

from engine.blueprint import Desired, NestedRoot
from engine.errors import GraphError
from engine.graph import graph as graph_of
from engine.graph import part
from engine.ids import ResourceId
from engine.memo import Memo
from engine.observed import Live, Observed
from engine.plan import Alarm, Objection, Wait
from engine.reason import Reason
from engine.report.printable import clipped
from engine.resource import PLAIN, Body, Drop, Hold, Policy, Resource, Want
from engine.resource_plan import kept
from resources.admission.admit import admit
from resources.admission.graph_version import GraphVersion
from resources.admission.request import Act, Decision, Request
from resources.admission.set_version import VERSION
from resources.base import kinds, labels
from resources.base.fields import annotations_of, as_specified
from resources.blueprints.deletion import orphans_its_children
from resources.blueprints.desired_graph import GraphPlan, graph_plan, lookups, with_gate
from resources.blueprints.graph_records import (
    first_version,
    own_notes,
    records,
    running_executors,
    running_types,
    running_version,
    unrecorded_form,
)
from resources.blueprints.replacement_trials import alarms
from resources.dynamo.graph_scheduler import recorded_scheduler
from resources.dynamo.model.form import PodForm, form_of, is_new, with_form
from resources.dynamo.model.graph import VERSIONS, InferenceGraph, is_beta_as_written
from resources.dynamo.objects.labels import as_running
from resources.dynamo.objects.obsolete_components import is_kept_for_pods, removal
from resources.dynamo.orchestrator import is_decided, recorded_orchestrator
from resources.dynamo.pods.builder import PodFault
from resources.dynamo.restart import request_of
from resources.dynamo.status import FAILED, INVALID, Failure, readiness_of, status_of
from resources.dynamo.versions.api_versions import served_as
from resources.dynamo.versions.paths import in_beta
from resources.model import withdrawn
from resources.model.epochs import allows_take_over, epoch_objection, left_alone
from resources.model.growth_limit import LIMITED
from resources.ports.configuration import ONLY, UNLIMITED, Configuration
from resources.ports.scheduler import refused_groups
from resources.status.podcliqueset import DEPENDENCY_MISSING

KNOWN = Policy(partial=(("metadata", "labels"), ("metadata", "annotations")), finalizers=(labels.GRAPH_FINALIZER,))
"""The policy of a stored graph: its labels and annotations are not removed."""
PROPOSED = replace(KNOWN, exact=(("spec",),))
"""The policy of a graph that a manifest proposes: its spec replaces the stored one."""

RUNNERS = {kind.name: kind for kind in (kinds.PODCLIQUE, kinds.SCALING_GROUP, kinds.DEPLOYMENT, kinds.LEADER_WORKER_SET)}
"""The kinds of objects that run a service."""

NOTHING: Mapping[str, str] = {}
LONGEST_ANSWER = 300
"""The most characters of a scheduler's words."""
UNCHANGED = "is left as it is until the graph is valid"


class AdmittedGraph(NamedTuple):
    """The decision on a graph, and what was read from it."""

    decision: Decision
    graph: InferenceGraph | None
    """None if the decision has issues."""
    version: GraphVersion | None
    """None if it is not JSON or of another kind."""


def admitted_graph(id: ResourceId, body: Body, configuration: Configuration, memo: Memo, *, of_any_size: bool = False) -> AdmittedGraph:
    """A graph as it is specified, judged as if it were new. Limits count only if it is, and not `of_any_size`: of any other graph only
    growth is refused, by the admission of its changes."""
    request = Request(Act.CREATE, id, body)
    decision = admit(request, configuration, memo=memo)
    if decision.issues and (of_any_size or not is_new(body)):
        decision = admit(request, replace(configuration, limits=UNLIMITED), memo=memo)
    version: GraphVersion | None = memo.last(VERSION)
    if decision.issues or version is None:
        return AdmittedGraph(decision, None, version)
    annotations = with_form(annotations_of(decision.body or {}), PodForm.CURRENT if is_new(body) else PodForm.FIRST)
    return AdmittedGraph(decision, version.graph(id, annotations, served_as(body)), version)


def lookups_of(id: ResourceId, body: Body, configuration: Configuration, memo: Memo) -> tuple[ResourceId, ...]:
    """The Secrets, claims and the queue that a graph names; none if it is not valid."""
    graph = admitted_graph(id, body, configuration, memo, of_any_size=True).graph
    return lookups(graph, configuration, unprocessed=is_new(body)) if graph is not None else ()


def nested_roots(observed: Observed, configuration: Configuration, memo: Memo) -> tuple[NestedRoot, ...]:
    """The PodCliqueSet of the graph, if Grove runs it; none of a graph that is being deleted or not valid."""
    if observed.root.deleting_since is not None:
        return ()
    graph = _admitted(observed, configuration, memo).graph
    if graph is None:
        return ()
    try:
        return _planned(observed, graph, configuration, memo).nested
    except (PodFault, GraphError):
        return ()  # `desire` reports the same error.


def desire(observed: Observed, configuration: Configuration, memo: Memo) -> Desired:
    """The objects of the graph besides its PodCliqueSet, and its status."""
    if observed.root.deleting_since is not None:
        return _teardown(observed)
    if (objection := _objection(observed, configuration)) is not None:
        return left_alone(objection)
    decision, graph, _ = _admitted(observed, configuration, memo)
    body = decision.body or {}
    if graph is None:
        is_beta = is_beta_as_written(served_as(body), annotations_of(body))
        return _invalid(observed, body, tuple(in_beta(str(issue)) if is_beta else str(issue) for issue in decision.issues))
    try:
        planned = _planned(observed, graph, configuration, memo)
    except (PodFault, GraphError) as error:
        return _invalid(observed, body, (_in_its_words(graph, str(error)),))
    return _desired(observed, body, graph, planned, configuration)


def _objection(observed: Observed, configuration: Configuration) -> Objection | None:
    """Why nothing may be done for a graph: its set is managed by another release of Grove; None if nothing speaks against it."""
    is_allowed = bool(observed.nested) and allows_take_over(_body(observed))
    objections = (epoch_objection(each, configuration, is_allowed=is_allowed) for each in observed.nested.values())
    return next((objection for objection in objections if objection is not None), None)


def _admitted(observed: Observed, configuration: Configuration, memo: Memo) -> AdmittedGraph:
    """The desired graph. Decided again when what a user writes changes, and not with every status."""
    body = as_specified(_with_running(_body(observed), observed, memo))
    admitted = memo.recall("admitted graph", (body, configuration), lambda: admitted_graph(observed.root.id, body, configuration, memo))
    memo.remember(VERSION, admitted.version)
    if (graph := admitted.graph) is None:
        return admitted
    running = memo.recall("running types", _runners_of(observed), lambda: running_types(observed))
    return admitted._replace(graph=memo.recall("graph as it runs", (graph, running), lambda: as_running(graph, running)))


def _with_running(body: Body, observed: Observed, memo: Memo) -> Body:
    """The graph with what the form of its pods records, where it has no record: the executors of what runs, and its first version."""
    annotations = annotations_of(body)
    if not form_of(annotations).includes(PodForm.THIRD):
        return body
    facts = _runners_of(observed)
    known = dict(annotations)
    if not annotations.get(labels.VLLM_EXECUTORS):
        known[labels.VLLM_EXECUTORS] = memo.recall("running executors", facts, lambda: running_executors(observed))
    if observed.root.uid and not is_new(observed.root.body) and annotations.get(labels.WRITTEN_AS) not in VERSIONS:
        running: str = memo.recall("running version", facts, lambda: running_version(observed))
        known[labels.WRITTEN_AS] = first_version(observed, annotations, running) or annotations.get(labels.WRITTEN_AS, "")
    known = {key: value for key, value in known.items() if value or key in annotations}
    return body if known == annotations else {**body, "metadata": {**body["metadata"], "annotations": known}}


def _runners_of(observed: Observed) -> tuple[object, ...]:
    """What shows how the services of a graph run."""
    return tuple(observed.nested.values()), observed.slice(ONLY)


def _body(observed: Observed) -> Body:
    """The stored graph with the form of its pods; if there is a proposal, the proposal, whose metadata are laid on the stored ones."""
    body, metadata = observed.root.body, observed.root.body["metadata"]
    if observed.proposal is not None:
        body, metadata = observed.proposal, withdrawn.proposed_metadata(body, observed.proposal, labels.STEERING_GRAPHS)
    annotations = with_form(metadata.get("annotations") or {}, unrecorded_form(observed))
    return {**body, "metadata": {**metadata, "annotations": annotations}}


def _planned(observed: Observed, graph: InferenceGraph, configuration: Configuration, memo: Memo) -> GraphPlan:
    looked_up = tuple(observed.looked_up.items())
    nested, own, foreign = tuple(observed.nested.values()), observed.slice(ONLY), observed.foreign
    recorded, runs = recorded_orchestrator(observed), is_decided(observed)
    request, scheduler = request_of(observed, graph), recorded_scheduler(observed, graph, configuration)
    known = (observed.unserved, looked_up, nested, own, foreign, observed.trials)
    facts = (graph, configuration, *known, recorded, runs, request, scheduler)

    def make() -> GraphPlan:
        plan = graph_plan(observed, graph, configuration, request, scheduler)
        return with_gate(observed, graph, _worded(graph, plan))

    return memo.recall("graph plan", facts, make)


def _worded(graph: InferenceGraph, plan: GraphPlan) -> GraphPlan:
    """The plan with its texts in the words of the version in which the graph is written. They are ours: what the server says stays."""
    if not graph.is_written_as_v1beta1:
        return plan
    return replace(
        plan,
        resources=tuple(replace(each, why=in_beta(each.why)) for each in plan.resources),
        nested=tuple(replace(each, holds={part: in_beta(why) for part, why in each.holds.items()}) for each in plan.nested),
        states=tuple(replace(each, reason=in_beta(each.reason)) for each in plan.states),
        deferred=tuple(replace(each, why=in_beta(each.why), to_do=in_beta(each.to_do)) for each in plan.deferred),
        notes=tuple(map(in_beta, plan.notes)),
        **{field: in_beta(getattr(plan, field)) for field in ("failure", "missing", "lost", "limited")},
    )


def _desired(observed: Observed, body: Body, graph: InferenceGraph, planned: GraphPlan, configuration: Configuration) -> Desired:
    failure = Failure(FAILED, planned.failure) if planned.failure else None
    sets = observed.nested.values()
    status = status_of(observed.root, planned.states, failure, planned.restart, sets) if observed.root.uid else None
    deferred = planned.deferred
    if failure is not None and not deferred:
        deferred = (Wait(graph.id, planned.failure, blocked=True),)
    if observed.root.uid:
        deferred = (*deferred, *_paused(graph, planned))
    return Desired(
        graph_of(
            [part(ONLY, [_root(observed, body, status, records(graph, planned.orchestrator, planned.scheduler)), *planned.resources])]
        ),
        pending=tuple(_pending(observed, graph, planned)) if observed.root.uid else (),
        deferred=deferred,
        readiness=readiness_of(planned.states, failure, sets),
        notes=(*(_in_its_words(graph, note) for note in own_notes(observed, graph, configuration.dynamo)), *planned.notes),
        alarms=tuple(_alarms(planned)),
        trials=planned.gate.trials,
    )


def _alarms(planned: GraphPlan) -> Iterator[Alarm]:
    """Why the graph is not carried out, what is missing for some of its pods, and what the API server refuses."""
    if planned.failure:
        yield Alarm("".join(word.capitalize() for word in FAILED.split("_")), planned.failure, blocking=True, may_pass=True)
    if planned.missing:
        yield Alarm(DEPENDENCY_MISSING, f"pods are not created: {planned.missing}", blocking=True, may_pass=True)
    if planned.lost:
        yield Alarm(DEPENDENCY_MISSING, f"no new pod can start: {planned.lost}")
    if planned.limited:
        yield Alarm(LIMITED, planned.limited, blocking=True)
    yield from alarms(planned.gate)


def _in_its_words(graph: InferenceGraph, text: str) -> str:
    """A text about a graph in the words of the version in which it is written."""
    return in_beta(text) if graph.is_written_as_v1beta1 else text


def _pending(observed: Observed, graph: InferenceGraph, planned: GraphPlan) -> Iterator[Wait]:
    """The services that are not ready, and the PodGroups that their scheduler cannot place now, with its words."""
    for state in planned.states:
        if not state.is_ready:
            yield Wait(RUNNERS[state.component_kind].id(graph.namespace, state.component_name), state.reason)
    if not all(state.has_room for state in planned.states):
        for group, words in refused_groups(observed.slice(ONLY).objects.values()):
            yield Wait(group.id, clipped(words, LONGEST_ANSWER))


def _paused(graph: InferenceGraph, planned: GraphPlan) -> Iterator[Wait]:
    """The Deployments that a user has paused: only a user ends that."""
    for state in planned.states:
        if state.is_paused:
            id = RUNNERS[state.component_kind].id(graph.namespace, state.component_name)
            command = f"kubectl rollout resume deployment/{id.name} -n {id.namespace}"
            yield Wait(id, "is paused (`spec.paused`): its controller replaces no pod", blocked=True, to_do=command)


def _invalid(observed: Observed, body: Body, problems: tuple[str, ...]) -> Desired:
    """Nothing for a graph that is proposed; for a stored one its status says what is wrong, and everything else stays as it is."""
    if observed.proposal is not None or not observed.root.uid:
        return Desired(graph_of(()), problems=problems)
    failure = Failure(INVALID, f"Validation failed: {'; '.join(problems)}")
    return Desired(
        graph_of([part(ONLY, [_root(observed, body, status_of(observed.root, (), failure)), *_held(observed, UNCHANGED)])]),
        deferred=(Wait(observed.root.id, failure.message, blocked=True),),
        alarms=(Alarm(INVALID, failure.message, blocking=True),),
        readiness=readiness_of((), failure, ()),
    )


def _held(observed: Observed, why: str) -> Iterator[Hold]:
    """The objects of the graph as they are."""
    return (Hold(live.id, why) for live in observed.slice(ONLY).objects.values())


def _root(observed: Observed, body: Body, status: Body | None, records: Mapping[str, str] = NOTHING) -> Want:
    """The graph itself with its records; its spec is written only if a manifest proposes it."""
    root, proposal = observed.root, observed.proposal
    metadata = {"name": root.id.name, "namespace": root.id.namespace}
    frame = {"apiVersion": served_as(body or root.body), "kind": kinds.DYNAMO_GRAPH.name, "metadata": metadata}
    if proposal is None:
        own = {**frame, "metadata": {**metadata, **({"annotations": records} if records else {})}}
        return Want(root.id, "managed", body=own, policy=KNOWN, status=status)
    proposed = proposal.get("metadata") or {}
    proposed = {**proposed, "annotations": {**(proposed.get("annotations") or {}), **records}}
    given = {key: proposed[key] for key in ("labels", "annotations") if proposed.get(key)}
    finalizers = {} if root.uid else {"finalizers": list(KNOWN.finalizers)}
    manifest = {**frame, "metadata": {**metadata, **given, **finalizers}, "spec": body["spec"]}
    policy = replace(PROPOSED, withdrawn=withdrawn.paths(root.body, proposal, labels.STEERING_GRAPHS)) if root.uid else PROPOSED
    return Want(root.id, "proposed by a manifest", body=manifest, policy=policy, status=status)


def _teardown(observed: Observed) -> Desired:
    """The removal of everything that the graph owns; its finalizer is released when all of it is gone.

    With `--cascade=orphan` nothing is removed: the garbage collector releases what the graph owns.
    """
    root = observed.root
    why = f"{root.id.name} is being deleted"
    if orphans_its_children(root):
        why = f"{why} with --cascade=orphan; waits for the garbage collector to release what it owns"
        return Desired(graph_of([part(ONLY, [Hold(root.id, why), *_held(observed, why)])]))
    lives = list(observed.slice(ONLY).objects.values())
    ids = {live.id for live in lives}
    removed = [removal(live, why, ids, Reason.SET_DELETED) for live in lives]
    nested = [Drop(id, why, policy=Policy(nested=True), reason=Reason.SET_DELETED) for id in observed.nested]
    remaining = len(removed) + len(nested)
    if remaining:
        last: Resource = Hold(root.id, f"{why}; waits for {remaining} object{'s' if remaining > 1 else ''} to be gone")
    else:
        last = Drop(root.id, why, policy=KNOWN, reason=Reason.SET_DELETED)
    terminating = tuple(map(_terminating, (live for live in lives if live.deleting_since is not None and not is_kept_for_pods(live))))
    return Desired(graph_of([part(ONLY, [last, *removed, *nested])]), pending=terminating)


def _terminating(live: Live) -> Wait:
    """What is said of an object that is being deleted, with the finalizers of others that keep it."""
    wait = kept(live, PLAIN)
    return Wait(live.id, wait.why if wait is not None else "is being deleted")
