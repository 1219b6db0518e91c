"""Admission policy: the admission rules that an API server evaluates itself, as CEL, without a webhook."""

from collections.abc import Iterator
from typing import Protocol, runtime_checkable

from msgspec import Struct

from engine.resource import Body


class PolicyVariable(Struct, frozen=True):
    """A value that several rules use, as `variables.<name>`."""

    name: str
    expression: str
    """CEL. It may use the variables before it."""


class PolicyRule(Struct, frozen=True):
    """One rule of a ValidatingAdmissionPolicy."""

    expression: str
    """CEL; true if the request is admitted."""
    message: str
    """Field and reason, for people. Where `message_expression` cannot be evaluated, it is shown instead."""
    message_expression: str = ""
    """CEL whose value is the message with the names of what is wrong; empty if `message` says everything."""


class Enrolment(Struct, frozen=True):
    """What a new PodCliqueSet gets if it matches, as a MutatingAdmissionPolicy."""

    name: str
    """A word for the name of the policy."""
    conditions: tuple[PolicyRule, ...]
    """All must be true."""
    annotations: Body
    """The annotations that are added."""


@runtime_checkable
class RuledFabric(Protocol):
    """A `Fabric` whose admission rules can be written as CEL, at least in part.

    The rules may use the variables of `resources.admission_policies.sets.VARIABLES`: `cliques`, `oldCliques` and others.
    """

    def policy_rules(self) -> Iterator[PolicyRule]:
        """The rules for PodCliqueSets."""
        ...

    def enrolment(self) -> Enrolment | None:
        """What new sets get by default; None if nothing."""
        ...

    def unstated_rules(self) -> Iterator[str]:
        """The rules that CEL cannot state, each in a sentence."""
        ...
