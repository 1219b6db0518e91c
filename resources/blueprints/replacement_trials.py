"""ReplacementTrials: the pods that a graph replaces running ones with, as a whole: another PodCliqueSet, or another orchestrator.

As for an update of a set, the API server must have accepted them before anything is deleted (U1 to U4, U6).
"""

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Final

from engine.canonical import digest
from engine.ids import ResourceId
from engine.memo import Memo
from engine.observed import Live, Observed
from engine.operation import Cause, Operation, Trial
from engine.plan import Alarm, Wait
from engine.proposal import proposed_root
from engine.reason import Reason
from engine.resource import Body, Resource
from engine.verb import Verb
from resources.base import kinds, names
from resources.base.fields import mapping
from resources.blueprints.podcliqueset import template_of
from resources.blueprints.replica import observe_replica
from resources.blueprints.update_trials import trial_of
from resources.children.pod import TRIED
from resources.domains.replica_domains import domains_of_replica
from resources.model.pod_facts import facts_of
from resources.policies.rollout import RUNNING, UpdateAllowance
from resources.policies.update_gate import OPEN, REFUSED, UpdateGate, update_gate
from resources.ports.configuration import Configuration

NO_TIME: Final = datetime.min.replace(tzinfo=UTC)
"""A set that does not exist has nothing that time changes."""
HELD_BACK: Final = "it is not replaced, because the API server refuses"
AWAITED: Final = "it is replaced when the API server has said whether it accepts the new pods"
POD_TEMPLATES: Final[dict[tuple[str, str], tuple[tuple[str, ...], ...]]] = {
    (kinds.DEPLOYMENT.group, kinds.DEPLOYMENT.name): (("template",),),
    (kinds.LEADER_WORKER_SET.group, kinds.LEADER_WORKER_SET.name): (
        ("leaderWorkerTemplate", "leaderTemplate"),
        ("leaderWorkerTemplate", "workerTemplate"),
    ),
}
"""Where the spec of a component has its pod templates."""


def gate_of_set(observed: Observed, body: Body, configuration: Configuration) -> UpdateGate:
    """The gate before what runs the graph is replaced by this PodCliqueSet."""
    if not (_set_runs(observed) or any(map(_has_replicas, _components(observed)))):
        return OPEN
    new = Observed(proposed_root(body), {}, references=observed.references, unserved=observed.unserved)
    template, memo = template_of(new, configuration), Memo()
    if template is None:
        return OPEN
    replica = observe_replica(template, 0, new.slice("0"), frozenset(), configuration, NO_TIME)
    domains = domains_of_replica(new, template, 0, configuration, NO_TIME, memo)
    trials = (trial_of(clique.clique.name, [replica], [domains]) for clique in replica.view.cliques)
    return update_gate(tuple({trial.about: trial for trial in trials}.values()), observed.trials, "")


def gate_of_components(observed: Observed, components: Iterable[Resource]) -> UpdateGate:
    """The gate before the PodCliqueSet of the graph is replaced by these components."""
    if not _set_runs(observed):
        return OPEN
    return update_gate(tuple(_component_trials(components)), observed.trials, "")


def _set_runs(observed: Observed) -> bool:
    """Whether a pod runs in a set of the graph that is not being deleted."""
    sets = (inner for inner in observed.nested.values() if inner.root.deleting_since is None)
    pods = (live for inner in sets for part in inner.slices.values() for live in part.of(kinds.POD.name))
    return any(facts_of(pod).phase in RUNNING for pod in pods)


def _components(observed: Observed) -> Iterator[Live]:
    lives = (live for part in observed.slices.values() for live in part.objects.values())
    yield from (live for live in lives if (live.id.group, live.id.kind) in POD_TEMPLATES)


def _has_replicas(component: Live) -> bool:
    return component.deleting_since is None and bool(mapping(component.body.get("status")).get("readyReplicas"))


def _component_trials(components: Iterable[Resource]) -> Iterator[Trial]:
    for component in components:
        for path in POD_TEMPLATES.get((component.id.group, component.id.kind), ()):
            template = mapping(component.body.get("spec"))
            for field in path:
                template = mapping(template.get(field))
            if template.get("spec"):
                yield _trial_of_template(component.id, template)


def _trial_of_template(owner: ResourceId, template: Body) -> Trial:
    given = {key: value for key, value in mapping(template.get("metadata")).items() if key in ("labels", "annotations")}
    id = kinds.POD.id(owner.namespace, names.pod(owner.name, owner.namespace, 0, TRIED))
    metadata = {"name": id.name, "namespace": id.namespace, **given}
    body = {"apiVersion": kinds.POD.api_version, "kind": kinds.POD.name, "metadata": metadata, "spec": template["spec"]}
    create = Operation(Verb.CREATE, id, f"a pod of {owner.kind} {owner.name}", Cause.INTENT, body=body, reason=Reason.TEMPLATE_CHANGED)
    return Trial(digest(body), f"{owner.kind} {owner.name}", create)


def wait_of(gate: UpdateGate, replaced: ResourceId) -> Wait:
    """Why the object is not replaced while the gate is closed."""
    if gate.closed is UpdateAllowance.REFUSED:
        return Wait(replaced, f"{HELD_BACK} {gate.refusal}", blocked=True, reason=Reason.TEMPLATE_REFUSED)
    return Wait(replaced, AWAITED)


def alarms(gate: UpdateGate) -> tuple[Alarm, ...]:
    """What users must know of a replacement that the API server does not let go on."""
    return (Alarm(REFUSED, f"the graph: {HELD_BACK} {gate.refusal}", blocking=True),) if gate.refusal else ()
