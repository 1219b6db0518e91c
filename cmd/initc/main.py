"""The `grove-initc` command: its arguments, its log lines, and its exit code."""

import argparse
import os
import signal
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import FrameType
from typing import NoReturn

from initc.environment import EnvironmentMissing, read_environment
from initc.wait import wait

MAX_LINE = 500


class ArgumentError(Exception):
    """The arguments cannot be used."""


class StoppedBySignal(BaseException):
    """A signal has ended the wait."""


def main(arguments: Sequence[str] | None = None, environ: Mapping[str, str] = os.environ, root: Path = Path("/")) -> int:
    """Wait for the cliques in the arguments. Returns 0 when all are ready, 1 after a signal or if the environment is incomplete.

    `root` is the directory under which the pod's volumes are mounted.
    """
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _stop)
    log = ContainerLog()
    try:
        required = required_pods(sys.argv[1:] if arguments is None else arguments)
        if required:
            wait(read_environment(environ, root), required, log.write, threading.Event().wait)
    except (ArgumentError, EnvironmentMissing) as error:
        log.write(str(error))
        return 1
    except StoppedBySignal as stop:
        log.write(str(stop))
        return 1
    log.write("all pods are ready")
    return 0


def required_pods(arguments: Sequence[str]) -> dict[str, int]:
    """Clique -> how many of its pods must be ready. If a clique is named twice, the last number counts. Raises `ArgumentError`."""
    parser = _Parser(prog="grove-initc", description=__doc__, allow_abbrev=False)
    parser.add_argument(
        "-p",
        "--podcliques",
        metavar="NAME:COUNT",
        action="append",
        default=[],
        help="a clique of this pod's gang, and how many of its pods must be ready; may be repeated",
    )
    return dict(map(_required, parser.parse_args(arguments).podcliques))


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        """Raise `ArgumentError` instead of printing the usage and exiting with 2."""
        raise ArgumentError(message)


def _required(text: str) -> tuple[str, int]:
    """Clique and count from `NAME:COUNT`. Raises `ArgumentError`."""
    name, _, count = text.rpartition(":")
    if not name or not (count.isascii() and count.isdecimal() and len(count) < 10 and int(count)):
        raise ArgumentError(f"--podcliques takes the name of a clique and a number above zero, as in name:1; not {text[:80]!r}")
    return name, int(count)


def _stop(number: int, _: FrameType | None) -> NoReturn:
    raise StoppedBySignal(f"stopped by {signal.Signals(number).name}")


class ContainerLog:
    """The log of the container: a line on stderr whenever there is something new."""

    def __init__(self) -> None:
        self._last = ""

    def write(self, text: str) -> None:
        """Write one line without control characters, unless it equals the previous one."""
        line = "".join(character if character.isprintable() else "?" for character in text[:MAX_LINE])
        if line != self._last:
            sys.stderr.write(f"grove-initc: {line}\n")
            sys.stderr.flush()
        self._last = line
