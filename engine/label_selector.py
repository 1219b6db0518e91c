"""LabelSelector: which labels an object must have, written as for kubectl: `a=b,c!=d,e in (f,g),h notin (i),j,!k`."""

import re
from collections.abc import Mapping
from enum import StrEnum

from msgspec import Struct

from engine.errors import InputError


class Operator(StrEnum):
    """How a label is compared."""

    IN = "in"
    NOT_IN = "notin"
    """Also matches an object without the label, as in Kubernetes."""
    EXISTS = "exists"
    ABSENT = "absent"


class Requirement(Struct, frozen=True):
    """What is required of one label."""

    key: str
    operator: Operator
    values: frozenset[str] = frozenset()

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether these labels fulfil it."""
        match self.operator:
            case Operator.EXISTS:
                return self.key in labels
            case Operator.ABSENT:
                return self.key not in labels
            case Operator.IN:
                return labels.get(self.key) in self.values
            case Operator.NOT_IN:
                return labels.get(self.key) not in self.values


class LabelSelector(Struct, frozen=True):
    """Requirements that labels must all fulfil."""

    text: str
    """As the user wrote it."""
    requirements: tuple[Requirement, ...]

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether these labels fulfil every requirement."""
        return all(requirement.matches(labels) for requirement in self.requirements)


NAME = r"[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
KEY = rf"(?:[a-z0-9](?:[-a-z0-9.]{{0,251}}[a-z0-9])?/)?{NAME}"
SET = re.compile(rf"\s*({KEY})\s+(in|notin)\s*\(([^()]*)\)\s*")
EQUALITY = re.compile(rf"\s*({KEY})\s*(==|=|!=)\s*({NAME})?\s*")
PRESENCE = re.compile(rf"\s*(!?)\s*({KEY})\s*")
VALUE = re.compile(rf"(?:{NAME})?")


def parse_selector(text: str) -> LabelSelector:
    """The selector that a text means. Raises `InputError` if it is none."""
    return LabelSelector(text, tuple(_requirement(term) for term in _terms(text)))


def _terms(text: str) -> list[str]:
    """The text between commas; commas within parentheses do not count."""
    return re.split(r",(?![^(]*\))", text)


def _requirement(term: str) -> Requirement:
    if match := SET.fullmatch(term):
        key, operator, values = match.groups()
        return Requirement(key, Operator(operator), frozenset(_value(value) for value in values.split(",")))
    if match := EQUALITY.fullmatch(term):
        key, sign, value = match.groups()
        return Requirement(key, Operator.NOT_IN if sign == "!=" else Operator.IN, frozenset({value or ""}))
    if match := PRESENCE.fullmatch(term):
        return Requirement(match[2], Operator.ABSENT if match[1] else Operator.EXISTS)
    raise InputError(
        f"{term.strip() or 'an empty text'} is no requirement of a label: expected a=b, a!=b, a in (b,c), a notin (b,c), a or !a"
    )


def _value(text: str) -> str:
    if not VALUE.fullmatch(value := text.strip()):
        raise InputError(f"{value} is no value of a label")
    return value
