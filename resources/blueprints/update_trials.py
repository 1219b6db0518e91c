"""UpdateTrials: the pods of a new template that the API server must have accepted before an update replaces running pods."""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Final

from msgspec.structs import replace

from engine.ids import ResourceId
from engine.memo import Memo
from engine.observed import Observed
from engine.operation import Trial
from engine.plan import Alarm, Wait
from engine.reason import Reason
from resources.blueprints.replica import ReplicaState
from resources.children import pod
from resources.domains.replica_domains import ReplicaDomains
from resources.lifecycle.update_gate import OPEN, REFUSED, UpdateGate, recorded_refusal, replaced_cliques, update_gate
from resources.model.template import Template

HELD_BACK: Final = "the update is held back, because the API server refuses"


def gate_of(
    observed: Observed, template: Template, replicas: Sequence[ReplicaState], domains: Sequence[ReplicaDomains], memo: Memo
) -> UpdateGate:
    """The gate of the update of these replicas. `domains` are those of each replica, in the same order."""
    names = replaced_cliques([replica.stage for replica in replicas])
    if not names:
        return OPEN
    # Only an edit or another configuration makes another template.
    trials = tuple(memo.recall(("trial", name), (template,), partial(trial_of, name, replicas, domains)) for name in names)
    return update_gate(trials, observed.trials, recorded_refusal(observed))


def trial_of(name: str, replicas: Sequence[ReplicaState], domains: Sequence[ReplicaDomains]) -> Trial:
    """The trial of a pod of the clique of that name, in the first replica that has it."""
    for replica, requested in zip(replicas, domains, strict=True):
        for clique in replica.view.cliques:
            if clique.clique.name == name:
                return pod.trial(replace(replica.view, domains=requested.by_key), clique)
    raise ValueError(f"no replica has the clique {name}")


def alarms(gate: UpdateGate) -> Iterator[Alarm]:
    """What users must know of an update that the API server does not let go on."""
    if gate.refusal:
        yield Alarm(REFUSED, f"{HELD_BACK} {gate.refusal}", blocking=True)


def deferred(root: ResourceId, gate: UpdateGate) -> Iterator[Wait]:
    """What is not done because the API server refuses it."""
    if gate.refusal:
        yield Wait(root, f"{HELD_BACK} {gate.refusal}", blocked=True, reason=Reason.TEMPLATE_REFUSED)
