"""A condition keeps the time of its onset until its answer flips."""

from engine.conditions import condition, keep
from engine.resource import NOW

OLD = {"type": "Ready", "status": "True", "reason": "Old", "message": "was", "lastTransitionTime": "2026-01-01T00:00:00Z"}
FOREIGN = {"type": "Theirs", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}


def test_the_onset_stays_while_the_answer_stays_whatever_the_words() -> None:
    (kept,) = keep([OLD], [condition("Ready", True, "New", "is")], owned=("Ready",))

    assert kept == {**OLD, "reason": "New", "message": "is"}


def test_the_onset_moves_when_the_answer_flips() -> None:
    (kept,) = keep([OLD], [condition("Ready", False, "New", "is")], owned=("Ready",))

    assert kept["lastTransitionTime"] is NOW


def test_conditions_of_others_stay_and_ours_go_when_we_no_longer_have_them() -> None:
    assert keep([FOREIGN, OLD], [], owned=("Ready",)) == [FOREIGN]


def test_an_answer_of_none_is_unknown() -> None:
    assert condition("Ready", None, "Reason", "message")["status"] == "Unknown"
