"""FailedCalls: failed calls are remembered, and nothing is claimed of calls that were not tried."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

import pytest

from engine.answer import FailedCall
from engine.errors import EngineError, Forbidden, ServerFault
from engine.operation import Operation, Outcome, Result
from engine.plan import Plan
from engine.runtime.failed_calls import FailedCalls
from engine.verb import Verb
from tests.engine.runtime.fakes import change, create, plan, root

FIRST = datetime(2026, 1, 1, tzinfo=UTC)
LATER = FIRST + timedelta(minutes=1)
A, B = create("a"), create("b", "a")


def done(operation: Operation) -> Result:
    return Result(operation, Outcome.DONE)


def failed(operation: Operation, text: str = "no") -> Result:
    return Result(operation, Outcome.FAILED, error=Forbidden(text))


def skipped(operation: Operation) -> Result:
    return Result(operation, Outcome.SKIPPED, error=EngineError("comes after"))


def after(*passes: tuple[Plan, Iterable[Result]], incomplete: frozenset[str] = frozenset()) -> tuple[FailedCall, ...] | None:
    """The failed calls of the root after these passes, a minute apart; None: unknown."""
    failed_calls = FailedCalls()
    for number, (plan_of_pass, results) in enumerate(passes):
        failed_calls.note([plan_of_pass], list(results), FIRST + timedelta(minutes=number), incomplete)
    return failed_calls.known.get(root())


def entries(failed_calls: tuple[FailedCall, ...] | None) -> list[tuple[str, str | None, datetime]]:
    """Name, error and time of each failed call."""
    assert failed_calls is not None
    return [(call.id.name, str(call.error) if call.error else None, call.since) for call in failed_calls]


def test_before_the_first_pass_nothing_is_known() -> None:
    assert FailedCalls().known == {}


def test_after_a_pass_without_failures_there_are_no_failed_calls() -> None:
    assert after((plan(A), [done(A)])) == ()
    assert after((plan(), [])) == ()


def test_of_a_plan_that_was_left_for_the_next_pass_nothing_is_claimed() -> None:
    failed_calls = FailedCalls()

    failed_calls.note([plan(A, B)], [], FIRST, left=frozenset({root()}))
    before = dict(failed_calls.known)
    failed_calls.note([plan(A, B)], [failed(A), skipped(B)], FIRST)
    failed_calls.note([plan(A, B)], [], LATER, left=frozenset({root()}))

    assert before == {}
    assert entries(failed_calls.known[root()]) == [("a", "no", FIRST), ("b", None, FIRST)]


def test_a_failure_is_remembered_and_its_dependents_are_marked_as_not_tried() -> None:
    assert entries(after((plan(A, B), [failed(A), skipped(B)]))) == [("a", "no", FIRST), ("b", None, FIRST)]


def test_two_failures_are_both_remembered() -> None:
    other = create("c")

    assert entries(after((plan(A, other), [failed(A), failed(other, "neither")]))) == [("a", "no", FIRST), ("c", "neither", FIRST)]


def test_the_same_type_of_error_is_the_same_failed_call_whatever_its_message() -> None:
    failed_calls = FailedCalls()
    failed_calls.note([plan(A)], [failed(A, "took 7.1 s")], FIRST)
    before = failed_calls.known[root()]
    again = create("a")
    failed_calls.note([plan(again)], [failed(again, "took 7.2 s")], LATER)

    assert failed_calls.known[root()] is before


def test_another_type_of_error_is_another_failed_call() -> None:
    again = create("a")
    fault = Result(again, Outcome.FAILED, error=ServerFault("etcd is down"))

    assert entries(after((plan(A), [failed(A)]), (plan(again), [fault]))) == [("a", "etcd is down", LATER)]


def test_a_call_that_is_done_later_or_no_longer_planned_is_removed() -> None:
    again = create("a")

    assert after((plan(A), [failed(A)]), (plan(again), [done(again)])) == ()
    assert after((plan(A), [failed(A)]), (plan(), [])) == ()


def test_a_call_that_was_not_tried_again_stays_as_it_is() -> None:
    again = create("a")

    assert entries(after((plan(A), [failed(A)]), (plan(again), []))) == [("a", "no", FIRST)]


def test_a_change_that_is_always_reverted_counts_as_failed_although_the_server_accepted_it() -> None:
    assert entries(after((plan(A), [done(A), failed(A, "reverted each time")]))) == [("a", "reverted each time", FIRST)]


def test_a_failed_status_write_is_not_remembered() -> None:
    status = change(Verb.STATUS, root(), {"status": {}})

    assert after((plan(status), [failed(status)])) == ()


@pytest.mark.parametrize("unusable", [Plan(root(), problems=("nonsense",)), Plan(root(), error=KeyError("a defect"))])
def test_a_plan_that_is_not_executed_changes_nothing(unusable: Plan) -> None:
    assert after((unusable, [])) is None
    assert entries(after((plan(A), [failed(A)]), (unusable, []))) == [("a", "no", FIRST)]


def test_after_an_incomplete_observation_it_is_not_claimed_that_no_call_fails() -> None:
    assert after((plan(A), [done(A)]), incomplete=frozenset({"Root"})) is None


def test_a_root_that_no_longer_exists_is_forgotten() -> None:
    failed_calls = FailedCalls()
    failed_calls.note([plan(A)], [failed(A)], FIRST)
    failed_calls.note([plan(name="other")], [], LATER)

    assert root() not in failed_calls.known
