"""Output: answers on stdout, everything else on stderr; colour and motion only where a person is looking."""

import os
import sys
from collections.abc import Iterable, Mapping
from typing import Any, TextIO

from engine.report.line import Line
from engine.report.printable import printable

TONES: Mapping[str, str] = {
    "create": "32",
    "patch": "33",
    "status": "2",
    "replace": "35",
    "release": "36",
    "delete": "31",
    "held": "33",
    "bad": "31;1",
    "good": "32",
    "head": "1",
    "faint": "2",
}
PLAIN = str.maketrans({"±": "*", "⊘": "x", "→": ">", "×": "x", "…": "~", "·": ".", "—": "-", "✓": "v", "✗": "x"})
"""Our own signs for a terminal that cannot show them; the word beside each says the same."""


def say(line: Line | str = "") -> None:
    """A line of the answer."""
    say_all([line])


def say_all(lines: Iterable[Line | str]) -> None:
    """The lines of an answer."""
    sys.stdout.writelines(shown(line, sys.stdout) for line in lines)
    sys.stdout.flush()


def tell(line: Line | str) -> None:
    """A line beside the answer: progress, notes, faults."""
    sys.stderr.write(shown(line, sys.stderr))
    sys.stderr.flush()


def say_document(document: Any) -> None:
    """One JSON document."""
    from engine.report.json import printed

    sys.stdout.write(f"{printed(document)}\n")


def say_raw(text: str) -> None:
    """Text that is safe as it is, such as YAML that escapes what is not ASCII."""
    sys.stdout.write(text)


def fault(message: str) -> None:
    """What went wrong, a line for each thing, whoever wrote the words."""
    for line in message.splitlines() or [""]:
        tell(Line(f"engine: {printable(line)}", "bad"))


def coloured(stream: TextIO) -> bool:
    """Whether colour helps the reader of a stream."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def fitted(text: str, stream: TextIO) -> str:
    """The text in characters that the stream can carry."""
    encoding = stream.encoding or "ascii"
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        return text.translate(PLAIN).encode(encoding, "backslashreplace").decode(encoding)
    return text


def shown(line: Line | str, stream: TextIO) -> str:
    """A line as it is written to a stream."""
    text, tone = (line.text, line.tone) if isinstance(line, Line) else (line, "")
    code = TONES.get(tone) if coloured(stream) else None
    return f"\x1b[{code}m{fitted(text, stream)}\x1b[0m\n" if code else f"{fitted(text, stream)}\n"
