"""ReplacementTrials: the pods with which a graph replaces running ones: by another PodCliqueSet, orchestrator or component, or by another
template of a component.

As for an update of a set, the API server must have accepted them before anything is deleted (U1 to U4, U6). The controllers of Deployments
and LeaderWorkerSets delete pods by themselves: until then, those objects stay as they are.
"""

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Final

from msgspec.structs import replace

from engine.canonical import digest
from engine.diff import Rules, compare
from engine.ids import ResourceId
from engine.memo import Memo
from engine.observed import Live, Observed
from engine.operation import Cause, Change, Create, Trial
from engine.paths import get
from engine.plan import Alarm, Wait
from engine.proposal import proposed_root
from engine.reason import Reason
from engine.resource import Body, Drop, Hold, Policy, Resource, Want
from resources.admission.graph_version import set_version
from resources.admission.set_version import VERSION
from resources.base import kinds, names
from resources.base.fields import mapping
from resources.blueprints.podcliqueset import template_of
from resources.blueprints.replica import observe_replica
from resources.blueprints.update_trials import trial_of
from resources.children.pod import TRIED
from resources.domains.replica_domains import domains_of_replica
from resources.dynamo.objects.pod_template import COMPONENT
from resources.dynamo.objects.podcliqueset import PlannedSet
from resources.lifecycle.rollout import RUNNING, UpdateAllowance
from resources.lifecycle.update_gate import OPEN, REFUSED, UpdateGate, update_gate
from resources.model.pod_facts import facts_of
from resources.ports.configuration import ONLY, Configuration

NO_TIME: Final = datetime.min.replace(tzinfo=UTC)
"""A set that does not exist has nothing that time changes."""
HELD_BACK: Final = "what runs stays as it is, because the API server refuses"
AWAITED: Final = "what runs is replaced when the API server has said whether it accepts the new pods"
POD_TEMPLATES: Final[dict[tuple[str, str], tuple[tuple[str, ...], ...]]] = {
    (kinds.DEPLOYMENT.group, kinds.DEPLOYMENT.name): (("template",),),
    (kinds.LEADER_WORKER_SET.group, kinds.LEADER_WORKER_SET.name): (
        ("leaderWorkerTemplate", "leaderTemplate"),
        ("leaderWorkerTemplate", "workerTemplate"),
    ),
}
"""Where the spec of a component has its pod templates."""
PODS: Final = frozenset({("spec", "template"), ("spec", "leaderWorkerTemplate")})
"""The fields of components with which their pods change."""
KEPT: Final = Policy(partial=(("metadata", "labels"), ("metadata", "annotations")))
"""The policy of a component of which nothing changes but the number of its replicas."""


def gate_of_set(observed: Observed, planned: PlannedSet, configuration: Configuration) -> UpdateGate:
    """The gate before what runs the graph is replaced by this PodCliqueSet."""
    if not (_set_runs(observed) or any(map(_has_replicas, _components(observed)))):
        return OPEN
    new = Observed(proposed_root(planned.body), {}, references=observed.references, unserved=observed.unserved)
    memo = Memo()
    memo.remember(VERSION, set_version(planned))
    template = template_of(new, configuration, memo)
    if template is None:
        return OPEN
    replica = observe_replica(template, 0, new.slice("0"), frozenset(), configuration, NO_TIME)
    domains = domains_of_replica(new, template, 0, configuration, NO_TIME, memo)
    trials = (trial_of(clique.clique.name, [replica], [domains]) for clique in replica.view.cliques)
    return update_gate(tuple({trial.about: trial for trial in trials}.values()), observed.trials, "")


def replaces_runners(observed: Observed, components: Iterable[Resource]) -> bool:
    """Whether these components come in place of a set that runs, or of other components that may run."""
    lives = observed.slice(ONLY).objects
    return _set_runs(observed) or any(_is_replaced(each) and _has_replicas(lives[each.id]) for each in components)


def gate_of_components(observed: Observed, components: Sequence[Resource]) -> UpdateGate:
    """The gate before these components, and the removal of others, replace pods that run."""
    lives, replaces = observed.slice(ONLY).objects, replaces_runners(observed, components)
    tried = [each for each in components if isinstance(each, Want) and _brings_pods(each, lives.get(each.id), replaces=replaces)]
    return update_gate(tuple(_component_trials(tried)), observed.trials, "")


def held_back(resource: Resource, live: Live | None, *, replaces: bool) -> Resource | None:
    """What is done about an object while the gate is closed; None: nothing.

    Components are still scaled, and what does not exist is created unless it comes in place of what runs (`replaces`).
    """
    if live is None:
        return None if replaces else resource
    if isinstance(resource, Hold) or (isinstance(resource, Drop) and not _is_replaced(resource)):
        return resource
    if isinstance(resource, Want) and is_component(resource.id) and "replicas" in resource.body["spec"]:
        kept = unchanged(live)
        body = {**kept.body, "spec": {"replicas": resource.body["spec"]["replicas"]}}
        return replace(resource, body=body, policy=replace(KEPT, seeded=resource.policy.seeded))
    return unchanged(live)


def unchanged(live: Live, why: str = "is left as it is") -> Want:
    """An object of the graph as it is."""
    body = {"apiVersion": live.body["apiVersion"], "kind": live.id.kind, "metadata": {"name": live.id.name, "namespace": live.id.namespace}}
    return Want(live.id, why, body=body, policy=Policy(create_only=True))


def _set_runs(observed: Observed) -> bool:
    """Whether a pod runs in a set of the graph that is not being deleted."""
    sets = (inner for inner in observed.nested.values() if inner.root.deleting_since is None)
    pods = (live for inner in sets for part in inner.slices.values() for live in part.of(kinds.POD.name))
    return any(facts_of(pod).phase in RUNNING for pod in pods)


def _components(observed: Observed) -> Iterator[Live]:
    return (live for live in observed.slice(ONLY).objects.values() if is_component(live.id))


def is_component(id: ResourceId) -> bool:
    """Whether a controller of the cluster creates the pods of this object."""
    return (id.group, id.kind) in POD_TEMPLATES


def _has_replicas(component: Live) -> bool:
    """Whether pods of the component may run: its status does not say how many do."""
    return component.deleting_since is None and bool(mapping(component.body.get("status")).get("replicas"))


def _is_replaced(component: Resource) -> bool:
    """Whether the component, or what it has, goes because of an edit and not because fewer replicas are asked for."""
    return isinstance(component, Drop) and component.reason is not Reason.SCALED_IN


def _brings_pods(component: Want, live: Live | None, *, replaces: bool) -> bool:
    """Whether pods of the component come in place of running ones: of its own, or of what it replaces."""
    if not is_component(component.id):
        return False
    if live is None:
        return replaces
    return _has_replicas(live) and any(change.path[:2] in PODS for change in _changes(component, live))


def _changes(component: Want, live: Live) -> Sequence[Change]:
    return compare(component.body, live.body, Rules(component.policy, Cause.INTENT)).changes


def _component_trials(components: Iterable[Want]) -> Iterator[Trial]:
    """One for each template of a service: its LeaderWorkerSets have the same templates but for the marks of each replica."""
    services: dict[tuple[str, str], Want] = {}
    for component in components:
        if is_component(component.id):
            services.setdefault((component.id.kind, component.body["metadata"]["labels"][COMPONENT]), component)
    for component in services.values():
        yield from trials_of_templates(component.id, component.body)


def trials_of_templates(id: ResourceId, component: Body) -> Iterator[Trial]:
    """A trial of a pod of each template of a component."""
    paths = POD_TEMPLATES[id.group, id.kind]
    for index, path in enumerate(paths):
        about = f"{id.kind} {id.name}" + (f" ({path[-1]})" if len(paths) > 1 else "")
        yield _trial_of_template(id, index, get(component, ("spec", *path)), about)


def _trial_of_template(owner: ResourceId, index: int, template: Body, about: str) -> Trial:
    id = kinds.POD.id(owner.namespace, names.pod(owner.name, owner.namespace, index, TRIED))
    metadata = {**template["metadata"], "name": id.name, "namespace": id.namespace}
    body = {"apiVersion": kinds.POD.api_version, "kind": kinds.POD.name, "metadata": metadata, "spec": template["spec"]}
    create = Create(id, f"a pod of {about}", Cause.INTENT, manifest=body, reason=Reason.TEMPLATE_CHANGED)
    return Trial(digest(body), about, create)


def wait_of(gate: UpdateGate, replaced: ResourceId) -> Wait:
    """Why the object is not replaced while the gate is closed."""
    if gate.closed is UpdateAllowance.REFUSED:
        return Wait(replaced, f"{HELD_BACK} {gate.refusal}", blocked=True, reason=Reason.TEMPLATE_REFUSED)
    return Wait(replaced, AWAITED)


def alarms(gate: UpdateGate) -> tuple[Alarm, ...]:
    """What users must know of a replacement that the API server does not let go on."""
    return (Alarm(REFUSED, f"the graph: {HELD_BACK} {gate.refusal}", blocking=True),) if gate.refusal else ()
