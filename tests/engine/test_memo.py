"""A memo returns a stored result exactly while the facts are equal."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from engine.memo import Memo, Preempted
from engine.observed import Slice

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def computed(*facts: Any) -> int:
    """How often a result is computed for these facts, one after the other."""
    memo, calls = Memo(), []
    for fact in facts:
        memo.recall("key", (fact,), lambda: calls.append(1))
    return len(calls)


@pytest.mark.parametrize(
    ("fact", "equal"),
    [
        ("x", "x"),
        (frozenset({"Pod", "Secret"}), frozenset({"Secret", "Pod"})),
        (("a", ("b", 1)), ("a", ("b", 1))),
        ({"a": [1]}, {"a": [1]}),
        (NOW, NOW + timedelta(0)),
    ],
)
def test_a_result_is_computed_once_for_equal_facts(fact: object, equal: object) -> None:
    assert computed(fact, equal) == 1


@pytest.mark.parametrize(
    ("fact", "other"),
    [
        ("x", "y"),
        (1, True),
        ((1,), (True,)),
        ({"a": [0]}, {"a": [False]}),
        ({"a": 1}, {"a": 1.0}),
        (frozenset({"Pod"}), frozenset()),
        ("a b", ("a", "b")),
        (Slice({}), Slice({})),
    ],
)
def test_a_result_is_computed_again_for_facts_that_differ_or_are_compared_by_identity(fact: object, other: object) -> None:
    assert computed(fact, other) == 2


def test_a_result_that_expires_is_computed_again_from_that_moment_on() -> None:
    memo, later = Memo(), NOW + timedelta(seconds=1)

    def recalled(now: datetime, result: str) -> str:
        made = memo.recall_until("key", (), now, lambda: (result, now + timedelta(seconds=1)), lambda stored: stored[1])
        return made[0]

    assert [recalled(NOW, "first"), recalled(NOW, "second"), recalled(later, "third")] == ["first", "first", "third"]


def recalled_all(memo: Memo, made: list[str], columns: Mapping[str, object], *facts: object, expired: str = "") -> tuple[str, ...]:
    """The results for these names and items, each `<name><number of results for the name>`; `made`: the names that one was made for."""
    names = tuple(columns)

    def make(position: int, last: str | None) -> str:
        made.append(names[position])
        return f"{names[position]}{int(last[1:]) + 1 if last else 1}"

    return memo.recall_all("key", names, facts, (tuple(columns.values()),), make, lambda result: result == expired)


@pytest.mark.parametrize(
    ("later", "facts", "results"),
    [
        ({"a": [1], "b": 2, "c": 3}, ("f",), ("a1", "b1", "c1")),
        ({"a": [1], "b": 5, "c": 3}, ("f",), ("a1", "b2", "c1")),
        ({"a": [True], "b": 2, "c": 3}, ("f",), ("a2", "b1", "c1")),
        ({"a": [1], "b": 2, "c": 3}, ("other",), ("a2", "b2", "c2")),
        ({"b": 2, "c": 4}, ("f",), ("b1", "c2")),
        ({"new": 0, "b": 2, "a": [1]}, ("f",), ("new1", "b1", "a1")),
        ({}, ("f",), ()),
    ],
)
def test_of_many_results_only_those_are_computed_again_whose_own_facts_differ(
    later: dict[str, object], facts: tuple[object, ...], results: tuple[str, ...]
) -> None:
    memo = Memo()
    recalled_all(memo, [], {"a": [1], "b": 2, "c": 3}, "f")

    made: list[str] = []

    assert recalled_all(memo, made, later, *facts) == results
    assert made == [name for name, result in zip(later, results, strict=True) if not result.endswith("1") or name == "new"]


def test_of_many_results_the_expired_one_is_computed_again() -> None:
    memo, columns = Memo(), {"a": 1, "b": 2}
    first = recalled_all(memo, [], columns)

    assert recalled_all(memo, [], columns) is first
    assert recalled_all(memo, [], columns, expired="b1") == ("a1", "b2")


def test_what_an_earlier_memo_remembers_counts_until_the_facts_differ_or_it_expires() -> None:
    earlier, made = Memo(), [""]
    earlier.scope("inner").recall("key", ("fact",), lambda: 1)
    earlier.recall_until("expiring", (), NOW, lambda: 1, lambda _: NOW)
    all_earlier = recalled_all(earlier, [], {"a": 1, "b": 2})
    memo = Memo(earlier)

    assert memo.scope("inner").recall("key", ("fact",), lambda: 2) == 1
    assert memo.scope("inner").recall("key", ("another",), lambda: 3) == 3
    assert earlier.scope("inner").recall("key", ("fact",), lambda: 4) == 1
    assert memo.recall_until("expiring", (), NOW, lambda: 2, lambda _: NOW) == 2
    assert recalled_all(memo, made, {"a": 1, "b": 2}) is all_earlier and made == [""]


def test_results_that_a_round_did_not_use_are_forgotten_and_those_of_other_scopes_are_not() -> None:
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


def test_what_was_computed_before_an_interruption_is_not_computed_again() -> None:
    memo, names, made = Memo(), ("a", "b", "c", "d"), list[str]()

    def make(index: int, last: str | None) -> str:
        made.append(names[index])
        return memo.scope(names[index]).recall("result", (), lambda: names[index].upper())

    def attempt() -> tuple[str, ...]:
        return memo.recall_all("key", names, (), (names,), make)

    memo.steps.is_preempted = True
    memo.steps.begin(least=4)
    with pytest.raises(Preempted):
        attempt()
    assert made == ["a", "b"]

    memo.steps.begin(least=3)
    with pytest.raises(Preempted):
        attempt()
    assert made == ["a", "b", "c", "d"]

    memo.steps.is_preempted = False
    assert attempt() == ("A", "B", "C", "D")
    assert made == ["a", "b", "c", "d", "d"]
    assert attempt() == ("A", "B", "C", "D")
    assert len(made) == 5


def test_a_single_result_is_kept_although_its_computation_ends_in_an_interruption() -> None:
    memo = Memo()
    memo.steps.is_preempted = True

    with pytest.raises(Preempted):
        memo.recall("key", (1,), lambda: "result")

    memo.steps.is_preempted = False
    assert memo.recall("key", (1,), lambda: pytest.fail("computed again")) == "result"
