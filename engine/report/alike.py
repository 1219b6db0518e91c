"""Alike: operations that differ in numbers alone are told once, with an example and a count."""

import re
from collections.abc import Callable, Iterable
from typing import Protocol, TypeVar

from engine.canonical import canonical
from engine.ids import ResourceId
from engine.report.model import Step

T = TypeVar("T")

NUMBER = re.compile(r"[0-9]+")
TOKEN = re.compile(r"-[bcdfghjklmnpqrstvwxz2456789]{5}\b(?!-)")
"""The last part of a pod's name: letters and digits that no number looks like."""
FEW = 3
"""Fewer than this many are not worth a pattern."""


def steps_alike(steps: Iterable[Step]) -> list[tuple[Step, ...]]:
    """The steps in groups that can be told together, in the order of their first members."""
    return grouped(steps, step_pattern)


class Delayed(Protocol):
    """Anything that is not there yet, and why."""

    @property
    def id(self) -> ResourceId:
        """Which object."""
        ...

    @property
    def why(self) -> str:
        """The reason."""
        ...


D = TypeVar("D", bound=Delayed)


def held_alike(listed: Iterable[D]) -> list[tuple[D, ...]]:
    """What is held or waits, in groups that can be told together."""
    return grouped(listed, lambda held: (held.id.kind, held.id.namespace, blurred(held.id.name), blurred(held.why)))


def grouped(items: Iterable[T], pattern: Callable[[T], object]) -> list[tuple[T, ...]]:
    """Items by pattern; a group of only a few falls apart into its members."""
    groups: dict[object, list[T]] = {}
    for item in items:
        groups.setdefault(pattern(item), []).append(item)
    return [part for group in groups.values() for part in ([tuple(group)] if len(group) >= FEW else [(item,) for item in group])]


def step_pattern(step: Step) -> tuple[object, ...]:
    """What two steps must share to be told together: everything but numbers and names made of numbers."""
    operation = step.operation
    changes = tuple((change.path, blurred(text_of(change.old)), blurred(text_of(change.new)), change.cause) for change in operation.changes)
    return (
        operation.verb,
        operation.id.group,
        operation.id.kind,
        operation.id.namespace,
        blurred(operation.id.name),
        blurred(operation.why),
        operation.cause,
        operation.intended,
        changes,
    )


def text_of(value: object) -> str:
    """A value as canonical text."""
    return canonical(value).decode() if not isinstance(value, str) else value


def blurred(text: str) -> str:
    """The text with its numbers and random name parts taken out."""
    return NUMBER.sub("#", TOKEN.sub("-*", text))


def spread(texts: Iterable[str]) -> str:
    """Texts of one pattern as one: `simple-{0..499}-worker-*`. A text on its own stays as it is."""
    listed = list(texts)
    if len(listed) == 1:
        return listed[0]
    listed = [TOKEN.sub("-*", text) for text in listed]
    columns = zip(*(NUMBER.findall(text) for text in listed), strict=True)
    ranges = iter([span({int(number) for number in column}) for column in columns])
    return NUMBER.sub(lambda _: next(ranges), listed[0])


def span(numbers: set[int]) -> str:
    """Numbers in short: one as itself, a run as `{0..4}`, others as `{1,3,9}` or `{1,…,9}`."""
    ordered = sorted(numbers)
    first, last = ordered[0], ordered[-1]
    if first == last:
        return str(first)
    if last - first == len(ordered) - 1:
        return f"{{{first}..{last}}}"
    return "{" + ",".join(map(str, ordered)) + "}" if len(ordered) <= 4 else f"{{{first},…,{last}}}"
