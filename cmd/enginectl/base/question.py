"""Question: asks a person on a terminal, and nobody else."""

import sys
from contextlib import suppress

from enginectl.base import terminal


def can_ask() -> bool:
    """Whether somebody can read a question and answer it: standard input and stderr are terminals."""
    return sys.stdin is not None and sys.stdin.isatty() and sys.stderr.isatty()


def ask(question: str) -> bool:
    """Whether the answer is yes; everything else, also the end of the input, is no."""
    terminal.flush()
    with suppress(OSError):
        sys.stderr.write(f"{question} [y/N] ")
        sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")
