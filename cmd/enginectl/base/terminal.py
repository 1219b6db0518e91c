"""The terminal: results go to stdout, everything else and questions to stderr; colour only where a person reads."""

import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Final, TextIO

import anyio

from engine.errors import EngineError
from engine.report.printable import Line, clipped, printable

TONES: Mapping[str, str] = {
    "create": "32",
    "patch": "33",
    "status": "2",
    "replace": "35",
    "release": "36",
    "delete": "31",
    "later": "33",
    "blocked": "33;1",
    "bad": "31;1",
    "good": "32",
    "head": "1",
    "faint": "2",
}
"""Tone of a line -> ANSI colour code."""
PLAIN = str.maketrans({"±": "*", "⊘": "x", "→": ">", "×": "x", "…": "~", "·": ".", "—": "-", "✓": "v", "✗": "x"})
"""Replacements for our own signs on a terminal that cannot show them."""
LONGEST_CAUSE: Final = 400
"""How many characters of why something could not be listed are written."""
LEAST_TEXT: Final = 40
"""Columns that are left for text where a long line goes on below the last of its columns."""
COLUMN: Final = re.compile(r"(?:^| ) +(?=\S)")
"""What is in front of a column of a line."""
PADDING: Final = re.compile(" {9,}")
"""What fills a cell of a table. Where it would take most of a line that is too long, it is left out."""
CELL: Final = re.compile(r"(?<! ) {1,16}(?=   \S)")
"""What fills a short cell, but for the gap behind it. It stays with the cell, so that all lines of a table break at the same column."""
COMMAND: Final = re.compile(r"`[^`]*`")
"""A command to copy, which is not broken."""
WIDE: Final = ("W", "F")
"""The widths of Unicode that are two columns of a terminal."""
FILLER: Final = "\1"
"""Stands for the second column of a character while lines are broken. It is in no text that is written."""
BARE_COMMAND: Final = re.compile(r"\b(?:(?:kubectl|helm) [a-z]|engine (?:config|delete|diff|manifests|preflight|run|status|sync|why)\b)")
"""A command without backticks: where it ends is unknown, so its line is left to the terminal."""

_leave_out_notes = ContextVar("_leave_out_notes", default=False)


@dataclass(slots=True)
class _Session:
    """What the command line that runs in this process has written and chosen."""

    has_document: bool = False
    json_lines: bool = False
    noted: set[str] = field(default_factory=set)


_session = _Session()


def print_line(line: Line | str = "") -> None:
    """Write one line of the result to stdout."""
    print_lines([line])


def print_lines(lines: Iterable[Line | str]) -> None:
    """Write lines of the result to stdout."""
    for line in lines:
        print_text(formatted(line, sys.stdout))
    flush()


def begin() -> None:
    """Forget what an earlier command line in this process has written and chosen."""
    _session.has_document = _session.json_lines = False
    _session.noted.clear()


def use_json_lines() -> None:
    """Write the line with which a signal ends the command as a line of the log, in JSON."""
    _session.json_lines = True


def print_json(document: Any) -> None:
    """Write one JSON document to stdout."""
    from engine.report.json import printed

    print_text(f"{printed(document)}\n")
    _session.has_document = True


def print_error_document(messages: Sequence[str], code: int) -> None:
    """Write to stdout, as JSON, why there is no other document; nothing if there is one."""
    from engine.report.json import VERSION

    if not _session.has_document:
        print_json({"version": VERSION, "kind": "Error", "messages": list(messages), "exitCode": int(code)})


def exit_line(code: int, meaning: str) -> None:
    """Write to stderr how the command ends: as text, or as a line of the log."""
    if not _session.json_lines:
        notice(meaning)
        return
    from engine.runtime.logs import logger

    logger(sys.stderr, format="json", verbose=False, colour=False).info("exit", code=code, meaning=meaning)


def print_text(text: str) -> None:
    """Write text to stdout as it is: it must be safe for a terminal already, such as YAML that escapes all but ASCII."""
    with _writing():
        sys.stdout.write(text)


def flush() -> None:
    """Write to stdout what is still in its buffer."""
    with _writing():
        sys.stdout.flush()


@contextmanager
def _writing() -> Iterator[None]:
    """Raises `EngineError` if stdout cannot be written, e.g. because its disk is full; `BrokenPipeError` passes."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise EngineError(f"standard output: {(error.strerror or 'cannot be written').lower()}") from None


def notice(line: Line | str) -> None:
    """Write a line to stderr: progress, notes, warnings. One that cannot be written is lost: it is not the result of a command."""
    with suppress(OSError):
        sys.stderr.write(formatted(line, sys.stderr))
        sys.stderr.flush()


@contextmanager
def without_notes() -> Iterator[None]:
    """Leave out notes and warnings while the block runs."""
    token = _leave_out_notes.set(True)
    try:
        yield
    finally:
        _leave_out_notes.reset(token)


def remark(message: str) -> None:
    """Write a line to stderr, unless notes are left out."""
    if not _leave_out_notes.get():
        notice(message)


def note(message: str) -> None:
    """Write a note to stderr, once in a command, unless notes are left out."""
    if message not in _session.noted:
        _session.noted.add(message)
        remark(f"note: {message}")


def warning(message: str) -> None:
    """Write a warning to stderr, unless notes are left out."""
    remark(f"warning: {message}")


def error(message: str) -> None:
    """Write an error message to stderr, each of its lines with the prefix `engine: `. Control characters are escaped."""
    for line in message.splitlines() or [""]:
        notice(Line(f"engine: {printable(line)}", "bad"))


def incomplete(kinds: Mapping[str, str]) -> None:
    """Write to stderr which kinds could not be listed completely, and why: a line for each cause."""
    for text in incomplete_texts(kinds):
        error(text)


def incomplete_texts(kinds: Mapping[str, str]) -> Iterator[str]:
    """Which kinds could not be listed completely, and why: a text for each cause."""
    from engine.report.alike import unlisted_by_cause

    for names, why in unlisted_by_cause(kinds).items():
        yield f"{names} objects could not be listed completely: {clipped(why, LONGEST_CAUSE)}"


def is_screen(stream: TextIO) -> bool:
    """Whether a stream is a terminal on which a text can replace an earlier one."""
    return stream.isatty() and os.environ.get("TERM") != "dumb"


def has_colour(stream: TextIO) -> bool:
    """Whether a stream is a terminal that wants colour."""
    return is_screen(stream) and not os.environ.get("NO_COLOR")


def encodable(text: str, stream: TextIO) -> str:
    """The text in characters that the stream's encoding has."""
    encoding = stream.encoding or "ascii"
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        return text.translate(PLAIN).encode(encoding, "backslashreplace").decode(encoding)
    return text


def formatted(line: Line | str, stream: TextIO) -> str:
    """A line as it is written to a stream, with its colour and line break; on a terminal in as many lines as its width asks for."""
    text, tone = (line.text, line.tone) if isinstance(line, Line) else (line, "")
    shown = wrapped(encodable(text, stream), columns(stream))
    code = TONES.get(tone) if has_colour(stream) else None
    return f"\x1b[{code}m{shown}\x1b[0m\n" if code else f"{shown}\n"


def columns(stream: TextIO) -> int:
    """How many characters a line of the terminal takes; 0 if the stream is no terminal, or one of unknown width."""
    try:
        return os.get_terminal_size(stream.fileno()).columns if stream.isatty() else 0
    except (OSError, ValueError):
        return 0


def wrapped(text: str, width: int) -> str:
    """The text in lines of at most `width` columns, broken between words; longer words and commands to copy stay whole. 0: as it is.

    Further lines begin below the last column of the first that leaves room for text; without columns they are indented.
    """
    if width <= 0 or (len(text) <= width and text.isascii()):
        return text
    shown, text = text, filled(text)
    if len(text) <= width or BARE_COMMAND.search(COMMAND.sub("", shown)):
        return shown
    from textwrap import wrap

    margin = len(text) - len(text.lstrip())
    starts = [match.end() for match in COLUMN.finditer(text) if margin < match.end() <= width - LEAST_TEXT]
    begin = starts[-1] if starts else margin
    rest = PADDING.sub(lambda match: match[0] if 3 * len(match[0]) < 2 * width else "   ", text[begin:])
    whole = text[:margin] + CELL.sub(_unbroken, text[margin:begin] + rest)
    whole = COMMAND.sub(_unbroken, whole)
    indent = " " * (begin if starts else min(margin + 4, width // 2))
    lines = wrap(whole, width, subsequent_indent=indent, replace_whitespace=False, break_long_words=False, break_on_hyphens=False)
    return "\n".join(line.replace("\0", " ").replace(FILLER, "").rstrip() for line in lines)


def _unbroken(match: re.Match[str]) -> str:
    """The words of a match as one, for the time of wrapping."""
    return match[0].replace(" ", "\0")


def filled(text: str) -> str:
    """The text with a filler after each character that takes two columns, so that its length is its width on a terminal."""
    if text.isascii():
        return text
    from unicodedata import east_asian_width

    return "".join(f"{each}{FILLER}" if east_asian_width(each) in WIDE else each for each in text)


ATTENTION: Final = 0.1
"""Seconds between two looks at whether the command has been cancelled."""
LONGEST_ANSWER: Final = 1000
"""Bytes that are read of an answer."""


def can_ask() -> bool:
    """Whether a user can read a question and answer it: standard input and stderr are terminals."""
    return all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stderr))


async def ask(question: str, is_cancelled: Callable[[], bool]) -> bool:
    """Whether the answer is yes. Everything else is no: the end of the input, and that the command is cancelled."""
    flush()
    with suppress(OSError):
        sys.stderr.write(f"{question} [y/N] ")
        sys.stderr.flush()
    while not is_cancelled():
        with anyio.move_on_after(ATTENTION):
            await anyio.wait_readable(sys.stdin.fileno())
            return os.read(sys.stdin.fileno(), LONGEST_ANSWER).decode(errors="replace").strip().lower() in ("y", "yes")
    return False
