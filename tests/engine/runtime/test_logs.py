"""Logs: one line for each event, whatever its values contain."""

import errno
import io
import json
import subprocess
import sys

import pytest

from engine.errors import Forbidden
from engine.operation import Outcome, Result
from engine.runtime.logs import Format, Log, logger, lost_lines
from engine.runtime.progress import LoggedProgress
from tests.engine.runtime.fakes import create, leaf, plan


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


class Full(io.StringIO):
    """A stream on a full disk."""

    def write(self, text: str) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")


def test_a_line_that_cannot_be_written_is_lost_and_counted() -> None:
    closed, before = io.StringIO(), lost_lines()
    closed.close()
    for stream in (Full(), closed):
        logger(stream, format="json").info("applied", object=leaf("a"))

    assert lost_lines() - before == 2


def test_a_line_about_an_operation_names_root_cause_and_parent() -> None:
    log, stream = logger_and_stream("json")
    progress, operation = LoggedProgress(log), create("a", owner="uid-1")
    progress.planned([plan(operation)], 1)
    progress.applied(Result(operation, Outcome.DONE))

    line = json.loads(stream.getvalue())
    assert (line["root"], line["cause"], line["parent"]) == ("Root/default/root", "intent", "Root/root")


def test_structlog_is_not_imported_before_something_is_logged() -> None:
    script = "import sys, engine.runtime.loop, engine.runtime.session; sys.exit('structlog' in sys.modules)"

    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0
