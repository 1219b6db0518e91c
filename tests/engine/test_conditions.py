"""A condition keeps its transition time until its status changes."""

from engine.conditions import condition, merge
from engine.resource import NOW

OLD = {"type": "Ready", "status": "True", "reason": "Old", "message": "was", "lastTransitionTime": "2026-01-01T00:00:00Z"}
FOREIGN = {"type": "Theirs", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}


def test_the_transition_time_stays_while_the_status_stays_whatever_the_message() -> None:
    (merged,) = merge([OLD], [condition("Ready", True, "New", "is")], owned=("Ready",))

    assert merged == {**OLD, "reason": "New", "message": "is"}


def test_the_transition_time_changes_with_the_status() -> None:
    (merged,) = merge([OLD], [condition("Ready", False, "New", "is")], owned=("Ready",))

    assert merged["lastTransitionTime"] is NOW


def test_foreign_conditions_stay_and_ours_are_removed_when_no_longer_desired() -> None:
    assert merge([FOREIGN, OLD], [], owned=("Ready",)) == [FOREIGN]


def test_a_status_of_none_is_unknown() -> None:
    assert condition("Ready", None, "Reason", "message")["status"] == "Unknown"
