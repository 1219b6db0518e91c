"""Pod notes: what an API server would refuse in the pods of a stored set. It keeps nothing from being planned."""

from typing import Final

from engine.report.printable import clipped
from engine.resource import Body
from resources.base.kinds import PODCLIQUESET
from resources.schema.issues import MAX_TEXT
from resources.schema.pod_spec_rules import object_findings, warning

MAX_NOTES: Final = 3
"""The largest number of notes about the pods of one set; further ones are only counted."""


def pod_notes(body: Body) -> tuple[str, ...]:
    """A note for each thing that would keep the pods of a set from being created, at most `MAX_NOTES`."""
    refused = [finding for finding in object_findings(PODCLIQUESET, body) if finding.pods_only]
    more = [f"and {len(refused) - MAX_NOTES} more reasons to refuse the pods"] if len(refused) > MAX_NOTES else []
    return (*(clipped(warning(finding), MAX_TEXT) for finding in refused[:MAX_NOTES]), *more)
