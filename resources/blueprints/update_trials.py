"""UpdateTrials: the pods of a new template that the API server must have accepted before an update replaces running pods.

Previews also have pods tried that replace none: those that the server refuses would not be created.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from engine.answer import TrialOutcome
from engine.ids import ResourceId
from engine.memo import Memo
from engine.observed import Observed
from engine.operation import Trial
from engine.plan import Alarm, Wait
from engine.reason import Reason
from resources.blueprints.replica import ReplicaState
from resources.children import pod
from resources.domains.replica_domains import ReplicaDomains
from resources.lifecycle.update_gate import OPEN, REFUSED, UpdateGate, notes_of, recorded_refusal, replaced_cliques, update_gate
from resources.model.template import Template

NOT_CREATED: Final = "no pods are created, because the API server refuses"
UNTRIED: Final = "the API server was not asked whether it accepts new pods of {}, because other answers took too long"
NONE_REFUSED: Final[Mapping[str, str]] = MappingProxyType({})
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


class NewPods(Struct, frozen=True, eq=False):
    """What is known of the pods that are to be created."""

    trials: tuple[Trial, ...] = ()
    """One for each clique with new pods, besides those of the update."""
    refused: Mapping[str, str] = NONE_REFUSED
    """Clique of the template -> the words with which the API server refuses its pods."""
    notes: tuple[str, ...] = ()

    @property
    def refusal(self) -> str:
        """All refusals as one text; empty if there are none."""
        cliques: dict[str, list[str]] = {}
        for name, why in self.refused.items():
            cliques.setdefault(why, []).append(f"clique {name}")
        return "; ".join(f"pods of {', '.join(names)}: {why}" for why, names in cliques.items())


NO_NEW_PODS: Final = NewPods()


def new_pods(
    observed: Observed,
    template: Template,
    replicas: Sequence[ReplicaState],
    domains: Sequence[ReplicaDomains],
    gated: Sequence[Trial],
    memo: Memo,
) -> NewPods:
    """What is known of the new pods of these replicas, if their namespace and the kind of the set are there.

    `gated`: the trials that the update relies on. A pod of an outdated clique has a previous template, which the server accepted before.
    """
    known = observed.trials
    if not known.of_new or observed.namespace_phase is not None or not observed.unserved.isdisjoint(observed.root.id.keys()):
        return NO_NEW_PODS
    cliques = (clique for replica in replicas for clique in replica.view.cliques)
    names = {clique.clique.name for clique in cliques if clique.assignment.new and not clique.outdated}
    trials = {name: memo.recall(("trial", name), (template,), partial(trial_of, name, replicas, domains)) for name in sorted(names)}

    def made() -> NewPods:
        verdicts = {name: known.verdicts.get(trial.key) for name, trial in trials.items()}
        refused = {name: each.why for name, each in verdicts.items() if each is not None and each.outcome is TrialOutcome.REFUSED}
        others = tuple(trial for trial in trials.values() if trial.key not in {each.key for each in gated})
        untried = ", ".join(trial.about for trial in others if known.are_made and trial.key not in known.verdicts)
        return NewPods(others, refused or NONE_REFUSED, (*notes_of(others, known), *([UNTRIED.format(untried)] if untried else ())))

    return memo.recall("new pods", (known, gated, *trials.values()), made)


def trial_of(name: str, replicas: Sequence[ReplicaState], domains: Sequence[ReplicaDomains]) -> Trial:
    """The trial of a pod of the clique of that name, in the first replica that has it."""
    for replica, requested in zip(replicas, domains, strict=True):
        for clique in replica.view.cliques:
            if clique.clique.name == name:
                return pod.trial(replace(replica.view, domains=requested.by_key), clique)
    raise ValueError(f"no replica has the clique {name}")


def alarms(gate: UpdateGate, new: NewPods) -> Iterator[Alarm]:
    """What users must know of pods that the API server refuses."""
    yield from (Alarm(REFUSED, text, blocking=True) for text in _refusals(gate, new))


def deferred(root: ResourceId, gate: UpdateGate, new: NewPods) -> Iterator[Wait]:
    """What is not done because the API server refuses it."""
    yield from (Wait(root, text, blocked=True, reason=Reason.TEMPLATE_REFUSED) for text in _refusals(gate, new))


def _refusals(gate: UpdateGate, new: NewPods) -> Iterator[str]:
    """What the API server refuses, as sentences; pods of a template that the update waits for are refused with it."""
    if gate.refusal:
        yield f"{HELD_BACK} {gate.refusal}"
    elif new.refused:
        yield f"{NOT_CREATED} {new.refusal}"
