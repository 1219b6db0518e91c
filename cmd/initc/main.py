"""The `grove-initc` command: what it is told, what it tells, and how it ends."""

import argparse
import os
import signal
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import FrameType
from typing import NoReturn

from initc.place import Misplaced, find
from initc.wait import wait

LONGEST_LINE = 500


class Misused(Exception):
    """A command line that makes no sense."""


class Stopped(BaseException):
    """Somebody has asked us to stop."""


def main(arguments: Sequence[str] | None = None, environ: Mapping[str, str] = os.environ, root: Path = Path("/")) -> int:
    """Waiting for the cliques on the command line. QueryResults 0 when all are ready, 1 when that cannot be told or somebody stops us.

    `root` is where the pod's files are mounted.
    """
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _stop)
    lines = Lines()
    try:
        needs = needed(sys.argv[1:] if arguments is None else arguments)
        if needs:
            wait(find(environ, root), needs, lines.tell, threading.Event().wait)
    except (Misused, Misplaced) as error:
        lines.tell(str(error))
        return 1
    except Stopped as stop:
        lines.tell(str(stop))
        return 1
    lines.tell("all are ready")
    return 0


def needed(arguments: Sequence[str]) -> dict[str, int]:
    """Clique -> how many of its pods must be ready; of a clique that is named twice the last number counts. Raises `Misused`."""
    parser = _Parser(prog="grove-initc", description=__doc__, allow_abbrev=False)
    parser.add_argument(
        "-p",
        "--podcliques",
        metavar="NAME:COUNT",
        action="append",
        default=[],
        help="a clique of this pod's gang, and how many of its pods must be ready; may be repeated",
    )
    return dict(map(_need, parser.parse_args(arguments).podcliques))


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        """One line instead of a page."""
        raise Misused(message)


def _need(text: str) -> tuple[str, int]:
    name, _, count = text.rpartition(":")
    if not name or not (count.isascii() and count.isdecimal() and len(count) < 10 and int(count)):
        raise Misused(f"--podcliques takes the name of a clique and a number above zero, as in name:1; not {text[:80]!r}")
    return name, int(count)


def _stop(number: int, _: FrameType | None) -> NoReturn:
    raise Stopped(f"stopped by {signal.Signals(number).name}")


class Lines:
    """What the container's log says: a line for each thing that is new."""

    def __init__(self) -> None:
        self._said = ""

    def tell(self, text: str) -> None:
        """Write it as one line in which nothing moves a cursor, unless it was said just before."""
        line = "".join(sign if sign.isprintable() else "?" for sign in text[:LONGEST_LINE])
        if line != self._said:
            sys.stderr.write(f"grove-initc: {line}\n")
            sys.stderr.flush()
        self._said = line
