"""TemplateRefusal: the condition of a set whose update is held back, because the API server refuses pods of the new template."""

from typing import Any, Final

from engine.conditions import condition, find
from engine.diff import covers
from engine.observed import Observed
from engine.report.printable import clipped

CONDITION: Final = "PodTemplateRefused"
"""The type of the condition, and the reason of the Warning."""
REASON: Final = "RefusedByAPIServer"
MAX_MESSAGE: Final = 2000
"""The largest number of characters of the condition's message."""


def conditions(refusal: str, generation: int) -> list[dict[str, Any]]:
    """The condition as a list; empty if nothing is refused. `refusal`: the server's words."""
    return [condition(CONDITION, True, REASON, clipped(refusal, MAX_MESSAGE), generation=generation)] if refusal else []


def recorded(observed: Observed) -> str:
    """What the status of the set says that the API server refuses of the template that is planned for; empty if it says nothing of it."""
    root = observed.root
    known = find((root.body.get("status") or {}).get("conditions") or (), CONDITION) or {}
    if known.get("status") != "True" or known.get("observedGeneration") != root.generation:
        return ""
    if observed.proposal is not None and not covers(observed.proposal.get("spec"), root.body.get("spec")):
        return ""
    return str(known.get("message") or "")
