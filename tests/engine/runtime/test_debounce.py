"""Debounce: a state is written at rest, and not put off for ever."""

from dataclasses import replace

from engine.operation import Cause, Operation
from engine.resource import Body
from engine.runtime.debounce import LATEST, STEADY, Debounce
from engine.verb import Verb
from tests.engine.runtime.fakes import leaf

NOON = "2026-01-01T12:00:00Z"


def state(fields: Body, name: str = "leaf") -> Operation:
    return Operation(Verb.STATUS, leaf(name), "differs", Cause.DRIFT, fields)


def test_a_state_is_due_once_it_has_stayed_the_same_for_a_second() -> None:
    states = Debounce()

    assert not states.due([state({"ready": 1})], 0.0, NOON)
    assert not states.due([state({"ready": 1})], 0.9 * STEADY, NOON)
    assert states.due([state({"ready": 1})], STEADY, NOON) == {state({}).key}


def test_a_change_begins_the_second_anew_but_not_for_ever() -> None:
    states = Debounce()
    due = [step / 2 for step in range(40) if states.due([state({"ready": step})], step / 2, NOON)]

    assert due[0] == LATEST


def test_a_state_that_only_tells_a_later_time_is_the_same_state() -> None:
    states = Debounce()
    states.due([state({"conditions": [{"type": "Ready", "since": NOON}]})], 0.0, NOON)

    assert states.due([state({"conditions": [{"type": "Ready", "since": "2026-01-01T12:00:01Z"}]})], STEADY, "2026-01-01T12:00:01Z")


def test_a_state_that_was_written_waits_again() -> None:
    states = Debounce()
    states.due([state({"ready": 1})], 0.0, NOON)
    states.written([state({}).key])

    assert states.next_due is None
    assert not states.due([state({"ready": 2})], STEADY, NOON)
    assert states.next_due == 2 * STEADY


def test_a_state_that_no_longer_differs_is_forgotten() -> None:
    states = Debounce()
    states.due([state({"ready": 1}), state({"ready": 1}, "other")], 0.0, NOON)
    states.due([state({"ready": 1}, "other")], 0.5, NOON)

    assert states.due([state({"ready": 1}), state({"ready": 1}, "other")], STEADY, NOON) == {state({}, "other").key}


def test_a_state_that_tells_a_beginning_is_written_a_second_after_it_however_it_moves() -> None:
    states = Debounce()
    due = [step / 4 for step in range(40) if states.due([replace(state({"gone": step}), urgent=step >= 8)], step / 4, NOON)]

    assert due[0] == 2.0 + STEADY
