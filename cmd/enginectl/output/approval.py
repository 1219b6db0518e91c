"""Approvals for people: differences between what was approved and what is."""

from collections.abc import Iterator, Sequence

from engine.approval.deviation import Deviation
from engine.report.line import Line
from engine.report.printable import clipped

MAX_DIFFERENCES = 30
"""Differences that are listed; of the others the number is given."""
WIDTH = 300


def difference_lines(differences: Sequence[Deviation]) -> Iterator[Line]:
    """A line for each difference."""
    for difference in differences[:MAX_DIFFERENCES]:
        yield Line(f"not as approved: {clipped(str(difference), WIDTH)}", "bad")
    if len(differences) > MAX_DIFFERENCES:
        yield Line(f"… and {len(differences) - MAX_DIFFERENCES} more differences", "bad")


def difference_entry(difference: Deviation) -> dict[str, str]:
    """A difference in a JSON document."""
    return {"about": difference.about, "then": difference.then, "now": difference.now}
