"""Alike: groups operations that differ in numbers only, so that they are reported once, with an example and a count."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Protocol, TypeVar

from engine.ids import ResourceId
from engine.plan import Wait
from engine.reason import Reason
from engine.report.fields import json_text
from engine.report.model import Step

T = TypeVar("T")

NUMBER = re.compile(r"[0-9]+")
"""Replaced by `#` before texts are compared."""
TOKEN = re.compile(r"-(?:[bcdfghjklmnpqrstvwxz2456789]{5}\b(?!-)|\?{5})")
"""The random-looking suffix of a pod's name, and what stands for one that is not known."""
CLAUSE = 12
"""The fewest characters of a clause that is not repeated: shorter ones may be items of a list."""
FEW = 3
"""The items of groups smaller than this are listed individually."""
RESOURCE = re.compile(r'^\S+ is forbidden: (User "[^"]*" cannot list) resource "[^"]*" in API group "[^"]*"')
"""The part of a refusal that names the kind. What follows is the same for every kind."""
NEEDED = "what they need could not be listed completely"
"""Why objects wait that need different kinds which were not listed."""


def steps_alike(steps: Iterable[Step]) -> list[tuple[Step, ...]]:
    """The steps in groups that are reported together, in the order of their first members."""
    return grouped(steps, step_pattern)


class Explained(Protocol):
    """Anything that refers to an object and has a reason."""

    @property
    def id(self) -> ResourceId:
        """The object."""
        ...

    @property
    def why(self) -> str:
        """The reason."""
        ...


E = TypeVar("E", bound=Explained)


def waits_alike(waits: Iterable[E]) -> list[tuple[E, ...]]:
    """Deferred or pending objects in groups that are reported together."""
    return grouped(waits, lambda wait: (wait.id.kind, wait.id.namespace, blurred(wait.id.name), blurred(wait.why)))


def waits_with_one_reason(waits: Iterable[Wait]) -> list[tuple[Wait, ...]]:
    """Deferred or pending objects of any kind in groups whose reasons differ in numbers only, or in the kinds that are not listed."""
    groups: dict[tuple[object, ...], list[Wait]] = {}
    for wait in waits:
        what = "" if wait.reason is Reason.NOT_LISTED else blurred(wait.why)
        groups.setdefault((wait.id.namespace, wait.reason, what), []).append(wait)
    return list(map(tuple, groups.values()))


def shared_reason(waits: Sequence[Explained]) -> str:
    """The reason of a group: one text, or `NEEDED` where they need different kinds that are not listed."""
    texts = [wait.why for wait in waits]
    return spread(texts) if len({blurred(text) for text in texts}) == 1 else NEEDED


def unlisted_by_cause(incomplete: Mapping[str, str]) -> dict[str, str]:
    """The kinds, such as `Ingress, Pod and Service`, with why they could not be listed. Kinds with the same cause are together."""
    causes: dict[str, list[str]] = {}
    for kind, why in incomplete.items():
        causes.setdefault(RESOURCE.sub(r"\1 them", why), []).append(kind)
    return {_joined(kinds): cause if len(kinds) > 1 else incomplete[kinds[0]] for cause, kinds in causes.items()}


def _joined(names: Sequence[str]) -> str:
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last


def grouped(items: Iterable[T], pattern: Callable[[T], object]) -> list[tuple[T, ...]]:
    """The items grouped by pattern; groups of fewer than `FEW` are split into single items."""
    groups: dict[object, list[T]] = {}
    for item in items:
        groups.setdefault(pattern(item), []).append(item)
    return [split for group in groups.values() for split in ([tuple(group)] if len(group) >= FEW else [(item,) for item in group])]


def step_pattern(step: Step) -> tuple[object, ...]:
    """What two steps must have in common to be reported together: everything but numbers and name suffixes."""
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
    return value if isinstance(value, str) else json_text(value)


def blurred(text: str) -> str:
    """The text with its numbers and name suffixes replaced by placeholders."""
    return NUMBER.sub("#", TOKEN.sub("-*", text))


def spread(texts: Iterable[str]) -> str:
    """Texts of one pattern as one text: `simple-{0..499}-worker-*`, without repetitions within it."""
    listed = list(texts)
    if len(listed) == 1:
        return without_repetition(listed[0])
    listed = [TOKEN.sub("-*", text) for text in listed]
    columns = zip(*(NUMBER.findall(text) for text in listed), strict=True)
    ranges = iter([span({int(number) for number in column}) for column in columns])
    return without_repetition(NUMBER.sub(lambda _: next(ranges), listed[0]))


def without_repetition(text: str) -> str:
    """The text without clauses that repeat the one before them, as those of kube-scheduler about groups in groups do."""
    first, *others = text.split(", ")
    kept = [first]
    for clause in others:
        if len(clause) < CLAUSE or not (clause == kept[-1] or kept[-1].endswith(f": {clause}")):
            kept.append(clause)
    return ", ".join(kept)


def span(numbers: set[int]) -> str:
    """The numbers in short: a single one as itself, consecutive ones as `{0..4}`, others as `{1,3,9}` or `{1,…,9}`."""
    ordered = sorted(numbers)
    first, last = ordered[0], ordered[-1]
    if first == last:
        return str(first)
    if last - first == len(ordered) - 1:
        return f"{{{first}..{last}}}"
    return "{" + ",".join(map(str, ordered)) + "}" if len(ordered) <= 4 else f"{{{first},…,{last}}}"
