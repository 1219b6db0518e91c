"""Documents: YAML and JSON text as plain values, with the line of each field.

The text may be hostile: values are built from the parser's events, so that depth, size and aliases are limited while parsing.
Plain scalars have the values that kubectl gives them: `yes` and `on` are true, `0755` is octal, and dates stay strings.
"""

import codecs
import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import yaml
from msgspec import Struct, field

from engine.errors import InputError
from engine.report.printable import clipped

MAX_BYTES = 64 << 20
MAX_DEPTH = 100
TOO_DEEP = f"nested deeper than {MAX_DEPTH} levels"
TOO_LARGE = "the number is too large"
MAX_NAMES = 5
"""How many keys a message names."""
LARGE_KEY = 1e6
"""From here on kubectl writes a key that is a number with an exponent."""
MAX_ALIASED = 100_000
"""How many values the aliases of a document may repeat: without a limit a hundred lines of YAML can exceed the memory."""
TAG = "tag:yaml.org,2002:"
LATER_MARK = re.compile(r"(^---[^\n]*+\n(?:[ \t]*+(?:#[^\n]*+|\r?)\n)*+)\ufeff|^\ufeff(?=---)", re.MULTILINE)
"""A byte order mark at the beginning of a later document: files that were put together have them."""
SEPARATOR = re.compile(r"^---#", re.MULTILINE)
"""The beginning of a line `---` with a comment that YAML wants a space before."""
GAP = re.compile(r"(?:[\s\ufeff]+|(?<![^\n])---(?=\s|$)|(?<!\S)#[^\n]*|null(?=[\s{\[]|$)(?!\s*:))*")
"""What may stand before, between and after JSON documents: space, comments, lines `---`, and null."""
UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
"""How a text begins that a shell of Windows has written."""

LONE_SURROGATE = re.compile(r"(?<!\\)(?:\\\\)*\\u(?:[dD][89abAB][0-9a-fA-F]{2}(?!\\u[dD][c-fC-F])|(?<![dD][89abAB]..\\u)[dD][c-fC-F])")
"""An escape of JSON that is half a character."""
NO_SEPARATOR = "did not find expected <document start>"
"""The parser's words for what follows a document without a line `---`: kubectl leaves that out."""
MISSING_SEPARATOR = "the document above has ended: a line `---` is missing"
REMEDIES = {
    "did not find expected key": "the line is not indented as the others of its map",
    "did not find expected '-' indicator": "the line is not indented as the others of its list",
    "mapping values are not allowed in this context": "the line is indented too far, or a value with a colon has no quotes",
}
"""What the parser says -> what is probably wrong."""
TAB_INDENT = re.compile(r" *\t")
TAB = "a tab indents this line: use spaces"

Path = tuple[str, ...]
WORDS: Mapping[str, Any] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys(("y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"), True),
    **dict.fromkeys(("n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"), False),
}
NUMBERS: tuple[tuple[re.Pattern[str], Callable[[str], int | float]], ...] = (
    (re.compile(r"[-+]?(0|[1-9][0-9]*)"), int),
    (re.compile(r"[-+]?0[0-7]+"), lambda text: int(text, 8)),
    (re.compile(r"[-+]?0([oO][0-7]+|[xX][0-9a-fA-F]+|[bB][01]+)"), lambda text: of_64_bits(int(text, 0))),
    (re.compile(r"0b[-+][01]+"), lambda text: of_64_bits(int(text[2:], 2))),
    (re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?"), float),
)
BETWEEN_DIGITS = re.compile(r"(?<=[0-9])_(?=[0-9])")
NOT_FINITE = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")


class Document(Struct, frozen=True, eq=False):
    """One document of a file."""

    value: Any
    source: str
    lines: Mapping[Path, int]
    """Path of a field -> its line."""

    def line(self, path: Path = ()) -> int:
        """The line of a field, or of its nearest parent that has one; 1 if there is none."""
        while path and path not in self.lines:
            path = path[:-1]
        return self.lines.get(path, 1)

    def place(self, path: Path = ()) -> str:
        """`file:line` of a field, or of its nearest parent that has a line."""
        return f"{self.source}:{self.line(path)}"


class DocumentError(InputError):
    """A file cannot be read as documents."""

    def __init__(self, source: str, line: int, why: str) -> None:
        super().__init__(f"{source}:{line}: {why}" if line else f"{source}: {why}")
        self.line = line
        """The line with the fault, from 1 on; 0 if it is not known."""
        self.why = why


def read_documents(data: bytes, source: str, *, limit: int = MAX_BYTES) -> Iterator[Document]:
    """Every document in the text; empty ones are skipped. Raises `InputError` with file, line and reason."""
    if len(data) > limit:
        raise DocumentError(source, 0, f"{len(data)} bytes exceed the limit of {limit}")
    try:
        text = data.decode("utf-16" if data.startswith(UTF_16) else "utf-8-sig")
    except UnicodeDecodeError as error:
        raise DocumentError(source, data[: error.start].count(10) + 1, f"not {error.encoding.upper()} text") from None
    text = SEPARATOR.sub("--- #", LATER_MARK.sub(r"\1", text))
    if text.lstrip()[:1] in ("{", "[") and (source.endswith(".json") or begins_with_json(text)):
        yield from json_documents(text, source)
    else:
        yield from yaml_documents(text, source)


def begins_with_json(text: str) -> bool:
    """Whether the first document of a text is JSON, and does not only look like it, as a flow mapping of YAML does."""
    try:
        json.JSONDecoder(object_pairs_hook=lambda pairs: unique_keys(pairs, "")).raw_decode(text.lstrip())
    except (InputError, ValueError, RecursionError):
        return False  # As YAML, a fault has its line.
    return True


def json_documents(text: str, source: str) -> Iterator[Document]:
    """The JSON documents of a text, one after the other or separated by `---`; what follows and is not JSON is YAML, as for kubectl.

    Each is parsed a second time as YAML to learn the lines; if that fails, it has none.
    """
    decoder = json.JSONDecoder(
        object_pairs_hook=lambda pairs: unique_keys(pairs, source),
        parse_constant=lambda word: refuse_constant(word, source),
        parse_int=lambda text: bounded(int(text)),
        parse_float=lambda text: bounded(float(text)),
    )
    end, line = 0, 1
    while (begin := end_of_gap(text, end)) < len(text):
        line += text.count("\n", end, begin)
        if end and text[begin] not in "{[":
            if "---" not in text[end:begin]:
                raise DocumentError(source, line, "neither JSON nor a line `---`")
            yield from yaml_documents(text[begin:], source, first_line=line)
            return
        value, end = decoded(decoder, text, begin, source)
        yield Document(value, source, lines_of_json(text[begin:end], source, line))
        line += text.count("\n", begin, end)


def end_of_gap(text: str, begin: int) -> int:
    """The position at which the next document begins: after space, comments and lines `---`."""
    gap = GAP.match(text, begin)
    return gap.end() if gap else begin


def decoded(decoder: json.JSONDecoder, text: str, begin: int, source: str) -> tuple[Any, int]:
    """The JSON value that begins at a position of the text, and the position of its end. Raises `InputError`."""
    try:
        value, end = decoder.raw_decode(text, begin)
    except json.JSONDecodeError as error:
        raise DocumentError(source, error.lineno, f"not JSON: {error.msg}") from None
    except DocumentError as error:
        raise DocumentError(source, line_of_fault(text, begin, error.why), error.why) from None
    except ValueError:
        # An infinite float, or an integer with more digits than Python converts.
        raise DocumentError(source, line_of_fault(text, begin, TOO_LARGE), TOO_LARGE) from None
    except RecursionError:
        value, end = None, begin
    if value is None or is_deeper(value, MAX_DEPTH):
        raise DocumentError(source, line_of_fault(text, begin, TOO_DEEP), TOO_DEEP)
    if match := LONE_SURROGATE.search(text, begin, end):
        raise DocumentError(source, text.count("\n", 0, match.start()) + 1, "not JSON: half a surrogate pair is no character")
    return value, end


def line_of_fault(text: str, begin: int, why: str) -> int:
    """The line of this fault of the JSON that begins at a position of the text, if reading it as YAML finds the same one first; else 0."""
    try:
        next(yaml_documents(text[begin:].replace("\t", " "), "", first_line=text.count("\n", 0, begin) + 1), None)
    except DocumentError as error:
        return error.line if error.why == why else 0
    return 0


def lines_of_json(text: str, source: str, first_line: int) -> Mapping[Path, int]:
    """The lines of the fields of one JSON document; none if it cannot be read as YAML."""
    try:
        return next(yaml_documents(text.replace("\t", " "), source, first_line=first_line)).lines
    except (InputError, StopIteration):
        return {}


def is_deeper(value: Any, levels: int) -> bool:
    """Whether the value is nested deeper than that many levels."""
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return levels < 0 or any(is_deeper(below, levels - 1) for below in inner)


def unique_keys(pairs: list[tuple[str, Any]], source: str) -> dict[str, Any]:
    """The members of a JSON object. Raises `InputError` if a key appears twice."""
    members: dict[str, Any] = {}
    for key, value in pairs:
        if key in members:
            raise DocumentError(source, 0, f"the key {clipped(key, 80)} appears twice")
        members[key] = value
    return members


def refuse_constant(word: str, source: str) -> Any:
    """Raise `InputError` for NaN and Infinity, which Python's parser accepts."""
    raise DocumentError(source, 0, f"{word} is not a JSON number")


def yaml_documents(text: str, source: str, *, first_line: int = 1) -> Iterator[Document]:
    """Every YAML document; empty ones are skipped. `first_line`: the line of the file on which the text begins."""
    loader = yaml.CSafeLoader(text if text.endswith("\n") else f"{text}\n")  # As kubectl does: a block of text may be last.
    try:
        while loader.check_event():
            event = loader.get_event()
            if isinstance(event, yaml.DocumentStartEvent):
                parser = _Parser(loader, source, first_line - 1)
                value = parser.document(event)
                if value is not None:
                    yield Document(value, source, parser.lines)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line if mark else 0
        has_tab = any(map(TAB_INDENT.match, text.splitlines()[line : line + 1]))
        problem = error.problem or error.context
        why = (
            TAB
            if has_tab
            else MISSING_SEPARATOR
            if problem == NO_SEPARATOR
            else ": ".join(filter(None, (problem, REMEDIES.get(problem or ""))))
        )
        raise DocumentError(source, first_line + line, f"not YAML: {why}") from None
    except yaml.reader.ReaderError as error:
        raise DocumentError(source, text[: error.position].count(chr(10)) + first_line, f"not YAML: {error.reason}") from None
    finally:
        loader.dispose()


class _Parser(Struct):
    """Builds the value of one document from the loader's events, and notes the line of each field."""

    loader: Any
    source: str
    above: int = 0
    """How many lines of the file are above the text."""
    lines: dict[Path, int] = field(default_factory=dict)
    anchors: dict[str, tuple[Any, int]] = field(default_factory=dict)
    """Anchor -> its value, and how many values that contains."""
    built: int = 0
    aliased: int = 0
    """How many values were built so far, and how many of them by aliases."""

    def document(self, start: Any) -> Any:
        """The value of the document that begins with this event. Raises `InputError` for what kubectl cannot read before it."""
        if start.version or start.tags:
            raise self.fault(start, "kubectl reads no directives (%YAML, %TAG): leave them out")
        event = self.loader.get_event()
        is_empty = isinstance(event, yaml.ScalarEvent) and not event.value
        if start.explicit and not is_empty and event.start_mark.line == start.end_mark.line:
            raise self.fault(start, "kubectl reads nothing behind `---` on its line: begin a new one")
        return self.value(event, (), 0)

    def value(self, event: Any, path: Path, depth: int) -> Any:
        """The value that begins with this event."""
        self.built += 1
        self.lines[path] = self.line(event)
        if depth > MAX_DEPTH:
            raise self.fault(event, TOO_DEEP)
        if isinstance(event, yaml.AliasEvent):
            return self.aliased_value(event)
        before = self.built
        value = self.literal(event, path, depth)
        if event.anchor:
            self.anchors[event.anchor] = value, self.built - before + 1
        return value

    def literal(self, event: Any, path: Path, depth: int) -> Any:
        """A value that is no alias."""
        if isinstance(event, yaml.ScalarEvent):
            return self.scalar(event)
        if isinstance(event, yaml.SequenceStartEvent):
            self.check_tag(event, "seq")
            return list(self.items(path, depth))
        self.check_tag(event, "map")
        return self.mapping(path, depth)

    def aliased_value(self, event: Any) -> Any:
        """The value that an alias refers to."""
        if event.anchor not in self.anchors:
            raise self.fault(event, f"there is no anchor &{clipped(event.anchor, 40)} above this line")
        value, size = self.anchors[event.anchor]
        self.aliased += size
        self.built += size
        if self.aliased > MAX_ALIASED:
            raise self.fault(event, f"aliases repeat more than {MAX_ALIASED} values")
        return value

    def items(self, path: Path, depth: int) -> Iterator[Any]:
        """The items of a list."""
        index = 0
        while not isinstance(event := self.loader.get_event(), yaml.SequenceEndEvent):
            yield self.value(event, (*path, str(index)), depth + 1)
            index += 1

    def mapping(self, path: Path, depth: int) -> dict[str, Any]:
        """A map. Its keys are strings, and unique.

        YAML lets a key of a map win over one that `<<` merges into it, and the first `<<` over the next. kubectl lets what comes later win,
        but kustomize does not: where that makes a difference, the map is refused.
        """
        members: dict[str, Any] = {}
        merged: dict[str, Any] = {}
        while not isinstance(event := self.loader.get_event(), yaml.MappingEndEvent):
            if not isinstance(event, yaml.ScalarEvent):
                raise self.fault(event, "a key must be a plain string")
            if is_merge(event):
                more = self.merge(self.loader.get_event(), path, depth)
                self.refuse_ambiguous(event, {**merged, **members}, more)
                merged = {**more, **merged}
                continue
            key = self.key(event)
            if key in members:
                raise self.fault(event, f"the key {clipped(event.value, 80)} appears twice")
            members[key] = self.value(self.loader.get_event(), (*path, key), depth + 1)
            self.lines[(*path, key)] = self.line(event)
        return {**merged, **members} if merged else members

    def refuse_ambiguous(self, event: Any, above: Mapping[str, Any], more: Mapping[str, Any]) -> None:
        """Raise `InputError` if what `<<` merges differs from what is above it in the same map."""
        both = more.keys() & above.keys()
        if differing := sorted(key for key in both if canonical(more[key]) != canonical(above[key])):
            names = ", ".join(clipped(key, 40) for key in differing[:MAX_NAMES])
            raise self.fault(event, f"kubectl lets this `<<` replace {names} above it, kustomize does not: write one `<<`, and first")

    def key(self, event: Any) -> str:
        """A key as kubectl reads it: `y` is `true`, `0x10` is `16`. Raises `InputError` for one that it cannot read or spells otherwise."""
        value = self.scalar(event)
        if isinstance(value, bool):
            return "true" if value else "false"
        if isinstance(value, str):
            return value
        if value is None:
            raise self.fault(event, "a key must not be null")
        is_exact = str(value) == event.value and abs(value) < LARGE_KEY if has_fraction(event.value) else isinstance(value, int)
        if not is_exact:
            raise self.fault(event, f"the key {clipped(event.value, 40)} is a number: put it in quotes")
        return str(value)

    def merge(self, event: Any, path: Path, depth: int) -> dict[str, Any]:
        """The members that `<<` adds to a map: those of another map, or of several, of which the first has precedence."""
        value = self.value(event, (*path, "<<"), depth + 1)
        merged: dict[str, Any] = {}
        for part in value if isinstance(value, list) else [value]:
            if not isinstance(part, dict):
                raise self.fault(event, "`<<` can only merge maps")
            merged = {**part, **merged}
        return merged

    def scalar(self, event: Any) -> Any:
        """The value of a scalar: a string, or what a plain scalar means."""
        plain, _ = event.implicit
        if event.tag in ("!", f"{TAG}str"):
            return event.value
        if plain:
            return self.resolved(event)
        if event.tag is None:
            return event.value
        if event.tag in (f"{TAG}int", f"{TAG}float", f"{TAG}bool", f"{TAG}null"):
            return self.resolved(event)
        raise self.fault(event, f"the tag {clipped(event.tag, 80)} is not supported")

    def resolved(self, event: Any) -> Any:
        """The value of a plain scalar."""
        try:
            return plain_value(event.value)
        except ValueError as error:
            raise self.fault(event, str(error)) from None

    def check_tag(self, event: Any, name: str) -> None:
        """Raise `InputError` for a list or map with another tag than its own."""
        if event.tag not in (None, "!", TAG + name):
            raise self.fault(event, f"the tag {clipped(event.tag, 80)} is not supported")

    def fault(self, event: Any, why: str) -> InputError:
        """The error with file and line of an event."""
        return DocumentError(self.source, self.line(event), why)

    def line(self, event: Any) -> int:
        """The line of the file on which an event begins, from 1."""
        return self.above + 1 + (event.start_mark.line if event.start_mark else 0)


def canonical(value: Any) -> str:
    """A text that differs for values that differ as JSON: `1` and `true` are the same to Python."""
    return json.dumps(value, sort_keys=True)


def has_fraction(number: str) -> bool:
    """Whether a number is written with a fraction or an exponent."""
    return "." in number or ("e" in number.lower() and "x" not in number)


def is_merge(event: Any) -> bool:
    """Whether a key is `<<`, not in quotes."""
    return bool((event.value == "<<" and event.implicit[0]) or event.tag == f"{TAG}merge")


def plain_value(text: str) -> Any:
    """The value of a plain scalar: None, a bool, a number, or the text itself. Raises `ValueError` for numbers that JSON does not have."""
    if text in WORDS:
        return WORDS[text]
    if text[0] not in "+-.0123456789":
        return text
    if NOT_FINITE.fullmatch(text):
        raise ValueError(f"{text} is not a JSON number")
    digits = BETWEEN_DIGITS.sub("", text) if text.startswith(".") else text.replace("_", "")
    for pattern, number in NUMBERS:
        if pattern.fullmatch(digits) and len(digits) < 400:
            try:
                return bounded(number(digits))
            except OverflowError:
                return text
    return text


def of_64_bits(number: int) -> int | float:
    """A number that is written with another base than ten. Raises `OverflowError` beyond 64 bits: there kubectl reads text."""
    if not -(2**63) <= number < 2**64:
        raise OverflowError
    return number


def bounded(number: int | float) -> int | float:
    """A number as JSON parsers read it: `1e3` is an integer, and beyond int64 it is a float. Raises `ValueError` beyond the floats."""
    try:
        value = float(number)
    except OverflowError:
        value = float("inf")
    if value in (float("inf"), float("-inf")):
        raise ValueError(TOO_LARGE)
    fits = -(2**63) <= number < 2**63
    return int(number) if fits and number == int(number) else value
