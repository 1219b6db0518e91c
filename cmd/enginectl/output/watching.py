"""Watching: what a command shows, again and again until a signal ends it."""

import sys
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final, NoReturn

from engine.report.printable import Line, printable
from engine.runtime.clock import Clock
from engine.runtime.provider import TRANSIENT
from enginectl.base import terminal

INTERVAL: Final = 5.0
"""Seconds between two looks."""

Look = Callable[[], Awaitable[tuple[Sequence[Line], object]]]
"""Returns the lines that are shown, and what they say apart from ages: equal if nothing has changed."""


async def watch(clock: Clock, look: Look) -> NoReturn:
    """Show it every few seconds, for ever: on a terminal in place, elsewhere whenever it has changed.

    While the server does not answer, what was seen last is shown, and why there is nothing newer.
    """
    seen: Sequence[Line] = ()
    last: object = None
    with display() as show:
        while True:
            try:
                lines, content = await look()
                seen = lines
            except TRANSIENT as error:
                lines = [note_line(f"this was seen last; now: {printable(str(error))}"), *seen]
                content = str(error)
            if content != last or terminal.is_screen(sys.stdout):
                show(lines)
            last = content
            await clock.sleep(INTERVAL)


def note_line(text: str) -> Line:
    """A note above what is shown: the end of what is longer than a terminal is not seen."""
    return Line(f"note: {text}", "faint")


@contextmanager
def display() -> Iterator[Callable[[Sequence[Line]], None]]:
    """What shows lines: on a terminal on a screen of their own, which ends with the block; elsewhere one block of them after the other."""
    if not terminal.is_screen(sys.stdout):
        yield lambda lines: terminal.print_lines([*lines, ""])
        return
    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

    with Live(console=Console(file=sys.stdout), screen=True, auto_refresh=False) as live:
        yield lambda lines: live.update(Text.from_ansi("".join(terminal.formatted(line, sys.stdout) for line in lines)), refresh=True)
