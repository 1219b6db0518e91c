"""Times as Go reads them: what is stored is in UTC and as exact as its kind; what is no time is said in Go's words."""

import pytest

from grove_sandbox.types.go_time import MICROSECONDS, SECONDS, canonical, is_date_time

READ = [
    ("2026-01-02T03:04:05Z", SECONDS, "2026-01-02T03:04:05Z"),
    ("2026-01-02T03:04:05+02:00", SECONDS, "2026-01-02T01:04:05Z"),
    ("2026-01-01T23:30:00-02:30", SECONDS, "2026-01-02T02:00:00Z"),
    ("2026-01-02T03:04:05.678Z", SECONDS, "2026-01-02T03:04:05Z"),
    ("2026-01-02T03:04:05,5Z", SECONDS, "2026-01-02T03:04:05Z"),
    ("2026-01-02T3:04:05Z", SECONDS, "2026-01-02T03:04:05Z"),
    ("0001-01-01T00:00:00Z", SECONDS, None),
    ("0000-01-01T00:00:00Z", SECONDS, "0000-01-01T00:00:00Z"),
    ("2026-01-02T03:04:05.678901-02:00", MICROSECONDS, "2026-01-02T05:04:05.678901Z"),
    ("2026-01-02T03:04:05.000000Z", MICROSECONDS, "2026-01-02T03:04:05.000000Z"),
]
REFUSED = [
    ("yesterday", 'as "2006-01-02T15:04:05Z07:00": cannot parse "yesterday" as "2006"'),
    ("2026-13-02T03:04:05Z", ": month out of range"),
    ("2026-02-30T03:04:05Z", ": day out of range"),
    ("2026-01-02T03:04:05Zulu", ': extra text: "ulu"'),
    ("2026-01-02T03:04:05+25:00", ": time zone offset hour out of range"),
    ("2026-01-02T03:04:05+00:61", ": time zone offset minute out of range"),
    ("٢٠٢٦-01-02T03:04:05Z", r'cannot parse "\xd9\xa2\xd9\xa0\xd9\xa2\xd9\xa6-01-02T03:04:05Z" as "2006"'),
    ("\ud800", 'as "2006"'),
]


@pytest.mark.parametrize(("text", "layout", "stored"), READ)
def test_a_time_is_stored_in_utc(text: str, layout: tuple[str, ...], stored: str | None) -> None:
    assert canonical(text, layout) == stored


@pytest.mark.parametrize(("text", "why"), REFUSED)
def test_what_is_no_time_is_refused_in_gos_words(text: str, why: str) -> None:
    with pytest.raises(ValueError, match="parsing time") as refused:
        canonical(text, SECONDS)

    assert why in str(refused.value)


@pytest.mark.parametrize(
    ("text", "passes"),
    [("2026-01-02T03:04:05Z", True), ("2026-01-02t23:59:59.9+99:99", True), ("2026-02-30T03:04:05Z", False), ("2026-01-02", False)],
)
def test_a_schemas_times_are_looked_at_less_closely(text: str, passes: bool) -> None:
    assert is_date_time(text) == passes
