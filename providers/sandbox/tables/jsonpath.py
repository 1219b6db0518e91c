"""JSONPath as printer columns use it: where a column's value is found in an object."""

import json
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

Step = Callable[[Any], Iterable[Any]]

_STEP = re.compile(
    r"""\.\.(?P<deep>[\w\-]+)
      | \.(?P<child>(?:\\.|[^.\[\]\\])+)
      | \[\s*'(?P<quoted>(?:\\.|[^'\\])*)'\s*\]
      | \[\s*(?P<index>-?\d+)\s*\]
      | \[\s*(?P<start>-?\d*)\s*:\s*(?P<stop>-?\d*)\s*\]
      | (?P<all>\[\s*\*\s*\]|\.\*)
      | \[\?\(\s*@(?P<left>[^=!<>\s)]*)\s*(?:(?P<op>==|!=|<=|>=|<|>)\s*(?P<right>"[^"]*"|'[^']*'|[^\s)]+)\s*)?\)\]""",
    re.VERBOSE,
)
_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "==": lambda left, right: bool(left == right),
    "!=": lambda left, right: bool(left != right),
    "<": lambda left, right: bool(left < right),
    "<=": lambda left, right: bool(left <= right),
    ">": lambda left, right: bool(left > right),
    ">=": lambda left, right: bool(left >= right),
}


@dataclass(frozen=True, slots=True)
class JsonPath:
    """A parsed path; calling `find` yields every value it points at, in document order."""

    steps: tuple[Step, ...]

    def find(self, document: Any) -> Iterator[Any]:
        """The values at this path; a missing key is no value, never an error."""
        found: Iterable[Any] = (document,)
        for step in self.steps:
            found = [value for each in found for value in step(each)]
        yield from found


@lru_cache(maxsize=1024)
def parse(text: str) -> JsonPath:
    """The path that `text` spells, with or without braces around it. Raises `ValueError` for what is not a path."""
    path = text.strip().removeprefix("{").removesuffix("}").removeprefix("$")
    steps: list[Step] = []
    at = 0
    while at < len(path):
        match = _STEP.match(path, at)
        if match is None:
            raise ValueError(f"not a JSONPath from {path[at:]!r} on: {text!r}")
        steps.append(_step(match))
        at = match.end()
    return JsonPath(tuple(steps))


def _step(match: re.Match[str]) -> Step:
    if match["all"] or match["child"] == "*":
        return _every
    if match["deep"]:
        return _descendants(match["deep"])
    if (name := match["child"] or match["quoted"]) is not None:
        return _child(re.sub(r"\\(.)", r"\1", name))
    if match["index"]:
        return _item(int(match["index"]))
    if match["left"] is not None:
        return _where(parse(match["left"]), match["op"], match["right"])
    return _slice(*(int(bound) if bound else None for bound in (match["start"], match["stop"])))


def _every(value: Any) -> Iterable[Any]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else ()


def _child(name: str) -> Step:
    return lambda value: (value[name],) if isinstance(value, dict) and name in value else ()


def _descendants(name: str) -> Step:
    def walk(value: Any) -> Iterator[Any]:
        if isinstance(value, dict) and name in value:
            yield value[name]
        for below in _every(value):
            yield from walk(below)

    return lambda value: list(walk(value))


def _item(index: int) -> Step:
    return lambda value: value[index : index + 1 or None] if isinstance(value, list) else ()


def _slice(start: int | None, stop: int | None) -> Step:
    return lambda value: value[start:stop] if isinstance(value, list) else ()


def _where(path: JsonPath, operator: str | None, literal: str | None) -> Step:
    wanted = None if literal is None else _literal(literal)

    def holds(value: Any) -> bool:
        found = list(path.find(value))
        if operator is None:
            return bool(found)
        try:
            return bool(found) and _COMPARE[operator](found[0], wanted)
        except TypeError:
            return False

    return lambda value: [each for each in value if holds(each)] if isinstance(value, list) else ()


def _literal(text: str) -> Any:
    if text[0] in "\"'":
        return text[1:-1]
    try:
        return json.loads(text)
    except ValueError:
        return text
