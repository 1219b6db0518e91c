"""A stream of documents: JSON on one line or on several, or YAML. Each document is handed on as soon as it has ended.

A document that begins with `{` is JSON and ends at its closing bracket. Any other is YAML and ends where the next document begins: at a
line that begins with `{` or `---`. So a broken document costs at most the lines up to the next beginning.
"""

import codecs
import json
import re
from collections.abc import Iterator
from typing import Any, BinaryIO

import orjson
from msgspec import Struct, field

from providers.documents import DocumentError, read_documents

BEGINNINGS = (b"{", b"---")
TOKENS = re.compile(rb'"(?:[^"\\]|\\.)*+"?|[{}\[\]]')
"""Brackets, and strings: brackets inside a string do not count. A string without its closing quote reaches to the end of the line.

The quantifier is possessive and the closing quote optional: otherwise a line of n escaped quotes takes n² steps.
"""


class StreamDocument(Struct, frozen=True):
    """One document, or why it could not be read."""

    line: int
    """The line where it begins, or where the fault is."""
    value: Any = None
    fault: str = ""


class _Draft(Struct):
    """The lines of a document that has not ended."""

    line: int
    is_json: bool
    lines: list[bytes] = field(default_factory=list)
    size: int = 0
    open_brackets: int = 0

    def add(self, line: bytes) -> None:
        self.lines.append(line)
        self.size += len(line)
        if self.is_json:
            self.open_brackets += sum((token in b"{[") - (token in b"}]") for token in TOKENS.findall(line) if len(token) == 1)

    @property
    def has_ended(self) -> bool:
        return self.is_json and self.open_brackets <= 0


def read_stream(stream: BinaryIO, *, limit: int) -> Iterator[StreamDocument]:
    """Every document in the stream. One of more than `limit` bytes is a fault, and is skipped without being kept in memory."""
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
        if draft is None and (value := _object_on_one_line(line)) is not None:
            yield StreamDocument(number, value)
            continue
        draft = draft or _Draft(number, line.lstrip().startswith(b"{"))
        draft.add(line)
        if draft.size > limit:
            yield StreamDocument(draft.line, fault=f"larger than the limit of {limit} bytes")
            draft, too_long = None, True
        elif draft.has_ended:
            yield from _read(draft)
            draft = None
    if draft is not None:
        yield from _read(draft)


def _lines(stream: BinaryIO, limit: int) -> Iterator[tuple[int, bytes]]:
    """The lines with their numbers, from 1. A line longer than `limit` is cut to `limit + 1` bytes."""
    number = 0
    while line := stream.readline(limit + 1):
        number += 1
        yield number, line.removeprefix(codecs.BOM_UTF8) if number == 1 else line
        while line and not line.endswith(b"\n"):
            line = stream.readline(limit + 1)


def _object_on_one_line(line: bytes) -> Any:
    """The JSON object that a line is, or None. This is the usual case, and needs no counting of brackets."""
    if line.startswith(b"{") and line.rstrip().endswith(b"}"):
        try:
            return orjson.loads(line)
        except orjson.JSONDecodeError:
            return None
    return None


def _read(draft: _Draft) -> Iterator[StreamDocument]:
    """The documents in the lines of a draft; a fault if they hold nothing."""
    text = b"".join(draft.lines)
    documents = [_json(draft.line, text)] if draft.is_json else list(_yaml(draft.line, text))
    if not documents and any(line.strip() and not line.startswith((b"#", b"---")) for line in draft.lines):
        documents = [StreamDocument(draft.line, fault="nothing but null")]
    yield from documents


def _yaml(begin: int, text: bytes) -> Iterator[StreamDocument]:
    try:
        for document in read_documents(text, ""):
            yield StreamDocument(begin + document.lines.get((), 1) - 1, document.value)
    except DocumentError as error:
        yield StreamDocument(begin + max(error.line, 1) - 1, fault=f"not JSON, and as YAML: {error.why}")


def _json(begin: int, text: bytes) -> StreamDocument:
    try:
        return StreamDocument(begin, orjson.loads(text))
    except orjson.JSONDecodeError:
        return _json_fault(begin, text)


def _json_fault(begin: int, text: bytes) -> StreamDocument:
    """What is wrong with a JSON document, in the words of the standard library, which knows the line."""
    try:
        json.loads(text.rstrip())
    except json.JSONDecodeError as error:
        return StreamDocument(begin + error.lineno - 1, fault=f"not JSON: {error.msg}")
    except (ValueError, RecursionError):
        pass
    return StreamDocument(begin, fault="not JSON: nested too deeply, not UTF-8, or an invalid number")
