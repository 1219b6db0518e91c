"""Update gate: no running pod is deleted for a new template before the API server has accepted a pod of that template in a dry run.

What only the server can refuse, e.g. by PodSecurity, a policy or a webhook, would otherwise be found out when the old pods are gone. An
update begins when a pod of each clique that it replaces is accepted (U1). Where the server gives no answer, nothing waits for it (U3).
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from engine.answer import TrialOutcome, Trials
from engine.conditions import condition, find
from engine.diff import covers
from engine.observed import Observed
from engine.operation import Trial
from engine.report.printable import clipped
from resources.lifecycle.rollout import UpdateAllowance, UpdateStage

REFUSED: Final = "PodTemplateRefused"
"""The type of the condition, and the reason of the Warning."""
REASON: Final = "RefusedByAPIServer"
MAX_MESSAGE: Final = 2000
"""The largest number of characters of the condition's message."""
UNKNOWN: Final[Mapping[TrialOutcome, str]] = {
    TrialOutcome.UNANSWERED: "the API server did not say whether it accepts",
    TrialOutcome.IMPOSSIBLE: "the API server cannot say whether it accepts",
}
"""Outcomes that say nothing about the template, in words. A missing right is reported once, not for each set."""
LASTS: Final = (TrialOutcome.UNANSWERED, TrialOutcome.NOT_PERMITTED)
"""Outcomes beside which a refusal that the status of the set records remains."""


class Refusal(Struct, frozen=True):
    """What the API server refuses."""

    about: str
    """The cliques, e.g. `clique worker`; empty if only the status of the set says it."""
    why: str

    def __str__(self) -> str:
        """The refusal as a sentence."""
        return f"pods of {self.about}: {self.why}" if self.about else self.why


class UpdateGate(Struct, frozen=True):
    """Whether an update may replace running pods now."""

    trials: tuple[Trial, ...] = ()
    """One for each clique that it replaces."""
    closed: UpdateAllowance | None = None
    """What it allows in place of replacing units; None: units are replaced in their turn."""
    refusals: tuple[Refusal, ...] = ()
    notes: tuple[str, ...] = ()
    """What is not known, and why."""

    @property
    def refusal(self) -> str:
        """All refusals as one text; empty if there are none."""
        return "; ".join(map(str, self.refusals))


OPEN: Final = UpdateGate()


def replaced_cliques(stages: Sequence[UpdateStage]) -> tuple[str, ...]:
    """The cliques of the template of which a pod must be accepted before the update of these replicas replaces anything, sorted.

    None while none of the pods that it replaces is running: then nothing is lost.
    """
    affected = [stage for stage in stages if stage.is_affected]
    if not any(stage.runs for stage in affected):
        return ()
    return tuple(sorted(frozenset().union(*(stage.replaced for stage in affected))))


def update_gate(trials: tuple[Trial, ...], known: Trials, recorded: str) -> UpdateGate:
    """The gate of an update that relies on these trials. `recorded`: what the status of the set says that the server refuses."""
    verdicts = [(trial.about, known.verdicts.get(trial.key)) for trial in trials]
    words: dict[str, list[str]] = {}
    for about, verdict in verdicts:
        if verdict is not None and verdict.outcome is TrialOutcome.REFUSED:
            words.setdefault(verdict.why, []).append(about)
    refusals = tuple(Refusal(", ".join(about), why) for why, about in words.items())
    outcomes = [verdict.outcome if verdict is not None else None for _, verdict in verdicts]
    if not refusals and recorded and any(outcome is None or outcome in LASTS for outcome in outcomes):
        refusals = (Refusal("", recorded),)
    if refusals:
        closed: UpdateAllowance | None = UpdateAllowance.REFUSED
    else:
        closed = UpdateAllowance.UNTRIED if known.are_made and None in outcomes else None
    return UpdateGate(trials, closed, refusals, notes_of(trials, known))


def notes_of(trials: Sequence[Trial], known: Trials) -> tuple[str, ...]:
    """One note for each reason why it is not known whether the server accepts a pod."""
    unknown: dict[tuple[TrialOutcome, str], list[str]] = {}
    for trial in trials:
        verdict = known.verdicts.get(trial.key)
        if verdict is not None and verdict.outcome in UNKNOWN:
            unknown.setdefault((verdict.outcome, verdict.why), []).append(trial.about)
    return tuple(f"{UNKNOWN[outcome]} new pods of {', '.join(about)}: {why}" for (outcome, why), about in unknown.items())


def refusal_conditions(refusal: str, generation: int) -> list[dict[str, Any]]:
    """The condition as a list; empty if nothing is refused. `refusal`: the server's words."""
    return [condition(REFUSED, True, REASON, clipped(refusal, MAX_MESSAGE), generation=generation)] if refusal else []


def recorded_refusal(observed: Observed) -> str:
    """What the status of the set says that the API server refuses of the template that is planned for; empty if it says nothing of it."""
    root = observed.root
    known = find((root.body.get("status") or {}).get("conditions") or (), REFUSED) or {}
    if known.get("status") != "True" or known.get("observedGeneration") != root.generation:
        return ""
    if observed.proposal is not None and not covers(observed.proposal.get("spec"), root.body.get("spec")):
        return ""
    return str(known.get("message") or "")
