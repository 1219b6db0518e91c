"""Logs: one line per event, whoever chose the values."""

import io
import json
import subprocess
import sys

import pytest

from engine.errors import Forbidden
from engine.result import Outcome, Result
from engine.runtime.logs import Format, Log, logger
from engine.runtime.progress import Lines
from tests.engine.runtime.fakes import create, leaf


def told(format: Format | None, *, verbose: bool = False) -> tuple[Log, io.StringIO]:
    stream = io.StringIO()
    return logger(stream, format=format, verbose=verbose), stream


def test_machines_are_told_in_json_unless_somebody_looks() -> None:
    log, stream = told(None)
    log.info("done", object=leaf("a"), count=3)

    line = json.loads(stream.getvalue())

    assert (line["event"], line["level"], line["object"], line["count"]) == ("done", "info", "Leaf/default/a", 3)
    assert line["timestamp"].endswith("Z")


def test_people_are_told_in_keys_and_values() -> None:
    log, stream = told("text")
    log.warning("failed", object=leaf("a"), error=Forbidden("not for you"))

    assert "failed object=Leaf/default/a error='not for you'" in stream.getvalue()


@pytest.mark.parametrize("format", ["text", "json"])
def test_a_value_can_neither_steer_the_terminal_nor_forge_a_line(format: Format) -> None:
    log, stream = told(format)
    log.info("done", object="a\x1b[2J\n2026 [info] all is well \u202egnp")

    assert stream.getvalue().count("\n") == 1
    assert not set("\x1b\u202e") & set(stream.getvalue())


def test_a_traceback_keeps_its_lines() -> None:
    log, stream = told("text")
    try:
        raise ZeroDivisionError("nothing to divide by")
    except ZeroDivisionError:
        log.error("pass failed", exc_info=True)

    assert "Traceback" in stream.getvalue()
    assert "ZeroDivisionError: nothing to divide by\n" in stream.getvalue()


def test_details_are_told_only_to_who_asks() -> None:
    quiet, terse = told("json")
    loud, long = told("json", verbose=True)
    for log in (quiet, loud):
        log.debug("resting")

    assert terse.getvalue() == ""
    assert "resting" in long.getvalue()


def test_every_operation_is_a_line_and_a_failure_is_a_warning() -> None:
    log, stream = told("json")
    lines = Lines(log)
    lines.done(Result(create("a"), Outcome.DONE))
    lines.done(Result(create("b"), Outcome.FAILED, error=Forbidden("not for you")))

    done, failed = map(json.loads, stream.getvalue().splitlines())

    assert (done["event"], done["operation"], done["object"], done["why"]) == ("done", "create", "Leaf/default/a", "wanted")
    assert (failed["level"], failed["error"]) == ("warning", "not for you")


def test_nobody_pays_for_logs_who_does_not_log() -> None:
    script = "import sys, engine.runtime.loop, engine.runtime.session; sys.exit('structlog' in sys.modules)"

    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0
