"""Debounce: a status is written when it has stopped changing, and is not delayed for ever."""

from msgspec.structs import replace

from engine.operation import Cause, WriteStatus
from engine.resource import NOW, Body
from engine.runtime.memory import LATEST, SPACING, STEADY, Debounce
from tests.engine.runtime.fakes import leaf


def status(fields: Body, name: str = "leaf") -> WriteStatus:
    return WriteStatus(leaf(name), "differs", Cause.DRIFT, patch=fields)


def test_a_status_is_due_when_it_has_been_the_same_for_a_second() -> None:
    debounce = Debounce()

    assert not debounce.due([status({"ready": 1})], 0.0)
    assert not debounce.due([status({"ready": 1})], 0.9 * STEADY)
    assert debounce.due([status({"ready": 1})], STEADY) == {status({}).key}


def test_a_change_delays_a_status_again_but_not_for_ever() -> None:
    debounce = Debounce()
    due = [step / 2 for step in range(40) if debounce.due([status({"ready": step})], step / 2)]

    assert due[0] == LATEST


def test_a_status_with_the_time_of_writing_is_the_same_status_a_second_later() -> None:
    debounce = Debounce()
    debounce.due([status({"conditions": [{"type": "Ready", "since": NOW}]})], 0.0)

    assert debounce.due([status({"conditions": [{"type": "Ready", "since": NOW}]})], STEADY)


def test_a_status_that_was_written_is_delayed_again_when_it_changes() -> None:
    debounce = Debounce()
    debounce.due([status({"ready": 1})], 0.0)
    debounce.written([status({}).key])

    assert debounce.next_due is None
    assert not debounce.due([status({"ready": 2})], STEADY)
    assert debounce.next_due == 2 * STEADY


def test_a_status_that_no_longer_differs_is_forgotten() -> None:
    debounce = Debounce()
    debounce.due([status({"ready": 1}), status({"ready": 1}, "other")], 0.0)
    debounce.due([status({"ready": 1}, "other")], 0.5)

    assert debounce.due([status({"ready": 1}), status({"ready": 1}, "other")], STEADY) == {status({}, "other").key}


def test_an_urgent_status_is_written_after_a_second_although_it_changes() -> None:
    debounce = Debounce()
    due = [step / 4 for step in range(40) if debounce.due([replace(status({"gone": step}), urgent=step >= 8)], step / 4)]

    assert due[0] == 2.0 + STEADY


def provisional(count: int) -> list[WriteStatus]:
    return [replace(status({"ready": 1}, f"leaf-{number}"), provisional=True) for number in range(count)]


def first_due(statuses: list[WriteStatus], name: str) -> float:
    """When the status of that object is due, if nothing changes."""
    debounce = Debounce()
    return next(step / 4 for step in range(80) if status({}, name).key in debounce.due(statuses, step / 4))


def test_a_few_provisional_statuses_are_written_like_others() -> None:
    assert first_due(provisional(10), "leaf-3") == STEADY


def test_many_provisional_statuses_are_written_later_and_not_for_ever() -> None:
    assert first_due(provisional(200), "leaf-3") == 200 * SPACING
    assert first_due(provisional(5000), "leaf-3") == LATEST


def test_many_provisional_statuses_do_not_delay_one_that_is_final() -> None:
    assert first_due([*provisional(5000), status({"ready": 2}, "final")], "final") == STEADY


def in_namespace(name: str, statuses: list[WriteStatus]) -> list[WriteStatus]:
    return [replace(each, id=each.id._replace(namespace=name)) for each in statuses]


def test_many_provisional_statuses_of_one_namespace_do_not_delay_the_few_of_another() -> None:
    few = in_namespace("another", provisional(2))
    debounce = Debounce()
    debounce.due([*provisional(5000), *few], 0.0)

    assert debounce.due([*provisional(5000), *few], STEADY) == {each.key for each in few}


def test_namespaces_take_turns() -> None:
    of_each = {name: in_namespace(name, provisional(count)) for name, count in (("a", 50), ("b", 100), ("c", 200))}
    everything = [each for statuses in of_each.values() for each in statuses]
    debounce = Debounce()
    first: dict[str, float] = {}
    for step in range(80):
        first = {key: step / 4 for key in debounce.due(everything, step / 4)} | first

    assert {name: {first[each.key] for each in statuses} for name, statuses in of_each.items()} == {
        "a": {150 * SPACING},
        "b": {250 * SPACING},
        "c": {350 * SPACING},
    }


def test_a_status_that_becomes_final_no_longer_waits_for_the_provisional_ones() -> None:
    debounce = Debounce()
    debounce.due(provisional(1000), 0.0)
    statuses = [*provisional(999), status({"ready": 2}, "leaf-999")]
    debounce.due(statuses, 3.0)

    assert debounce.next_due == 3.0 + STEADY
    assert debounce.due(statuses, 3.0 + STEADY) == {status({}, "leaf-999").key}
