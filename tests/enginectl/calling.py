"""Calling the command line: in this process where only words matter, in another where signals and pipes do."""

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from enginectl.main import app

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True, slots=True)
class QueryResult:
    """How a command ended, and what it said."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        """What it said, as JSON."""
        return json.loads(self.out)

    @property
    def last(self) -> str:
        """The last line of the answer."""
        return self.out.splitlines()[-1] if self.out else ""


class Engine:
    """The command line, called with words."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self.capsys = capsys

    def __call__(self, *words: str | Path, traceback: bool = False) -> QueryResult:
        """What `engine WORDS` answers; never with a traceback, unless it was asked for."""
        code = app([str(word) for word in words])
        told = self.capsys.readouterr()
        assert traceback or "Traceback" not in told.err
        return QueryResult(code, told.out, told.err)


def started(*words: str | Path, **environment: str) -> subprocess.Popen[str]:
    """`engine WORDS` in a process of its own; end it."""
    return subprocess.Popen(
        [sys.executable, "-m", "enginectl", *map(str, words)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={"PATH": "/usr/bin:/bin", "PYTHONPATH": f"{ROOT}:{ROOT / 'cmd'}", "HOME": "/nonexistent", "PYTHONUTF8": "1", **environment},
    )


def finished(*words: str | Path, **environment: str) -> QueryResult:
    """What `engine WORDS` answers from a process of its own."""
    with started(*words, **environment) as process:
        out, err = process.communicate(timeout=60)
    return QueryResult(process.returncode, out, err)
