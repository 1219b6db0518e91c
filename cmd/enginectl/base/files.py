"""Reading and writing files that users name on the command line."""

import os
import stat
import sys
from array import array
from collections.abc import Iterator
from contextlib import contextmanager
from fcntl import ioctl
from pathlib import Path
from termios import FIONREAD
from typing import BinaryIO

from engine.report.printable import printable
from enginectl.base.exit_codes import UsageError

KUSTOMIZATIONS = ("kustomization.yaml", "kustomization.yml", "Kustomization")
"""The files that make a directory a kustomization."""
STDIN = Path("-")
PEEKED = 65_536
"""Bytes of a file in which manifests are recognised."""


def read_bytes(file: Path, limit: int = -1) -> bytes:
    """The content of a file, or of standard input for `-`: at most `limit` bytes, if that is not negative.

    Raises `UsageError` if it cannot be read.
    """
    with open_stream(file) as stream:
        try:
            return stream.read(limit)
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


@contextmanager
def private_file(out: Path, option: str) -> Iterator[BinaryIO]:
    """A file to write, which replaces `out` when the block has ended well. Only its owner may read it.

    Raises `UsageError`, which names the option, if it cannot be written.
    """
    draft = out.parent / f".{out.name}.{os.getpid()}"
    try:
        try:
            with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
                yield file
            draft.replace(out)
        finally:
            draft.unlink(missing_ok=True)
    except OSError as error:
        raise UsageError(f"{option} {printable(str(out))}: {(error.strerror or 'cannot be written').lower()}") from None


def standard_input() -> BinaryIO:
    """Standard input as bytes. Raises `UsageError` if the process was started without one."""
    if sys.stdin is None:
        raise UsageError("standard input is closed")
    return sys.stdin.buffer


def has_unread_input() -> bool:
    """Whether standard input is a pipe with content that nothing has read yet, or a file with what looks like manifests: the list of a loop
    is none. Takes nothing from it, and never waits."""
    waiting = array("i", [0])
    try:
        if not os.isatty(0):
            ioctl(0, FIONREAD, waiting)
        is_file = stat.S_ISREG(os.fstat(0).st_mode)
    except OSError:  # It is closed, or a device without content.
        return False
    return waiting[0] > 0 and (not is_file or b"apiVersion" in os.pread(0, PEEKED, os.lseek(0, 0, os.SEEK_CUR)))


def write_text(file: Path, text: str, option: str) -> None:
    """Write a file as a whole: a reader sees the old content or the new one. What is no regular file, e.g. a pipe, is written directly.

    Raises `UsageError` with the name of the option if it cannot be written.
    """
    try:
        if file.exists() and not stat.S_ISREG(file.stat().st_mode):
            file.write_text(text, encoding="utf-8")
        else:
            _replace(file.resolve(), text)
    except OSError as error:
        raise unwritable(file, option, error) from None


def _replace(file: Path, text: str) -> None:
    draft = file.parent / f".{file.name}.{os.getpid()}"
    try:
        with draft.open("x", encoding="utf-8") as stream:
            stream.write(text)
        draft.replace(file)
    finally:
        draft.unlink(missing_ok=True)


def append_text(file: Path, text: str, option: str) -> None:
    """Append to a file, which is made if it does not exist. Raises `UsageError` with the name of the option if it cannot be written."""
    try:
        with file.open("a", encoding="utf-8") as stream:
            stream.write(text)
    except OSError as error:
        raise unwritable(file, option, error) from None


def require_directory(file: Path, option: str) -> None:
    """Raise `UsageError` with the name of the option if the directory of a file that will be written does not exist."""
    if not file.parent.is_dir():
        raise UsageError(f"{option} {printable(str(file))}: there is no directory {printable(str(file.parent))}")


def unwritable(file: Path, option: str, error: OSError) -> UsageError:
    """The error of a file that cannot be written, with the option that names it."""
    return UsageError(f"{option} {printable(str(file))}: {(error.strerror or 'cannot be written').lower()}")


def unreadable(file: Path, error: OSError) -> UsageError:
    """The error of a file that cannot be read, e.g. `x.yaml: no such file or directory`."""
    return UsageError(f"{printable(str(file))}: {(error.strerror or 'cannot be read').lower()}")


def is_kustomization(directory: Path) -> bool:
    """Whether the path is a directory with a kustomization."""
    return any((directory / name).is_file() for name in KUSTOMIZATIONS)
