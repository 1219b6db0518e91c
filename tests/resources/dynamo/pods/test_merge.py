"""What a user set over defaults."""

from typing import Any

import pytest

from resources.dynamo.pods.merge import merged


@pytest.mark.parametrize(
    ("default", "value", "expected"),
    [
        ("a", "b", "b"),
        ({"x": 1, "y": 2}, {"y": 3, "z": 4}, {"x": 1, "y": 3, "z": 4}),
        ({"x": {"y": 1}}, {"x": {"z": 2}}, {"x": {"y": 1, "z": 2}}),
        ([1, 2], [3], [3]),
        ("a", "", "a"),
        ("a", None, "a"),
        (["a"], [], ["a"]),
        ({"x": 1}, {}, {"x": 1}),
        (60, 0, 60),
        (True, False, True),
        (None, 0, 0),
        (None, False, False),
        ("a", ["b"], ["b"]),
    ],
)
def test_a_value_that_is_not_empty_wins(default: Any, value: Any, expected: Any) -> None:
    assert merged({"field": default}, {"field": value}) == {"field": expected}


def test_fields_that_nobody_sets_are_left_out() -> None:
    assert merged({"a": 1}, {"b": None, "c": 2}) == {"a": 1, "c": 2}


def test_neither_argument_is_changed() -> None:
    defaults: dict[str, Any] = {"a": {"b": 1}}
    merged(defaults, {"a": {"b": 2}})["a"]["b"] = 3

    assert defaults == {"a": {"b": 1}}
