"""Rejections: a rejected request is not sent again unchanged, and a change that is always reverted is suspended."""

import pytest
from msgspec.structs import replace

from engine.errors import (
    AlreadyExists,
    ClusterError,
    Conflict,
    Forbidden,
    Invalid,
    NotFound,
    RefusedBy,
    ServerFault,
    Throttled,
    TooLarge,
    Unreachable,
)
from engine.observed import live
from engine.operation import Expect, Operation, Outcome, Result
from engine.resource import NOW
from engine.runtime.rejections import MAX_REVERTED, MAX_ROOM_TRIES, ROOM_PAUSE, SOON, Rejections, is_rejection
from engine.verb import Verb
from tests.engine.runtime.fakes import LEAF, body, change, create, leaf


def failed(operation: Operation, error: ClusterError, outcome: Outcome = Outcome.FAILED) -> Result:
    return Result(operation, outcome, error=error)


def patch(size: int = 1, revision: str = "1", verb: Verb = Verb.PATCH) -> Operation:
    return change(verb, leaf("a"), {"spec": {"size": size}}, revision=revision)


def status(revision: str) -> Operation:
    return change(Verb.STATUS, leaf("a"), {"status": {"since": NOW}}, revision=revision)


@pytest.mark.parametrize("error", [Forbidden("no"), Invalid("no"), NotFound("no such kind")])
def test_a_rejected_operation_is_suspended_and_another_one_is_not(error: ClusterError) -> None:
    rejections = Rejections()
    rejections.note([failed(create("a"), error)], 0)

    assert rejections.suspends(create("a"), 1000)
    assert not rejections.suspends(create("b"), 1000)


@pytest.mark.parametrize("error", [ServerFault("500"), Unreachable("no answer"), Throttled("busy")])
def test_a_transient_error_is_no_rejection(error: ClusterError) -> None:
    assert not is_rejection(failed(create("a"), error))


@pytest.mark.parametrize("verb", [Verb.PATCH, Verb.STATUS])
def test_another_body_or_another_revision_of_the_object_is_another_request(verb: Verb) -> None:
    rejections = Rejections()
    rejections.note([failed(patch(verb=verb), Invalid("no"))], 0)

    assert rejections.suspends(patch(verb=verb), 1)
    assert not rejections.suspends(patch(size=2, verb=verb), 1)
    assert not rejections.suspends(patch(revision="2", verb=verb), 1)


def test_a_rejected_operation_is_sent_again_when_patience_is_over() -> None:
    rejections = Rejections(patience=30)
    rejections.note([failed(create("a"), NotFound("no such kind"))], 0)

    assert rejections.suspends(create("a"), 29)
    assert not rejections.suspends(create("a"), 30)
    assert rejections.next_due(0) is None


@pytest.mark.parametrize("error", [Forbidden("no"), Invalid("no")])
def test_a_refused_operation_is_sent_again_after_pauses_that_double(error: ClusterError) -> None:
    rejections, at = Rejections(patience=300), 0.0
    pauses: list[float] = []
    while len(pauses) < 8:
        rejections.note([failed(create("a"), error)], at)
        due = rejections.next_due(at)
        assert due is not None
        assert rejections.suspends(create("a"), due - 0.1) and not rejections.suspends(create("a"), due)
        pauses.append(due - at)
        at = due

    assert pauses == [1, 2, 4, 8, 16, 30, 30, 30]


def test_the_pauses_of_an_operation_begin_anew_when_something_else_refuses_it() -> None:
    rejections = Rejections(patience=60)
    for at, error in ((0, Forbidden("no room", by=RefusedBy.QUOTA)), (1, Forbidden("denied", by=RefusedBy.ADMISSION))):
        rejections.note([failed(create("a"), error)], at)

    assert rejections.next_due(1) == 2


def test_the_pauses_of_an_operation_grow_whichever_webhook_answers_first() -> None:
    rejections = Rejections(patience=60)
    for at, name in ((0, "a"), (1, "b"), (3, "a")):
        error = Forbidden("denied", by=RefusedBy.ADMISSION)
        error.refuser = name
        rejections.note([failed(create("a"), error)], at)

    assert rejections.next_due(3) == 7


def test_an_operation_is_sent_again_when_its_answer_is_forgotten() -> None:
    rejections = Rejections()
    rejections.note([failed(create(name), Forbidden("no")) for name in "ab"], 0)
    rejections.forget([create("a").key, create("c").key])

    assert not rejections.suspends(create("a"), 1)
    assert rejections.suspends(create("b"), 1)


def test_what_is_too_large_is_never_sent_again_whatever_its_revision() -> None:
    rejections = Rejections(patience=30)
    rejections.note([failed(patch(), TooLarge("limit is 3145728"))], 0)
    rejections.note([], 100_000)

    assert rejections.suspends(patch(revision="2"), 200_000)
    assert not rejections.suspends(patch(size=2), 200_000)


def test_a_taken_name_is_a_rejection_unless_its_holder_is_being_deleted() -> None:
    existing = body(LEAF, "a")
    deleting = {**existing, "metadata": {**existing["metadata"], "deletionTimestamp": "2026-01-01T00:00:00Z"}}

    assert is_rejection(Result(create("a"), Outcome.CONFLICT, live(existing), AlreadyExists("taken")))
    assert not is_rejection(Result(create("a"), Outcome.CONFLICT, live(deleting), AlreadyExists("taken")))
    assert not is_rejection(failed(patch(), Conflict("changed"), Outcome.CONFLICT))


def test_a_change_that_is_always_reverted_is_suspended_and_reported_as_failed() -> None:
    rejections = Rejections()
    reverted = [rejections.note([Result(patch(revision=str(step)), Outcome.DONE)], step) for step in range(MAX_REVERTED)]

    assert [len(results) for results in reverted] == [0] * (MAX_REVERTED - 1) + [1]
    assert reverted[-1][0].outcome is Outcome.FAILED
    assert rejections.suspends(patch(revision="99"), 1000)
    assert not rejections.suspends(patch(size=2), 1000)


def test_the_same_change_of_an_object_that_was_created_again_is_another_change() -> None:
    rejections = Rejections()

    for number in range(2 * MAX_REVERTED):
        made = replace(patch(), expect=Expect(f"uid-{number}", "1"))
        assert not rejections.suspends(made, number)
        assert rejections.note([Result(made, Outcome.DONE)], number) == []


def test_a_status_that_is_always_reverted_is_suspended_although_it_contains_a_time() -> None:
    rejections = Rejections()
    reverted = [rejections.note([Result(status(str(step)), Outcome.DONE)], step) for step in range(MAX_REVERTED)]

    assert [len(results) for results in reverted] == [0] * (MAX_REVERTED - 1) + [1]
    assert rejections.suspends(status("99"), 1000)


def test_a_change_that_people_revert_once_a_day_is_made_again() -> None:
    rejections = Rejections()

    for day in range(2 * MAX_REVERTED):
        assert rejections.note([Result(patch(), Outcome.DONE)], day * SOON) == []


def test_changes_that_differ_are_not_counted_together() -> None:
    rejections = Rejections()

    for step in range(2 * MAX_REVERTED):
        assert rejections.note([Result(patch(size=step), Outcome.DONE)], step) == []


def test_answers_that_no_longer_matter_are_forgotten() -> None:
    rejections = Rejections(patience=30)

    for step in range(1000):
        rejections.note(
            [Result(change(Verb.PATCH, leaf(f"{step}"), {"spec": {}}), Outcome.DONE), failed(create(f"{step}"), Invalid("no"))], step
        )

    assert len(rejections._answers) <= SOON + 30 + 60


@pytest.mark.parametrize("deletes", [True, False], ids=["after a delete", "without one"])
def test_a_request_without_quota_is_sent_a_few_times_more_where_something_was_deleted(deletes: bool) -> None:
    rejections, full, at = Rejections(), Forbidden("exceeded quota", by=RefusedBy.QUOTA), 0.0
    if deletes:
        rejections.note([Result(change(Verb.DELETE, leaf("b"), {}), Outcome.DONE)], at)
    tries = 0
    while tries < 100 and not rejections.suspends(create("a"), at):
        tries += 1
        rejections.note([failed(create("a"), full)], at)
        assert rejections.awaits_room(create("a")) is (rejections.next_due(at) == at + ROOM_PAUSE)
        at += ROOM_PAUSE

    assert tries == (MAX_ROOM_TRIES if deletes else 1)
    assert not rejections.awaits_room(create("a"))
