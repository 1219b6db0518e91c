"""How output is written: colour on terminals only, and in characters that the stream has."""

import io
from datetime import UTC, datetime, timedelta

import pytest

from engine.report.printable import Line
from enginectl.base.options import parse_seconds
from enginectl.base.terminal import encodable, error, formatted
from enginectl.output.tables import age


class Terminal(io.StringIO):
    """A terminal."""

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


def test_colour_is_only_for_terminals_that_want_it(monkeypatch: pytest.MonkeyPatch) -> None:
    line = Line("- delete", "delete")

    assert formatted(line, Terminal()) == "\x1b[31m- delete\x1b[0m\n"
    assert formatted(line, io.StringIO()) == "- delete\n"
    monkeypatch.setenv("NO_COLOR", "1")
    assert formatted(line, Terminal()) == "- delete\n"
    monkeypatch.delenv("NO_COLOR")
    monkeypatch.setenv("TERM", "dumb")
    assert formatted(line, Terminal()) == "- delete\n"


def test_an_ascii_stream_gets_other_signs_and_escaped_names() -> None:
    assert encodable("± replace  a → b ×3 …", Ascii()) == "* replace  a > b x3 ~"
    assert encodable("Größe", Ascii()) == "Gr\\xf6\\xdfe"


def test_an_error_message_has_a_prefix_on_each_line_and_no_control_characters(capsys: pytest.CaptureFixture[str]) -> None:
    error("one\ntwo \x1b[2J")

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
def test_an_age_is_more_exact_the_smaller_it_is(span: timedelta, expected: str) -> None:
    now = datetime(2026, 1, 1, tzinfo=UTC)

    assert age(now, now - span) == expected


@pytest.mark.parametrize(("text", "expected"), [("90", 90.0), ("1.5", 1.5), ("90s", 90.0), ("1h30m", 5400.0), ("250ms", 0.25)])
def test_a_duration_is_written_as_in_kubernetes_or_in_seconds(text: str, expected: float) -> None:
    assert parse_seconds(text, "--timeout") == expected
