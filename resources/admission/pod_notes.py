"""Pod notes: what an API server would refuse in the pods of a stored set. It keeps nothing from being planned."""

from collections.abc import Iterable
from typing import Final

from engine.report.printable import clipped
from resources.schema.issues import MAX_TEXT, Issue
from resources.schema.pod_spec_rules import warning

MAX_NOTES: Final = 3
"""The largest number of notes about the pods of one set; further ones are only counted."""


def pod_notes(findings: Iterable[Issue]) -> tuple[str, ...]:
    """A note for each of these findings that would keep the pods of a set from being created, at most `MAX_NOTES`."""
    refused = [finding for finding in findings if finding.pods_only]
    more = [f"and {len(refused) - MAX_NOTES} more reasons to refuse the pods"] if len(refused) > MAX_NOTES else []
    return (*(clipped(warning(finding), MAX_TEXT) for finding in refused[:MAX_NOTES]), *more)
