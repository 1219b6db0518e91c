"""A memo answers from what it knows exactly as long as the facts are the very same."""

from datetime import UTC, datetime, timedelta

from engine.memo import Memo

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def test_the_same_facts_are_not_computed_twice_equal_ones_are() -> None:
    memo, fact, calls = Memo(), {"a": 1}, []

    for facts in ((fact, "x"), (fact, "x"), ({"a": 1}, "x"), (fact, "y")):
        memo.recall("key", facts, lambda: calls.append(1))

    assert len(calls) == 3


def test_true_is_not_one() -> None:
    memo = Memo()

    assert memo.recall("key", (1,), lambda: "one") == "one"
    assert memo.recall("key", (True,), lambda: "true") == "true"


def test_an_answer_that_expires_is_computed_again_from_that_moment_on() -> None:
    memo, later = Memo(), NOW + timedelta(seconds=1)

    def ask(now: datetime, answer: str) -> str:
        made = memo.recall_until("key", (), now, lambda: (answer, now + timedelta(seconds=1)), lambda known: known[1])
        return made[0]

    assert [ask(NOW, "first"), ask(NOW, "second"), ask(later, "third")] == ["first", "first", "third"]


def test_what_a_round_did_not_ask_for_is_forgotten_its_neighbours_are_not() -> None:
    memo = Memo()
    memo.recall("kept", (), lambda: 1)
    memo.recall("lost", (), lambda: 1)
    memo.scope("inner").recall("deep", (), lambda: 1)
    memo.forget_unused()
    memo.recall("kept", (), lambda: 2)
    memo.scope("inner")
    memo.forget_unused()

    assert memo.recall("kept", (), lambda: 3) == 1
    assert memo.recall("lost", (), lambda: 3) == 3
    assert memo.scope("inner").recall("deep", (), lambda: 3) == 1
