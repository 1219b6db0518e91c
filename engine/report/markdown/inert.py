"""Inert text: the only place where text becomes Markdown. What others have written cannot be markup, a link or a mention."""

import html
import re
from collections.abc import Callable, Sequence
from typing import Final

from engine.report.printable import clipped

NAME: Final = 120
"""Maximum number of characters of a name."""
PROSE: Final = 400
"""Maximum number of characters of a sentence."""
LINE: Final = 240
"""Maximum number of characters of a line in a block of code."""
PLAIN: Final = re.compile(r"""[("']{0,2}(?:[A-Za-z]{1,30}(?:['-][A-Za-z]{1,30}){0,5}|[0-9]{1,9})["')]{0,2}[.,;:!?]?[)"']?|[→—…=-]""")
"""A word that no dialect of Markdown reads as anything else. Any other word is written as code."""
MARKS: Final = ".,;:"
"""What may end a sentence or a part of it: behind a name it is no part of that."""

Encode = Callable[[str], str]


def code(text: str, limit: int = NAME) -> str:
    """A name or a value as a code span; its delimiters are longer than any run of backticks in it."""
    safe = clipped(text, limit) or " "
    fence = "`" * (1 + longest_run("`", safe))
    pad = " " if safe[0] in "` " or safe[-1] in "` " else ""
    return f"{fence}{pad}{safe}{pad}{fence}"


def cell(text: str, limit: int = NAME) -> str:
    """A code span for the cell of a table, which a vertical bar would end even within code."""
    return code(clipped(text, limit).replace("|", r"\x7c"), limit + 9)


def prose(text: str, limit: int = PROSE) -> str:
    """A sentence: plain words as they are, everything else as code."""
    return _words(clipped(text, limit), lambda word: word, lambda name: code(name, limit))


def html_prose(text: str, limit: int = PROSE) -> str:
    """The same for the inside of an HTML element on one line, where Markdown is not read."""
    return _words(clipped(text, limit), _escaped, html_code)


def html_code(text: str, limit: int = NAME) -> str:
    """A name as an HTML element."""
    return f"<code>{_escaped(clipped(text, limit))}</code>"


def fenced(lines: Sequence[str], language: str = "diff") -> str:
    """The lines as a block of code; its fences are longer than any run of tildes in it."""
    shown = [clipped(line, LINE) for line in lines]
    fence = "~" * max(3, 1 + max((longest_run("~", line) for line in shown), default=0))
    return "\n".join([f"{fence}{language}", *shown, fence])


def longest_run(character: str, text: str) -> int:
    """The length of the longest run of the character in the text."""
    return max(map(len, re.findall(f"{re.escape(character)}+", text)), default=0)


def _words(text: str, plain: Encode, other: Encode) -> str:
    """The words of a text, each encoded as what it is; neighbours that are not plain are one piece of code, up to a mark that ends it."""
    pieces: list[tuple[bool, str, str]] = []
    for word in text.split():
        is_plain = PLAIN.fullmatch(word) is not None
        core = word if is_plain else word.rstrip(MARKS) or word
        mark = word[len(core) :]
        if pieces and pieces[-1][0] == is_plain and not pieces[-1][2]:
            pieces[-1] = (is_plain, f"{pieces[-1][1]} {core}", mark)
        else:
            pieces.append((is_plain, core, mark))
    return " ".join(f"{plain(piece) if is_plain else other(piece)}{mark}" for is_plain, piece, mark in pieces)


def _escaped(text: str) -> str:
    return html.escape(text, quote=False)
