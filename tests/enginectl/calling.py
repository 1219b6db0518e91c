"""Calling the command line: in this process, or in another one where signals and pipes matter."""

import atexit
import json
import subprocess
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from enginectl.main import app
from tests.enginectl.fork_server import write_program
from tests.schemas import checked
from tests.waiting import PATIENCE

ROOT = Path(__file__).parents[2]

NO_GANGS = "note: default-scheduler does not schedule gangs: "

WAITING = frozenset({"sync", "delete"})
"""The commands that wait, for five minutes by default: that is one with a quick clock, which a busy machine may need."""


@dataclass(frozen=True, slots=True)
class CommandResult:
    """The exit code of a command, and its output."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        """Its output as JSON; valid, if it has a published schema."""
        return checked(json.loads(self.out))

    @property
    def messages(self) -> list[str]:
        """The lines on stderr, less the one that says which configuration the command works with."""
        return [line for line in self.err.splitlines() if not line.startswith("configuration: ")]

    @property
    def errors(self) -> str:
        """Its output on stderr, less what every command says of the configuration and of a scheduler that schedules no gangs."""
        return "".join(line for line in self.err.splitlines(keepends=True) if not line.startswith((NO_GANGS, "configuration: ")))

    @property
    def last(self) -> str:
        """The last line of its output."""
        return self.out.splitlines()[-1] if self.out else ""


class Engine:
    """The command line."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self.capsys = capsys

    def __call__(self, *words: str | Path, traceback: bool = False) -> CommandResult:
        """Run `engine WORDS` in this process, with patience if it waits. There must be no traceback unless `traceback`."""
        patience = ("--timeout", "1h") if WAITING.intersection(words[:1]) and "--timeout" not in words else ()
        code = app([*map(str, words[:1]), *patience, *map(str, words[1:])])
        captured = self.capsys.readouterr()
        assert traceback or "Traceback" not in captured.err
        return CommandResult(code, captured.out, captured.err)


def command(*words: str | Path, fresh: bool = False) -> list[str]:
    """`engine WORDS` as the words of another process: `fresh` where the start of Python matters. It needs an `environment`."""
    return [*((sys.executable, "-m", "enginectl") if fresh else (str(program()),)), *map(str, words)]


def environment(**variables: str) -> dict[str, str]:
    """The whole environment of another process: these variables, nothing of the user's."""
    return {"PATH": "/usr/bin:/bin", "PYTHONPATH": f"{ROOT}:{ROOT / 'cmd'}", "HOME": "/nonexistent", "PYTHONUTF8": "1", **variables}


def started(*words: str | Path, fresh: bool = False, **variables: str) -> subprocess.Popen[str]:
    """Start `engine WORDS` in another process: `fresh` where the start of Python matters. The caller ends it."""
    return subprocess.Popen(
        command(*words, fresh=fresh),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(**variables),
    )


def finished(*words: str | Path, fresh: bool = False, **variables: str) -> CommandResult:
    """Run `engine WORDS` in another process to its end: `fresh` where the start of Python matters."""
    with started(*words, fresh=fresh, **variables) as process:
        out, err = process.communicate(timeout=PATIENCE + 60)
    return CommandResult(process.returncode, out, err)


@cache
def program() -> Path:
    """`engine` as an executable file that takes hardly any time to start: it has a process that has started run a fork of itself
    (`fork_server.py`). It needs an `environment`.
    """
    folder = TemporaryDirectory(prefix="engine-")
    file, address = Path(folder.name, "engine"), f"{folder.name}/socket"
    words = [sys.executable, "-m", "tests.enginectl.fork_server", address]
    server = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment(), cwd=ROOT)
    assert server.stdin is not None and server.stdout is not None and server.stdout.readline()
    write_program(file, address)
    for end in (folder.cleanup, server.wait, server.stdout.close, server.stdin.close):
        atexit.register(end)
    return file
