"""Refusals: what guards and policies say about a report, as text. Both are told in the same form."""

from collections.abc import Iterable, Iterator
from typing import Final

from engine.judgement import Enforcement, Judgement, Violation
from engine.plan import Objection
from engine.report.printable import Line, clipped

MOST: Final = 40
"""The most violations of each kind that are shown; with `verbose` all are."""
NAME: Final = 200
"""The most characters of the name of a rule or an object."""
MESSAGE: Final = 400
"""The most characters of a message, and of the reason of a waiver."""


def judgement_lines(judgement: Judgement, *, verbose: bool = False) -> Iterator[Line]:
    """A line for each violation that people are told of, those that deny first, and for each rule that was not applied."""
    yield from _bounded((Line(violation_text("denied by", each), "bad") for each in judgement.denied), verbose)
    yield from _bounded((Line(violation_text("warned by", each), "blocked") for each in judgement.warned), verbose)
    waived = (each for each in judgement.waived if each.enforcement is not Enforcement.AUDIT)
    yield from _bounded((Line(waiver_text(each), "faint") for each in waived), verbose)
    yield from _bounded((Line(f"note: {clipped(note, MESSAGE)}", "faint") for note in judgement.notes), verbose)


def violation_text(what: str, violation: Violation) -> str:
    """One violation: `denied by prod/restarts: …`, with the root that it is about."""
    about = f" ({clipped(str(violation.about), NAME)})" if violation.about else ""
    return f"{what} {clipped(violation.rule, NAME)}{about}: {clipped(violation.message, MESSAGE)}"


def waiver_text(violation: Violation) -> str:
    """A waived violation and the reason: `waived prod/restarts: … (reason: …)`."""
    return f"{violation_text('waived', violation)} (reason: {clipped(violation.waived, MESSAGE)})"


def _bounded(lines: Iterable[Line], verbose: bool) -> Iterator[Line]:
    listed = list(lines)
    yield from listed if verbose else listed[:MOST]
    if len(listed) > MOST and not verbose:
        yield Line(f"… and {len(listed) - MOST} more like these; -v shows all", "faint")


def objection_text(objection: Objection) -> str:
    """A guard's refusal: `denied by delete-budget: …`."""
    return f"denied by {objection.rule}: {clipped(objection.message, MESSAGE)}"
