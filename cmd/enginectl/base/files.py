"""Reading files that users name on the command line."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from engine.report.printable import printable
from enginectl.base.errors import UsageError

STDIN = Path("-")


def read_bytes(file: Path) -> bytes:
    """The content of a file, or of standard input for `-`. Raises `UsageError` if it cannot be read."""
    if file == STDIN:
        return standard_input().read()
    try:
        return file.read_bytes()
    except OSError as error:
        raise unreadable(file, error) from None


@contextmanager
def open_stream(file: Path) -> Iterator[BinaryIO]:
    """The file, or standard input for `-`, for reading piece by piece. Raises `UsageError` if it cannot be opened."""
    if file == STDIN:
        yield standard_input()
        return
    try:
        stream = file.open("rb")
    except OSError as error:
        raise unreadable(file, error) from None
    with stream:
        yield stream


def standard_input() -> BinaryIO:
    """Standard input as bytes. Raises `UsageError` if the process was started without one."""
    if sys.stdin is None:
        raise UsageError("standard input is closed")
    return sys.stdin.buffer


def unreadable(file: Path, error: OSError) -> UsageError:
    """The error of a file that cannot be read, e.g. `x.yaml: no such file or directory`."""
    return UsageError(f"{printable(str(file))}: {(error.strerror or 'cannot be read').lower()}")
