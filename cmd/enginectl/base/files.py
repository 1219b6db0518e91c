"""Reading files that users name on the command line."""

import sys
from pathlib import Path

from engine.report.printable import printable
from enginectl.base.errors import UsageError

STDIN = Path("-")


def read_bytes(file: Path) -> bytes:
    """The content of a file, or of standard input for `-`. Raises `UsageError` if it cannot be read."""
    if file == STDIN:
        return sys.stdin.buffer.read()
    try:
        return file.read_bytes()
    except FileNotFoundError:
        raise UsageError(f"{printable(str(file))}: no such file or directory") from None
    except OSError as error:
        raise UsageError(f"{printable(str(file))}: {(error.strerror or 'cannot be read').lower()}") from None
