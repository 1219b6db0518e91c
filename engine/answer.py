"""Answers: what the API server has said in earlier passes to calls that failed and to trials. Inputs of a pass."""

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from typing import Final

from msgspec import Struct, field

from engine.ids import ResourceId
from engine.resource import Path
from engine.verb import Verb


class TrialOutcome(StrEnum):
    """What is known after a trial."""

    ACCEPTED = "accepted"
    """The server would create the object, or only a quota has no room for it now."""
    REFUSED = "refused"
    """The server, an admission plug-in, a policy or a webhook rejects what the object contains."""
    UNANSWERED = "unanswered"
    """Nothing: no answer in time, a conflict, or the server failed or was too busy. Asking again may help."""
    NOT_PERMITTED = "not permitted"
    """Nothing: our account may not create such objects."""
    IMPOSSIBLE = "impossible"
    """Nothing: a webhook cannot answer dry runs, the namespace is being deleted, or our credentials are not accepted."""


class TrialVerdict(Struct, frozen=True, eq=False):
    """The answer to the last trial of one object. Compared by identity: while the answer is the same, it is the same object."""

    outcome: TrialOutcome
    why: str
    """The server's words; empty if it accepts the object."""
    since: datetime
    """When this was first the answer."""
    dropped: frozenset[Path] = frozenset()
    """The fields of an accepted object that the server would not store."""


class Trials(Struct, frozen=True, eq=False):
    """What is known of the trials for one root."""

    verdicts: Mapping[str, TrialVerdict] = field(default_factory=dict)
    """Key of a trial -> its verdict."""
    are_made: bool = False
    """Whether trials are made for what has no verdict. Otherwise it counts as accepted: in forecasts and reports, and where there is no
    server to ask."""
    of_new: bool = False
    """Whether trials are also made of pods that replace none."""

    def outcome_of(self, key: str) -> TrialOutcome:
        """What is known of the trial with this key; without a verdict nothing."""
        verdict = self.verdicts.get(key)
        return verdict.outcome if verdict is not None else TrialOutcome.UNANSWERED


NOT_MADE: Final = Trials()
MADE: Final = Trials(are_made=True)
"""Nothing is known yet, and the server is asked."""
MADE_OF_NEW: Final = Trials(are_made=True, of_new=True)
"""The same, also of pods that replace none."""


class FailedCall(Struct, frozen=True, eq=False):
    """An API call that failed when it was last made, or that is due and has not been made by this process.

    Compared by identity: while the failure lasts, it is the same object.
    """

    verb: Verb
    id: ResourceId
    """The object that was to be written."""
    parent: tuple[str, str] | None
    """Kind and name of the object that owns it and reports the failure in its status; None for a root itself."""
    error: Exception | None
    """None if the call has not been made: whether it fails is not known."""
    since: datetime
    """When the call first failed with an error of this type, or when it was first due."""
