"""Durations: what Go's parser accepts is accepted, digit for digit; what it rejects is rejected."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine import duration

SPELLINGS = [
    ("0", 0, "0s"),
    ("-0", 0, "0s"),
    ("4h", 14_400_000_000_000, "4h0m0s"),
    ("4h0m0s", 14_400_000_000_000, "4h0m0s"),
    ("1h30m", 5_400_000_000_000, "1h30m0s"),
    ("90m", 5_400_000_000_000, "1h30m0s"),
    ("+15s", 15_000_000_000, "15s"),
    ("-1.5h", -5_400_000_000_000, "-1h30m0s"),
    (".5s", 500_000_000, "500ms"),
    ("1.s", 1_000_000_000, "1s"),
    ("1m0.25s", 60_250_000_000, "1m0.25s"),
    ("3ns2us", 2_003, "2.003\u00b5s"),
    ("7\u00b5s", 7_000, "7\u00b5s"),
    ("7\u03bcs", 7_000, "7\u00b5s"),
    ("1s1s", 2_000_000_000, "2s"),
    ("0.3333333333333333333h", 1_200_000_000_000, "20m0s"),
    ("0.100000000000000000000h", 360_000_000_000, "6m0s"),
    ("9223372036854775807ns", 2**63 - 1, "2562047h47m16.854775807s"),
    ("-9223372036854775808ns", -(2**63), "-2562047h47m16.854775808s"),
]


@pytest.mark.parametrize(("text", "count", "canonical"), SPELLINGS)
def test_every_form_that_go_accepts_is_parsed_and_written_as_go_does(text: str, count: int, canonical: str) -> None:
    assert duration.nanoseconds(text) == count
    assert duration.canonical(text) == canonical


@pytest.mark.parametrize(
    "text",
    [
        "",
        "-",
        "4",
        "00",
        "h",
        ".s",
        ".",
        "4 h",
        " 4h",
        "4h ",
        "4h\n",
        "4d",
        "4H",
        "--4h",
        "1h-1m",
        "1e3s",
        "\u0661s",
        "4h0",
        "P1D",
        "9" * 5_000 + "s",
    ],
)
def test_what_go_rejects_is_rejected(text: str) -> None:
    with pytest.raises(ValueError, match="duration"):
        duration.nanoseconds(text)


@pytest.mark.parametrize("text", ["9223372036854775808ns", "2562048h", "2562047h47m16.854775808s", "-9223372036854775809ns"])
def test_a_duration_beyond_64_bits_is_rejected(text: str) -> None:
    with pytest.raises(ValueError, match="292 years"):
        duration.parse(text)


@given(st.integers(-(2**63), 2**63 - 1))
def test_the_canonical_spelling_loses_no_nanosecond(count: int) -> None:
    text = duration.canonical(f"{count}ns")

    assert duration.nanoseconds(text) == count
    assert duration.canonical(text) == text


@given(st.timedeltas(timedelta(days=-106_000), timedelta(days=106_000)))
def test_parsing_a_written_duration_returns_the_same_timedelta(span: timedelta) -> None:
    assert duration.parse(duration.spell(span)) == span


@given(st.text("0123456789.hmsun-+ µ", max_size=12))
def test_any_text_is_a_duration_or_raises_value_error(text: str) -> None:
    try:
        count = duration.nanoseconds(text)
    except ValueError:
        return
    assert duration.nanoseconds(duration.canonical(text)) == count


def test_fractions_of_a_microsecond_are_truncated_towards_zero() -> None:
    assert duration.parse("1999ns") == timedelta(microseconds=1)
    assert duration.parse("-1999ns") == timedelta(microseconds=-1)


def test_a_timedelta_beyond_64_bits_cannot_be_written() -> None:
    with pytest.raises(ValueError, match="too long"):
        duration.spell(timedelta(days=200_000))


def test_a_long_text_that_is_no_duration_is_rejected_in_linear_time() -> None:
    with pytest.raises(ValueError, match="not a duration"):
        duration.parse("1" * 1_000_000)
