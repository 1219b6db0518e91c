"""Question: asks a person on a terminal, and nobody else."""

import os
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Final

import anyio

from enginectl.base import terminal

ATTENTION: Final = 0.1
"""Seconds between two looks at whether the command has been cancelled."""
LONGEST_ANSWER: Final = 1000
"""Bytes that are read of an answer."""


def can_ask() -> bool:
    """Whether somebody can read a question and answer it: standard input and stderr are terminals."""
    return all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stderr))


async def ask(question: str, is_cancelled: Callable[[], bool]) -> bool:
    """Whether the answer is yes. Everything else is no: the end of the input, and that the command is cancelled."""
    terminal.flush()
    with suppress(OSError):
        sys.stderr.write(f"{question} [y/N] ")
        sys.stderr.flush()
    while not is_cancelled():
        with anyio.move_on_after(ATTENTION):
            await anyio.wait_readable(sys.stdin.fileno())
            return os.read(sys.stdin.fileno(), LONGEST_ANSWER).decode(errors="replace").strip().lower() in ("y", "yes")
    return False
