"""Watching: what a command shows, again and again until a signal ends it."""

import sys
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final, NoReturn

from engine.report.printable import Line, counted, printable
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
    """A note above what is shown: what is below a screen is not seen."""
    return Line(f"note: {text}", "faint")


@contextmanager
def display() -> Iterator[Callable[[Sequence[Line]], None]]:
    """What shows lines: on a terminal on a screen of their own, which ends with the block; elsewhere one block of them after the other.

    A screen that is too low for all lines says how many it leaves out.
    """
    if not terminal.is_screen(sys.stdout):
        yield lambda lines: terminal.print_lines([*lines, ""])
        return
    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

    console = Console(file=sys.stdout)

    def picture(lines: Sequence[Line]) -> Text:
        """The lines that the screen has room for, the last of which says how many there are below it."""
        text = Text.from_ansi("".join(terminal.formatted(line, sys.stdout) for line in lines).rstrip("\n"))
        rows, room = [*text.wrap(console, console.width)], console.height
        if len(rows) > room:
            rows[room - 1 :] = [Text(f"… {counted(len(rows) - room + 1, 'more line')} below", "dim")]
        return Text("\n").join(rows)

    with Live(console=console, screen=True, auto_refresh=False) as live:
        yield lambda lines: live.update(picture(lines), refresh=True)
