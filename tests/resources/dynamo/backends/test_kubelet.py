"""How a kubelet reads `$` in commands, and how texts are written so that it delivers them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resources.dynamo.backends.kubelet import VariableReference, escaped, parts, references
from tests.resources.dynamo.backends.container_run import expanded

FRAGMENTS = st.lists(st.sampled_from(["$", "$$", "(", ")", "(A)", "$(A)", "A", " ", "'", "é", "\n"]), max_size=12).map("".join)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        ("plain", ["plain"]),
        ("$(A)", [VariableReference("A")]),
        ("a$(B)c", ["a", VariableReference("B"), "c"]),
        ("$$(A)", ["$", "(A)"]),
        ("$$$(A)", ["$", VariableReference("A")]),
        ("$A ${B}", ["$A ${B}"]),
        ("$(A", ["$(A"]),
        ("$(A$$$(", ["$(A", "$", "$("]),
        ("a)$(A", ["a)$(A"]),
        ("$((1 + 1))", [VariableReference("(1 + 1"), ")"]),
    ],
)
def test_a_text_has_literal_parts_and_references(text: str, expected: list[str | VariableReference]) -> None:
    assert list(parts(text)) == expected


def test_a_long_text_of_references_that_are_not_closed_is_read_in_one_go() -> None:
    text = "$(" * 100_000

    assert list(parts(text)) == [text]
    assert list(parts(f")$$(A){text}")) == [")", "$", "(A)" + text]


@given(FRAGMENTS)
def test_the_parts_are_what_a_kubelet_delivers(text: str) -> None:
    variables = {"A": "value"}
    values = [variables.get(part.name, str(part)) if isinstance(part, VariableReference) else part for part in parts(text)]

    assert "".join(values) == expanded(text, variables)


@given(FRAGMENTS)
def test_an_escaped_text_is_delivered_unchanged(text: str) -> None:
    assert expanded(escaped(text), {"A": "value"}) == text


def test_references_are_listed_in_order() -> None:
    assert references("$(B) $$(C) $(A)") == ["B", "A"]
