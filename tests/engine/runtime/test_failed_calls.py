"""FailedCalls: what is remembered of calls that failed, and what is not claimed of those that nobody has made."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

from engine.errors import EngineError, Forbidden, ServerFault
from engine.failure import FailedCall
from engine.operation import Operation
from engine.plan import Plan
from engine.result import Outcome, Result
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


def after(*passes: tuple[Plan, Iterable[Result]], unclear: frozenset[str] = frozenset()) -> tuple[FailedCall, ...] | None:
    """What is known of the root after these passes, a minute apart."""
    failed_calls = FailedCalls()
    for number, (made, results) in enumerate(passes):
        failed_calls.note([made], list(results), FIRST + timedelta(minutes=number), unclear)
    return failed_calls.known.get(root())


def told(failed_calls: tuple[FailedCall, ...] | None) -> list[tuple[str, str | None, datetime]]:
    """FailedCalls, spelled out."""
    assert failed_calls is not None
    return [(one.id.name, str(one.error) if one.error else None, one.since) for one in failed_calls]


def test_before_the_first_pass_nothing_is_known() -> None:
    assert FailedCalls().known == {}


def test_a_clean_pass_leaves_no_trouble() -> None:
    assert after((plan(A), [done(A)])) == ()
    assert after((plan(), [])) == ()


def test_what_failed_is_remembered_and_what_came_after_it_is_not_known() -> None:
    assert told(after((plan(A, B), [failed(A), skipped(B)]))) == [("a", "no", FIRST), ("b", None, FIRST)]


def test_one_failure_does_not_hide_another() -> None:
    other = create("c")

    assert told(after((plan(A, other), [failed(A), failed(other, "neither")]))) == [("a", "no", FIRST), ("c", "neither", FIRST)]


def test_the_same_situation_is_the_same_trouble_however_its_text_counts() -> None:
    failed_calls = FailedCalls()
    failed_calls.note([plan(A)], [failed(A, "took 7.1 s")], FIRST)
    before = failed_calls.known[root()]
    again = create("a")
    failed_calls.note([plan(again)], [failed(again, "took 7.2 s")], LATER)

    assert failed_calls.known[root()] is before


def test_another_situation_is_another_trouble() -> None:
    again = create("a")
    fault = Result(again, Outcome.FAILED, error=ServerFault("etcd is away"))

    assert told(after((plan(A), [failed(A)]), (plan(again), [fault]))) == [("a", "etcd is away", LATER)]


def test_what_is_done_in_the_end_or_no_longer_planned_is_no_trouble() -> None:
    again = create("a")

    assert after((plan(A), [failed(A)]), (plan(again), [done(again)])) == ()
    assert after((plan(A), [failed(A)]), (plan(), [])) == ()


def test_what_has_not_been_tried_again_is_as_it_was() -> None:
    again = create("a")

    assert told(after((plan(A), [failed(A)]), (plan(again), []))) == [("a", "no", FIRST)]


def test_a_change_that_does_not_last_counts_as_failed_whatever_the_server_said() -> None:
    assert told(after((plan(A), [done(A), failed(A, "undone each time")]))) == [("a", "undone each time", FIRST)]


def test_a_state_that_cannot_be_written_is_no_trouble() -> None:
    state = change(Verb.STATUS, root(), {"status": {}})

    assert after((plan(state), [failed(state)])) == ()


def test_a_plan_that_nobody_would_carry_out_teaches_nothing() -> None:
    assert after((Plan(root(), problems=("nonsense",)), [])) is None


def test_without_having_seen_everything_nobody_claims_that_all_is_well() -> None:
    assert after((plan(A), [done(A)]), unclear=frozenset({"Root"})) is None


def test_a_root_that_is_gone_is_forgotten() -> None:
    failed_calls = FailedCalls()
    failed_calls.note([plan(A)], [failed(A)], FIRST)
    failed_calls.note([plan(name="other")], [], LATER)

    assert root() not in failed_calls.known
