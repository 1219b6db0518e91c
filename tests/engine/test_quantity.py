"""Quantities: one amount has many spellings, and any text has an answer."""

from decimal import Decimal

import pytest

from engine.quantity import amount, is_same_quantity, is_zero


@pytest.mark.parametrize(
    ("text", "expected"),
    [("500m", "0.5"), ("1Gi", "1073741824"), ("5.", "5"), (".5", "0.5"), ("+1e3", "1000"), ("-2E", "-2e18"), ("1E2", "100"), ("007", "7")],
)
def test_a_quantity_is_a_number(text: str, expected: str) -> None:
    assert amount(text) == Decimal(expected)


@pytest.mark.parametrize("text", ["", ".", "1 Gi", "Gi", "1.2.3", "1e", "one", "0x10", "\u0661"])
def test_other_text_is_no_quantity(text: str) -> None:
    assert amount(text) is None


def test_one_amount_has_many_spellings() -> None:
    assert is_same_quantity("1000m", 1)
    assert not is_same_quantity("1", True)
    assert is_zero("0Gi")


def test_an_exponent_beyond_any_number_is_no_quantity() -> None:
    assert amount("1e9999999999999999999999") is None
    assert not is_same_quantity("1e9999999999999999999999", "1")


def test_a_long_text_that_is_no_quantity_is_rejected_in_linear_time() -> None:
    assert amount("1" * 1_000_000 + "x") is None
