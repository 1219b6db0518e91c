"""Verdicts: what the API server has said of the pods that updates would create, as an input of the next pass."""

from collections.abc import Mapping, Sequence
from typing import Final

import anyio
from msgspec import Struct
from msgspec.structs import replace

from engine.answer import MADE, MADE_OF_NEW, NOT_MADE, TrialOutcome, Trials, TrialVerdict
from engine.errors import ClusterError, Forbidden, Invalid, NotFound, RefusedBy, Unauthorized
from engine.ids import ResourceId
from engine.operation import Trial
from engine.paths import absent
from engine.plan import Plan, noteworthy
from engine.resource import Path
from engine.runtime.clock import Clock, cancelled_at
from engine.runtime.provider import Provider, TryingProvider

CONCURRENCY: Final = 16
"""How many trials are made at a time."""
PATIENCE: Final = 5.0
"""Seconds in which a trial must be answered: a slow webhook must not hold up all other sets."""
BEGINNING: Final = 3.0
"""Seconds in which a pass begins trials; the others are left for the next pass."""
SOON: Final = 1.0
"""Seconds after which trials that were left are made."""
FIRST_PAUSE, LONGEST_PAUSE = 10.0, 300.0
"""Seconds until a trial without success is made again: doubled each time."""

BY_REFUSER: Final[Mapping[RefusedBy, TrialOutcome]] = {
    RefusedBy.AUTHORIZATION: TrialOutcome.NOT_PERMITTED,
    RefusedBy.ADMISSION: TrialOutcome.REFUSED,
    RefusedBy.QUOTA: TrialOutcome.ACCEPTED,  # Quotas are checked last, and the pods that an update deletes make room.
    RefusedBy.NAMESPACE: TrialOutcome.IMPOSSIBLE,
    RefusedBy.UNKNOWN: TrialOutcome.UNANSWERED,
}
"""What refused a trial with 403 -> what that means."""
BY_CONTENT: Final = frozenset({400, 413, 422})
"""HTTP statuses with which a server rejects what was sent, whether it is a dry run or not.

Webhooks that name no status reject with 400, policies and webhooks also with 413; that of the server itself is `TooLarge`."""

DEFINITE: Final = frozenset({TrialOutcome.ACCEPTED, TrialOutcome.REFUSED})
"""Outcomes that say something about the object."""


class _TrialAnswer(Struct, frozen=True):
    """What one trial shows."""

    outcome: TrialOutcome
    why: str = ""
    """The server's words."""
    after: float = 0.0
    """The seconds after which the server wants to be asked again at the earliest."""
    dropped: frozenset[Path] = frozenset()
    """See `TrialVerdict`."""


class _Answer(Struct, frozen=True):
    """The last answer to a trial."""

    verdict: TrialVerdict
    pause: float
    """Seconds until it is made again."""
    due_at: float | None
    """When it is made again, on the monotonic clock; None: never."""


class Verdicts:
    """The answers to the trials that the plans of the last pass rely on."""

    def __init__(self) -> None:
        self._answers: dict[ResourceId, dict[str, _Answer]] = {}
        self._trials: dict[ResourceId, Trials] = {}
        self._unasked: Trials = NOT_MADE
        """What is known of a root without any answer."""
        self._prepared: tuple[Provider, bool] | None = None
        """What `prepare` was called with last."""
        self._left_until: float | None = None
        """When trials are made that the last pass has left, on the monotonic clock; None: it has left none."""
        self._changed: set[ResourceId] = set()
        self._unanswered: list[tuple[ResourceId, str, str]] = []

    def of(self, root: ResourceId) -> Trials:
        """What is known of the trials for a root: the same object while that is the same."""
        return self._trials.get(root, self._unasked)

    def take_changed(self) -> frozenset[ResourceId]:
        """The roots of which something else is known than when this was last called."""
        changed, self._changed = frozenset(self._changed), set()
        return changed

    def take_unanswered(self) -> list[tuple[ResourceId, str, str]]:
        """The trials that have shown nothing since this was last called: the root, what was tried, and why. Each is returned once."""
        unanswered, self._unanswered = self._unanswered, []
        return unanswered

    @property
    def next_due(self) -> float | None:
        """The monotonic time at which the next trial is due; None if none is."""
        times = [answer.due_at for answers in self._answers.values() for answer in answers.values() if answer.due_at is not None]
        return min([*times, *([self._left_until] if self._left_until is not None else [])], default=None)

    def prepare(self, provider: Provider, *, of_new: bool = False) -> None:
        """Note whether trials are made with this provider: not if it has no server that checks writes without storing them.

        `of_new`: also of pods that replace none.
        """
        if self._prepared == (provider, of_new):
            return
        self._prepared = (provider, of_new)
        unasked = NOT_MADE if _trying(provider) is None else MADE_OF_NEW if of_new else MADE
        if unasked is not self._unasked:
            self._unasked = unasked
            for root in self._answers:
                self._note_change(root)

    async def ask(self, provider: Provider, clock: Clock, plans: Sequence[Plan]) -> bool:
        """Make those trials that the plans rely on and that are due. Returns whether another plan may follow from the answers.

        Forgets the answers that no plan relies on any more: the next update asks anew.
        """
        return await self.ask_about(provider, clock, {plan.root: plan.trials for plan in noteworthy(plans) if plan.trials})

    async def ask_about(self, provider: Provider, clock: Clock, relied: Mapping[ResourceId, Sequence[Trial]]) -> bool:
        """The same for these trials of each root."""
        self._forget_others(relied)
        if not relied or (trying := _trying(provider)) is None:
            return False
        began, self._left_until = clock.monotonic(), None
        due = [(root, trial) for root, trials in relied.items() for trial in trials if self._is_due(root, trial, began)]
        limit, changed = anyio.CapacityLimiter(CONCURRENCY), False

        async def make(root: ResourceId, trial: Trial) -> None:
            nonlocal changed
            async with limit:
                if clock.monotonic() - began >= BEGINNING:
                    self._left_until = clock.monotonic() + SOON
                    return
                changed |= self._note(root, trial, await _answer_to(trying, clock, trial), clock)

        async with anyio.create_task_group() as tasks:
            for root, trial in due:
                tasks.start_soon(make, root, trial)
        return changed

    def _is_due(self, root: ResourceId, trial: Trial, at: float) -> bool:
        answer = self._answers.get(root, {}).get(trial.key)
        return answer is None or (answer.due_at is not None and answer.due_at <= at)

    def _note(self, root: ResourceId, trial: Trial, answer: _TrialAnswer, clock: Clock) -> bool:
        """Record an answer. Returns whether it changes what is known."""
        outcome, why = answer.outcome, answer.why
        old = self._answers.get(root, {}).get(trial.key)
        pause = FIRST_PAUSE if old is None else min(LONGEST_PAUSE, old.pause * 2)
        verdict = (
            old.verdict
            if old is not None and _stays(old.verdict, outcome, why)
            else TrialVerdict(outcome, why, clock.now(), answer.dropped)
        )
        due_at = clock.monotonic() + max(pause, answer.after) if verdict.outcome is not TrialOutcome.ACCEPTED else None
        self._answers.setdefault(root, {})[trial.key] = _Answer(verdict, pause, due_at)
        if old is not None and old.verdict is verdict:
            return False
        if verdict.outcome not in DEFINITE:
            self._unanswered.append((root, trial.about, why))
        self._note_change(root)
        return True

    def _note_change(self, root: ResourceId) -> None:
        answers = self._answers.get(root)
        self._trials.pop(root, None)
        if answers:
            self._trials[root] = replace(self._unasked, verdicts={key: answer.verdict for key, answer in answers.items()})
        self._changed.add(root)

    def _forget_others(self, relied: Mapping[ResourceId, Sequence[Trial]]) -> None:
        """Forget the answers to all other trials."""
        for root, answers in list(self._answers.items()):
            keys = {trial.key for trial in relied.get(root, ())}
            if answers.keys() <= keys:
                continue
            self._answers[root] = {key: answer for key, answer in answers.items() if key in keys}
            if not self._answers[root]:
                del self._answers[root]
            self._note_change(root)


def _trying(provider: Provider) -> Provider | None:
    """The provider whose writes are dry runs; None if there is none."""
    return provider.trying() if isinstance(provider, TryingProvider) else None


def _stays(verdict: TrialVerdict, outcome: TrialOutcome, why: str) -> bool:
    """Whether a verdict stays what it is after the next answer.

    A refusal stays while no answer comes. The words of an answer that says nothing about the object do not matter.
    """
    if outcome is TrialOutcome.UNANSWERED and verdict.outcome is TrialOutcome.REFUSED:
        return True
    return verdict.outcome is outcome and (outcome is not TrialOutcome.REFUSED or verdict.why == why)


async def _answer_to(provider: Provider, clock: Clock, trial: Trial) -> _TrialAnswer:
    """What a trial shows."""
    answer = _TrialAnswer(TrialOutcome.UNANSWERED, f"the API server has not answered within {PATIENCE:g} s")
    async with cancelled_at(clock, clock.monotonic() + PATIENCE):
        try:
            stored = await provider.execute(trial.create, {})
            dropped = frozenset(absent(trial.create.manifest, stored)) if stored is not None else frozenset()
            answer = _TrialAnswer(TrialOutcome.ACCEPTED, dropped=dropped)
        except ClusterError as error:
            outcome = outcome_of(error)
            answer = _TrialAnswer(outcome, "" if outcome is TrialOutcome.ACCEPTED else str(error), error.retry_after or 0.0)
    return answer


def outcome_of(error: ClusterError) -> TrialOutcome:
    """What the error of a trial says about the object."""
    match error:
        case Forbidden():
            return BY_REFUSER[error.by]
        case Invalid() if type(error) is Invalid and error.code in BY_CONTENT and error.status.get("kind") == "Status":
            return TrialOutcome.REFUSED
        case Invalid() | Unauthorized() | NotFound():
            return TrialOutcome.IMPOSSIBLE
    return TrialOutcome.UNANSWERED
