"""What keeps an object from running: lines for people, and entries of the JSON document."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

from msgspec.structs import replace

from engine.ids import ResourceId
from engine.report.alike import blurred, grouped
from engine.report.json import moment_text
from engine.report.printable import Line, clipped, printable
from engine.report.shapes import identity
from enginectl.output.status import MAX_ADVICE, MAX_NAMES, wait_lines
from enginectl.output.tables import age
from resources.reports.obstacle import RunObstacle
from resources.reports.obstacles import Standstill

MAX_LISTED = 12
"""Reasons that are listed; -v and -o json have them all."""
MAX_TEXT = 400


def standstill_lines(standstill: Standstill, id: ResourceId, now: datetime, *, verbose: bool) -> Iterator[Line]:
    """What is deferred or pending for the parts of the object, and what keeps pods from running.

    Pods with the same reason share a line unless `verbose`.
    """
    advice = {obstacle.advice for obstacle in standstill.obstacles}
    waits = (wait for wait in standstill.waits if wait.id != id)
    yield from wait_lines(tuple(replace(wait, advice="") if wait.advice in advice else wait for wait in waits), now, verbose)
    groups = grouped(standstill.obstacles, lambda each: (each.reason, each.about.kind, blurred(each.text), verbose and each))
    for group in groups if verbose else groups[:MAX_LISTED]:
        yield from _obstacle_lines(group, id, now)
    if len(groups) > MAX_LISTED and not verbose:
        yield Line(f"  … {len(groups) - MAX_LISTED} more; -v shows all", "faint")


def _obstacle_lines(group: Sequence[RunObstacle], id: ResourceId, now: datetime) -> Iterator[Line]:
    """One reason, the objects that have it, since when the first of them has it, and what to do."""
    first, onset = group[0], min((obstacle.since for obstacle in group if obstacle.since), default=None)
    since = f", since {age(now, onset)}" if onset else ""
    who = _names(group) if any(obstacle.about != id for obstacle in group) else "it"
    verb = "does" if len(group) == 1 else "do"
    yield Line(f"  {who} {verb} not run ({first.reason}): {clipped(first.text, MAX_TEXT)}{since}", "pending")
    if first.advice:
        yield Line(f"    do: {clipped(first.advice, MAX_ADVICE)}", "faint")


def _names(group: Sequence[RunObstacle]) -> str:
    """The first objects by name, and how many others there are."""
    first, *others = (obstacle.about for obstacle in group[:MAX_NAMES])
    listed = ", ".join((printable(str(first)), *(printable(other.name) for other in others)))
    rest = len(group) - MAX_NAMES
    return f"{listed} and {rest} more" if rest > 0 else listed


def obstacle_entry(obstacle: RunObstacle) -> dict[str, Any]:
    """An obstacle in the JSON document."""
    return {
        "object": identity(obstacle.about),
        "reason": obstacle.reason,
        "message": obstacle.text,
        "since": moment_text(obstacle.since),
        "advice": obstacle.advice,
    }
