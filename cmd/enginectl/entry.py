"""Where the process of a command begins: Ctrl-C while Python imports the command line is no traceback either."""

import os
import signal
from types import FrameType


def main() -> int:
    """The command line of this process, to its end. Returns the exit code."""
    is_handled = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if is_handled:
        signal.signal(signal.SIGINT, _end)
    from enginectl.main import main as run

    if is_handled:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    return run()


def _end(number: int, frame: FrameType | None) -> None:
    """End the process as an interrupted command ends (`Exit.INTERRUPTED`), of which nothing has begun."""
    os.write(2, b"exit 130: interrupted\n")
    os._exit(130)
