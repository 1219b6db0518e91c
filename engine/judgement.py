"""Judgement: what policies say about a plan and its forecast."""

from enum import StrEnum

from msgspec import Struct

from engine.ids import ResourceId


class Enforcement(StrEnum):
    """What follows when a rule is violated."""

    DENY = "deny"
    """Nothing is written."""
    WARN = "warn"
    """Readers are told, and everything is done."""
    AUDIT = "audit"
    """Only documents for programs have it."""


class Violation(Struct, frozen=True):
    """A rule that a plan violates."""

    rule: str
    """`policy/rule`, e.g. `prod/restarts`."""
    enforcement: Enforcement
    message: str
    about: ResourceId | None = None
    """The root that it is about; None: the plan as a whole."""
    waived: str = ""
    """The reason for which it was waived: then it denies nothing. Empty: it was not."""


class Judgement(Struct, frozen=True):
    """What all policies together say."""

    violations: tuple[Violation, ...] = ()
    notes: tuple[str, ...] = ()
    """Rules that could not be applied and are ignored, as their policies ask for."""

    @property
    def denied(self) -> tuple[Violation, ...]:
        """The violations that keep everything from being written."""
        return self._open(Enforcement.DENY)

    @property
    def warned(self) -> tuple[Violation, ...]:
        """The violations that people are told of."""
        return self._open(Enforcement.WARN)

    @property
    def audited(self) -> tuple[Violation, ...]:
        """The violations that only documents for programs have."""
        return self._open(Enforcement.AUDIT)

    @property
    def waived(self) -> tuple[Violation, ...]:
        """The violations that somebody waived, with the reason."""
        return tuple(violation for violation in self.violations if violation.waived)

    def _open(self, enforcement: Enforcement) -> tuple[Violation, ...]:
        return tuple(violation for violation in self.violations if violation.enforcement is enforcement and not violation.waived)


NO_JUDGEMENT = Judgement()
