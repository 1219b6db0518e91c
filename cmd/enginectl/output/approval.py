"""Approvals for people: deviations between what was approved and what is."""

from collections.abc import Iterator, Sequence

from engine.approval.approval import Deviation
from engine.report.printable import Line, clipped

MAX_DEVIATIONS = 30
"""Differences that are listed; of the others the number is given."""
WIDTH = 300


def deviation_lines(deviations: Sequence[Deviation]) -> Iterator[Line]:
    """A line for each deviation."""
    for deviation in deviations[:MAX_DEVIATIONS]:
        yield Line(f"not as approved: {clipped(str(deviation), WIDTH)}", "bad")
    if len(deviations) > MAX_DEVIATIONS:
        yield Line(f"… and {len(deviations) - MAX_DEVIATIONS} more deviations", "bad")


def deviation_entry(deviation: Deviation) -> dict[str, str]:
    """A deviation in a JSON document."""
    return {"about": deviation.about, "then": deviation.then, "now": deviation.now}
