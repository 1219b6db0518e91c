"""Logs: one line for each event, whatever its values contain."""

import io
import json
import subprocess
import sys

import pytest

from engine.errors import Forbidden
from engine.result import Outcome, Result
from engine.runtime.logs import Format, Log, logger
from engine.runtime.progress import LoggedProgress
from tests.engine.runtime.fakes import create, leaf


def logger_and_stream(format: Format | None, *, verbose: bool = False) -> tuple[Log, io.StringIO]:
    stream = io.StringIO()
    return logger(stream, format=format, verbose=verbose), stream


def test_the_default_is_json_where_no_terminal_is() -> None:
    log, stream = logger_and_stream(None)
    log.info("applied", object=leaf("a"), count=3)

    line = json.loads(stream.getvalue())

    assert (line["event"], line["level"], line["object"], line["count"]) == ("applied", "info", "Leaf/default/a", 3)
    assert line["timestamp"].endswith("Z")


def test_text_consists_of_keys_and_values() -> None:
    log, stream = logger_and_stream("text")
    log.warning("failed", object=leaf("a"), error=Forbidden("is forbidden"))

    assert "failed object=Leaf/default/a error='is forbidden'" in stream.getvalue()


@pytest.mark.parametrize("format", ["text", "json"])
def test_a_value_can_neither_control_the_terminal_nor_forge_a_line(format: Format) -> None:
    log, stream = logger_and_stream(format)
    log.info("applied", object="a\x1b[2J\n2026 [info] all is well \u202egnp")

    assert stream.getvalue().count("\n") == 1
    assert not set("\x1b\u202e") & set(stream.getvalue())


def test_a_traceback_keeps_its_lines() -> None:
    log, stream = logger_and_stream("text")
    try:
        raise ZeroDivisionError("nothing to divide by")
    except ZeroDivisionError:
        log.error("pass failed", exc_info=True)

    assert "Traceback" in stream.getvalue()
    assert "ZeroDivisionError: nothing to divide by\n" in stream.getvalue()


def test_debug_events_are_logged_only_when_verbose() -> None:
    quiet, terse = logger_and_stream("json")
    loud, long = logger_and_stream("json", verbose=True)
    for log in (quiet, loud):
        log.debug("idle")

    assert terse.getvalue() == ""
    assert "idle" in long.getvalue()


def test_every_operation_is_a_line_and_a_failure_is_a_warning() -> None:
    log, stream = logger_and_stream("json")
    progress = LoggedProgress(log)
    progress.applied(Result(create("a"), Outcome.DONE))
    progress.applied(Result(create("b"), Outcome.FAILED, error=Forbidden("is forbidden")))

    applied, failed = map(json.loads, stream.getvalue().splitlines())

    assert (applied["event"], applied["operation"], applied["object"], applied["why"]) == ("applied", "create", "Leaf/default/a", "missing")
    assert (failed["level"], failed["error"]) == ("warning", "is forbidden")


def test_structlog_is_not_imported_before_something_is_logged() -> None:
    script = "import sys, engine.runtime.loop, engine.runtime.session; sys.exit('structlog' in sys.modules)"

    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0
