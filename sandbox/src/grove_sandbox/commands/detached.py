"""A sandbox in a process of its own, which goes on when the command that started it has returned."""

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from fcntl import LOCK_EX, LOCK_NB, flock
from pathlib import Path
from tempfile import TemporaryFile

from grove_sandbox.product import Clock, InputError, UsageError, terminal

PID_FILE = "pid"
"""The file in the directory of a sandbox with the number of its process."""
PATIENCE = 15.0
"""Seconds that a sandbox may take to end. It is killed after that."""
PAUSE = 0.05


def start(words: Sequence[str]) -> None:
    """Run `engine WORDS` until it serves, write what it writes then, and leave it running. Raises `InputError` if it ends before."""
    # Not a pipe for stderr: the process goes on writing when its reader has ended.
    with TemporaryFile() as errors:
        process = subprocess.Popen(
            [sys.executable, "-m", "enginectl", *words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
            start_new_session=True,
        )
        assert process.stdout is not None
        line = process.stdout.readline()
        process.stdout.close()
        if not line:
            process.wait()
            errors.seek(0)
            messages = [each.removeprefix("engine: ") for each in errors.read().decode(errors="replace").splitlines()]
            raise InputError("; ".join(each for each in messages if not each.startswith(("exit ", "try "))) or "the sandbox has ended")
    terminal.print_text(line.decode())
    terminal.flush()


async def stop(directory: Path, clock: Clock) -> bool:
    """End the sandbox that runs in a directory, and wait until it has ended. Returns whether one ran. Raises `UsageError`."""
    try:
        folder = os.open(directory, os.O_RDONLY)
    except OSError as error:
        raise UsageError(f"--dir {directory}: {(error.strerror or 'cannot be used').lower()}") from None
    try:
        if _is_free(folder):
            return False
        process = _process_of(directory)
        os.kill(process, signal.SIGTERM)
        give_up_at = clock.monotonic() + PATIENCE
        while not _is_free(folder):
            if clock.monotonic() > give_up_at:
                with suppress(ProcessLookupError):
                    os.kill(process, signal.SIGKILL)
            await clock.sleep(PAUSE)
        return True
    finally:
        os.close(folder)


def _is_free(folder: int) -> bool:
    """Whether no sandbox holds the lock of the directory."""
    try:
        flock(folder, LOCK_EX | LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _process_of(directory: Path) -> int:
    """The number of the process of the sandbox in a directory. Raises `UsageError` if it is not written there."""
    try:
        return int((directory / PID_FILE).read_text(encoding="ascii"))
    except (OSError, ValueError):
        raise UsageError(f"--dir {directory}: the sandbox there has not written its process; end it with Ctrl-C") from None
