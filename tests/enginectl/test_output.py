"""How answers look: colour where it helps, characters that the stream can carry."""

import io
from datetime import UTC, datetime, timedelta

import pytest

from engine.report.line import Line
from enginectl.condition import age
from enginectl.output import fault, fitted, shown
from enginectl.values import seconds


class Terminal(io.StringIO):
    """A stream that a person looks at."""

    def isatty(self) -> bool:
        """It is one."""
        return True


class Ascii(io.TextIOWrapper):
    """A stream that carries ASCII alone."""

    def __init__(self) -> None:
        super().__init__(io.BytesIO(), encoding="ascii")


@pytest.fixture(autouse=True)
def terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """The usual environment of a terminal."""
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")


def test_colour_is_for_terminals_alone_and_never_against_somebodys_will(monkeypatch: pytest.MonkeyPatch) -> None:
    line = Line("- delete", "delete")

    assert shown(line, Terminal()) == "\x1b[31m- delete\x1b[0m\n"
    assert shown(line, io.StringIO()) == "- delete\n"
    monkeypatch.setenv("NO_COLOR", "1")
    assert shown(line, Terminal()) == "- delete\n"
    monkeypatch.delenv("NO_COLOR")
    monkeypatch.setenv("TERM", "dumb")
    assert shown(line, Terminal()) == "- delete\n"


def test_a_stream_that_knows_only_ascii_gets_other_signs_and_names_spelled_out() -> None:
    assert fitted("± replace  a → b ×3 …", Ascii()) == "* replace  a > b x3 ~"
    assert fitted("Größe", Ascii()) == "Gr\\xf6\\xdfe"


def test_a_fault_has_a_line_for_each_thing_and_steers_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    fault("one\ntwo \x1b[2J")

    assert capsys.readouterr().err == "engine: one\nengine: two \\x1b[2J\n"


@pytest.mark.parametrize(
    ("span", "expected"),
    [
        (timedelta(seconds=-5), "0s"),
        (timedelta(seconds=119), "119s"),
        (timedelta(seconds=125), "2m5s"),
        (timedelta(minutes=25, seconds=3), "25m"),
        (timedelta(hours=3), "3h"),
        (timedelta(hours=3, minutes=20), "3h20m"),
        (timedelta(days=9, hours=2), "9d2h"),
        (timedelta(days=400), "400d"),
    ],
)
def test_an_age_is_as_exact_as_it_is_young(span: timedelta, expected: str) -> None:
    now = datetime(2026, 1, 1, tzinfo=UTC)

    assert age(now, now - span) == expected


@pytest.mark.parametrize(("text", "expected"), [("90", 90.0), ("1.5", 1.5), ("90s", 90.0), ("1h30m", 5400.0), ("250ms", 0.25)])
def test_a_span_of_time_is_written_as_in_kubernetes_or_as_seconds(text: str, expected: float) -> None:
    assert seconds(text, "--timeout") == expected
