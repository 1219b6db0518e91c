"""Rejections: nothing is sent twice to a server that has said no, and nobody is fought for ever."""

import pytest

from engine.errors import AlreadyExists, ClusterError, Conflict, Forbidden, Invalid, NotFound, ServerFault, Throttled, Unreachable
from engine.operation import Operation
from engine.result import Outcome, Result
from engine.runtime.rejections import MAX_UNDONE, SOON, Rejections, is_refusal
from engine.verb import Verb
from tests.engine.runtime.fakes import LEAF, body, change, create, leaf


def failed(operation: Operation, error: ClusterError, outcome: Outcome = Outcome.FAILED) -> Result:
    return Result(operation, outcome, error=error)


def patch(size: int = 1, revision: str = "1", verb: Verb = Verb.PATCH) -> Operation:
    return change(verb, leaf("a"), {"spec": {"size": size}}, revision=revision)


@pytest.mark.parametrize("error", [Forbidden("no"), Invalid("no"), NotFound("no such kind")])
def test_a_no_stands_for_the_same_question(error: ClusterError) -> None:
    refusals = Rejections()
    refusals.note([failed(create("a"), error)], 0)

    assert refusals.stand(create("a"), 1000)
    assert not refusals.stand(create("b"), 1000)


@pytest.mark.parametrize("error", [ServerFault("500"), Unreachable("cut"), Throttled("busy")])
def test_a_trouble_is_no_no(error: ClusterError) -> None:
    assert not is_refusal(failed(create("a"), error))


def test_another_content_or_another_state_of_the_object_is_another_question() -> None:
    refusals = Rejections()
    refusals.note([failed(patch(), Invalid("no"))], 0)

    assert refusals.stand(patch(), 1)
    assert not refusals.stand(patch(size=2), 1)
    assert not refusals.stand(patch(revision="2"), 1)


def test_a_state_that_tells_another_time_is_the_same_question() -> None:
    refusals = Rejections()
    refusals.note([failed(patch(verb=Verb.STATUS), Forbidden("no"))], 0)

    assert refusals.stand(patch(size=2, verb=Verb.STATUS), 1)


def test_a_no_is_asked_again_when_patience_is_over() -> None:
    refusals = Rejections(patience=30)
    refusals.note([failed(create("a"), Forbidden("no"))], 0)

    assert refusals.stand(create("a"), 29)
    assert not refusals.stand(create("a"), 30)


def test_a_name_that_is_taken_is_a_no_unless_its_holder_is_leaving() -> None:
    there = body(LEAF, "a")
    leaving = {**there, "metadata": {**there["metadata"], "deletionTimestamp": "2026-01-01T00:00:00Z"}}

    assert is_refusal(Result(create("a"), Outcome.CONFLICT, there, AlreadyExists("taken")))
    assert not is_refusal(Result(create("a"), Outcome.CONFLICT, leaving, AlreadyExists("taken")))
    assert not is_refusal(failed(patch(), Conflict("changed"), Outcome.CONFLICT))


def test_a_change_that_does_not_last_is_given_up_and_said_to_have_failed() -> None:
    refusals = Rejections()
    told = [refusals.note([Result(patch(revision=str(step)), Outcome.DONE)], step) for step in range(MAX_UNDONE)]

    assert [len(each) for each in told] == [0] * (MAX_UNDONE - 1) + [1]
    assert told[-1][0].outcome is Outcome.FAILED
    assert refusals.stand(patch(revision="99"), 1000)
    assert not refusals.stand(patch(size=2), 1000)


def test_what_people_undo_day_by_day_is_done_again() -> None:
    refusals = Rejections()

    for day in range(2 * MAX_UNDONE):
        assert refusals.note([Result(patch(), Outcome.DONE)], day * SOON) == []


def test_changes_that_differ_are_no_fight() -> None:
    refusals = Rejections()

    for step in range(2 * MAX_UNDONE):
        assert refusals.note([Result(patch(size=step), Outcome.DONE)], step) == []
