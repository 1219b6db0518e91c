"""Document stream: JSON documents one a line, or over several lines, or YAML documents, each handed on as soon as it has ended.

A document that begins with `{` is JSON and ends with the bracket that closes it; any other is YAML and ends where the next begins: at a
line that begins with `{` or `---`. So one that is broken costs at most what lies before the next beginning.
"""

import codecs
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, BinaryIO

import orjson

from engine.errors import InputError
from providers.documents import read_documents

BEGINNINGS = (b"{", b"---")
BRACKETS = re.compile(rb'"(?:[^"\\]|\\.)*"|[{}\[\]]')
"""Brackets, and strings, in which brackets mean nothing."""
PLACED = re.compile(r":([0-9]+): (.*)", re.DOTALL)
"""A complaint about a line."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One document, or why it is none."""

    line: int
    """Where it begins, or where it is wrong."""
    value: Any = None
    fault: str = ""


@dataclass(slots=True)
class _Draft:
    """The lines of a document that has not ended."""

    line: int
    is_json: bool
    lines: list[bytes] = field(default_factory=list)
    size: int = 0
    open: int = 0
    """Brackets of JSON that are still to be closed."""

    def add(self, line: bytes) -> None:
        self.lines.append(line)
        self.size += len(line)
        if self.is_json:
            self.open += sum((found in b"{[") - (found in b"}]") for found in BRACKETS.findall(line) if len(found) == 1)

    @property
    def has_ended(self) -> bool:
        return self.is_json and self.open <= 0


def entries(stream: BinaryIO, *, limit: int) -> Iterator[Entry]:
    """Every document in the stream, none of more than `limit` bytes."""
    draft: _Draft | None = None
    too_long = False
    for number, line in _lines(stream, limit):
        begins = line.startswith(BEGINNINGS)
        if draft is not None and begins:
            yield from _read(draft)
            draft = None
        too_long = too_long and not begins
        if too_long or (draft is None and not line.strip()):
            continue
        if draft is None and (whole := _whole(line)) is not None:
            yield Entry(number, whole)
            continue
        draft = draft or _Draft(number, line.lstrip().startswith(b"{"))
        draft.add(line)
        if draft.size > limit:
            yield Entry(draft.line, fault=f"more than the {limit} bytes that are read")
            draft, too_long = None, True
        elif draft.has_ended:
            yield from _read(draft)
            draft = None
    if draft is not None:
        yield from _read(draft)


def _lines(stream: BinaryIO, limit: int) -> Iterator[tuple[int, bytes]]:
    """The lines and their numbers; of one that is longer than the limit, a little more than that."""
    number = 0
    while line := stream.readline(limit + 1):
        number += 1
        yield number, line.removeprefix(codecs.BOM_UTF8) if number == 1 else line
        while line and not line.endswith(b"\n"):
            line = stream.readline(limit + 1)


def _whole(line: bytes) -> Any:
    """The object that a line is, or None: the usual case, in which nobody need count brackets."""
    if line.startswith(b"{") and line.rstrip().endswith(b"}"):
        try:
            return orjson.loads(line)
        except orjson.JSONDecodeError:
            return None
    return None


def _read(draft: _Draft) -> Iterator[Entry]:
    """What the lines say."""
    text = b"".join(draft.lines)
    found = [_json(draft.line, text)] if draft.is_json else list(_yaml(draft.line, text))
    if not found and any(line.strip() and not line.startswith((b"#", b"---")) for line in draft.lines):
        found = [Entry(draft.line, fault="nothing but null")]
    yield from found


def _yaml(begin: int, text: bytes) -> Iterator[Entry]:
    try:
        for document in read_documents(text, ""):
            yield Entry(begin + document.lines.get((), 1) - 1, document.value)
    except InputError as error:
        placed = PLACED.fullmatch(str(error))
        line, fault = (int(placed[1]), placed[2]) if placed else (1, str(error).removeprefix(": "))
        yield Entry(begin + line - 1, fault=f"not JSON, and as YAML: {fault}")


def _json(begin: int, text: bytes) -> Entry:
    try:
        return Entry(begin, orjson.loads(text))
    except orjson.JSONDecodeError:
        return _fault(begin, text)


def _fault(begin: int, text: bytes) -> Entry:
    """What is wrong with JSON, in the words of the reader that says where."""
    try:
        json.loads(text.rstrip())
    except json.JSONDecodeError as error:
        return Entry(begin + error.lineno - 1, fault=f"not JSON: {error.msg}")
    except (ValueError, RecursionError):
        pass
    return Entry(begin, fault="not JSON: nested too deeply, not UTF-8, or a number that is none")
