"""Expressions: what evaluates the expressions of policies, as those who judge see it."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from msgspec import Struct

from resources.schema.plan_policy import RuleScope


class RuleSubject(Struct, frozen=True, eq=False):
    """What expressions are evaluated about."""

    scope: RuleScope
    data: Mapping[str, Any]
    """The plan or the set."""
    params: Mapping[str, Any]
    now: str
    """A Kubernetes timestamp."""


class Answer(Struct, frozen=True):
    """The value of an expression, or why it has none."""

    value: Any = None
    fault: str = ""
    """Empty if there is a value."""


class Fault(Struct, frozen=True):
    """Why an expression cannot be used."""

    message: str
    line: int = 1
    column: int = 1


class Expressions(Protocol):
    """Evaluates expressions."""

    def evaluate(self, subject: RuleSubject, expressions: Sequence[str]) -> Sequence[Answer]:
        """The answer of each expression, in order. Never raises because of what an expression does."""
        ...
