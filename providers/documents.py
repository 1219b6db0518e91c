"""Documents: YAML and JSON text as plain values that know on which line each of their fields stands.

The text is a stranger's: values are built from the parser's events, so that depth, size and aliases are bounded before they hurt.
Plain scalars mean what they mean to kubectl: `yes` and `on` are true, `0755` is octal, and dates stay text.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import yaml

from engine.errors import InputError
from engine.report.printable import clipped

MAX_BYTES = 64 << 20
MAX_DEPTH = 100
MAX_BORROWED = 100_000
"""Values that a document may repeat through aliases: a hundred lines of YAML can stand for more than memory holds."""
TAG = "tag:yaml.org,2002:"

Where = tuple[str, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Document:
    """One document of a file: its value, and the line of every field in it."""

    value: Any
    source: str
    lines: Mapping[Where, int]

    def place(self, path: Where = ()) -> str:
        """`file:line` of that field, or of what is nearest above it."""
        while path and path not in self.lines:
            path = path[:-1]
        return f"{self.source}:{self.lines.get(path, 1)}"


def read_documents(data: bytes, source: str, *, limit: int = MAX_BYTES) -> Iterator[Document]:
    """Every document in the text that is not empty. Raises `InputError` with file, line and reason."""
    if len(data) > limit:
        raise InputError(f"{source}: {len(data)} bytes are more than the {limit} that are read")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"{source}:{data[: error.start].count(10) + 1}: not UTF-8 text") from None
    yield from (
        json_documents(text, source) if text.lstrip()[:1] in ("{", "[") and source.endswith(".json") else yaml_documents(text, source)
    )


def json_documents(text: str, source: str) -> Iterator[Document]:
    """The one document of a JSON file. JSON is read as JSON, and once more as YAML for the lines, where it happens to be both."""
    try:
        value = json.loads(
            text, object_pairs_hook=lambda pairs: once_each(pairs, source), parse_constant=lambda word: no_number(word, source)
        )
    except json.JSONDecodeError as error:
        raise InputError(f"{source}:{error.lineno}: not JSON: {error.msg}") from None
    except RecursionError:
        value = None
    if value is None or deeper(value, MAX_DEPTH):
        raise InputError(f"{source}: nested deeper than {MAX_DEPTH} levels")
    try:
        lines = next(yaml_documents(text.replace("\t", " "), source)).lines
    except (InputError, StopIteration):
        lines = {}
    yield Document(value, source, lines)


def deeper(value: Any, levels: int) -> bool:
    """Whether the value has more levels than that."""
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return levels < 0 or any(deeper(below, levels - 1) for below in inner)


def once_each(pairs: list[tuple[str, Any]], source: str) -> dict[str, Any]:
    """The members of a JSON object, none of them twice."""
    members: dict[str, Any] = {}
    for key, value in pairs:
        if key in members:
            raise InputError(f"{source}: the key {clipped(key, 80)} stands twice in one object")
        members[key] = value
    return members


def no_number(word: str, source: str) -> Any:
    """Refuse what only looks like a number."""
    raise InputError(f"{source}: {word} is not a JSON number")


def yaml_documents(text: str, source: str) -> Iterator[Document]:
    """Every YAML document that is not empty."""
    loader = yaml.CSafeLoader(text)
    try:
        while loader.check_event():
            event = loader.get_event()
            if isinstance(event, yaml.DocumentStartEvent):
                reading = _Reading(loader, source)
                value = reading.value(loader.get_event(), (), 0)
                if value is not None:
                    yield Document(value, source, reading.lines)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise InputError(f"{source}:{mark.line + 1 if mark else 1}: not YAML: {error.problem or error.context}") from None
    except yaml.reader.ReaderError as error:
        raise InputError(f"{source}:{text[: error.position].count(chr(10)) + 1}: not YAML: {error.reason}") from None
    finally:
        loader.dispose()


@dataclass(slots=True)
class _Reading:
    """The reading of one document: the parser, what has been given a name, and the lines so far."""

    loader: Any
    source: str
    lines: dict[Where, int] = field(default_factory=dict)
    anchors: dict[str, tuple[Any, int]] = field(default_factory=dict)
    """Name -> the value, and how many values it is made of."""
    made: int = 0
    borrowed: int = 0

    def value(self, event: Any, path: Where, depth: int) -> Any:
        """The value that begins with this event."""
        self.made += 1
        self.lines[path] = line_of(event)
        if depth > MAX_DEPTH:
            raise self.fault(event, f"nested deeper than {MAX_DEPTH} levels")
        if isinstance(event, yaml.AliasEvent):
            return self.borrow(event)
        before = self.made
        value = self.fresh(event, path, depth)
        if event.anchor:
            self.anchors[event.anchor] = value, self.made - before + 1
        return value

    def fresh(self, event: Any, path: Where, depth: int) -> Any:
        """A value that is written out here."""
        if isinstance(event, yaml.ScalarEvent):
            return self.scalar(event)
        if isinstance(event, yaml.SequenceStartEvent):
            self.check_tag(event, "seq")
            return list(self.entries(path, depth))
        self.check_tag(event, "map")
        return self.mapping(path, depth)

    def borrow(self, event: Any) -> Any:
        """What an alias stands for."""
        if event.anchor not in self.anchors:
            raise self.fault(event, f"nothing is called &{clipped(event.anchor, 40)} above this line")
        value, size = self.anchors[event.anchor]
        self.borrowed += size
        self.made += size
        if self.borrowed > MAX_BORROWED:
            raise self.fault(event, f"aliases repeat more than {MAX_BORROWED} values")
        return value

    def entries(self, path: Where, depth: int) -> Iterator[Any]:
        """The entries of a list."""
        index = 0
        while not isinstance(event := self.loader.get_event(), yaml.SequenceEndEvent):
            yield self.value(event, (*path, str(index)), depth + 1)
            index += 1

    def mapping(self, path: Where, depth: int) -> dict[str, Any]:
        """A map; its keys are text, each once."""
        members: dict[str, Any] = {}
        merged: dict[str, Any] = {}
        while not isinstance(event := self.loader.get_event(), yaml.MappingEndEvent):
            if not isinstance(event, yaml.ScalarEvent):
                raise self.fault(event, "a key must be plain text")
            key = event.value
            if key == "<<" and event.implicit[0]:
                merged = {**self.merge(self.loader.get_event(), path, depth), **merged}
                continue
            if key in members:
                raise self.fault(event, f"the key {clipped(key, 80)} stands twice in one map")
            members[key] = self.value(self.loader.get_event(), (*path, key), depth + 1)
            self.lines[(*path, key)] = line_of(event)
        return {**merged, **members} if merged else members

    def merge(self, event: Any, path: Where, depth: int) -> dict[str, Any]:
        """What `<<` brings into a map: another map, or several of which the first ones win."""
        value = self.value(event, (*path, "<<"), depth + 1)
        merged: dict[str, Any] = {}
        for part in value if isinstance(value, list) else [value]:
            if not isinstance(part, dict):
                raise self.fault(event, "`<<` merges maps only")
            merged = {**part, **merged}
        return merged

    def scalar(self, event: Any) -> Any:
        """Text, or what plain text means."""
        plain, _ = event.implicit
        if plain:
            return self.resolved(event)
        if event.tag is None or event.tag in ("!", f"{TAG}str"):
            return event.value
        if event.tag in (f"{TAG}int", f"{TAG}float", f"{TAG}bool", f"{TAG}null"):
            return self.resolved(event)
        raise self.fault(event, f"the tag {clipped(event.tag, 80)} is not understood")

    def resolved(self, event: Any) -> Any:
        """What plain text means."""
        try:
            return meaning(event.value)
        except ValueError as error:
            raise self.fault(event, str(error)) from None

    def check_tag(self, event: Any, name: str) -> None:
        """Refuse lists and maps that want to be something else."""
        if event.tag not in (None, "!", TAG + name):
            raise self.fault(event, f"the tag {clipped(event.tag, 80)} is not understood")

    def fault(self, event: Any, why: str) -> InputError:
        """What is wrong at this event."""
        return InputError(f"{self.source}:{line_of(event)}: {why}")


def line_of(event: yaml.Event) -> int:
    """The line on which an event begins, counted from one."""
    return event.start_mark.line + 1 if event.start_mark else 1


WORDS: Mapping[str, Any] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys(("y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"), True),
    **dict.fromkeys(("n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"), False),
}
NUMBERS: tuple[tuple[re.Pattern[str], Callable[[str], int | float]], ...] = (
    (re.compile(r"[-+]?(0|[1-9][0-9]*)"), int),
    (re.compile(r"[-+]?0[0-7]+"), lambda text: int(text, 8)),
    (re.compile(r"[-+]?0(o[0-7]+|x[0-9a-fA-F]+|b[01]+)"), lambda text: int(text, 0)),
    (re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?"), float),
)
NOT_FINITE = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")


def meaning(text: str) -> Any:
    """What plain text means: nothing, true or false, a number, or the text itself. Raises `ValueError` for what JSON cannot say."""
    if text in WORDS:
        return WORDS[text]
    if text[0] not in "+-.0123456789":
        return text
    if NOT_FINITE.fullmatch(text):
        raise ValueError(f"{text} is not a JSON number")
    digits = text.replace("_", "")
    for pattern, number in NUMBERS:
        if pattern.fullmatch(digits) and len(digits) < 400:
            return bounded(number(digits))
    return text


def bounded(number: int | float) -> int | float:
    """A number as JSON readers agree on it: `1e3` is as whole as `1000`, beyond 64 bits nothing is exact, and beyond that nothing is."""
    if number in (float("inf"), float("-inf")):
        raise ValueError("the number is too large")
    fits = -(2**63) <= number < 2**64
    return int(number) if fits and number == int(number) else float(number)
