"""The statuses of sets and graphs that a story has seen written, as kstatus, Argo CD and Flux read them."""

from typing import Any, Final

from engine.conditions import READY
from engine.health import BREACHED, RECONCILING, STALLED
from resources.base import kinds
from tests.gitops_tools import argo_cd, flux
from tests.kstatus import kstatus

ROOTS: Final = frozenset({kinds.PODCLIQUESET.name, kinds.DYNAMO_GRAPH.name})
AGREED: Final = {"Current": ("Healthy", "current"), "Failed": ("Degraded", "failed"), "InProgress": ("Progressing", "inProgress")}
"""What kstatus says -> what Argo CD and Flux say of the same status."""


class Healths:
    """Statuses that differ for a tool, each once."""

    def __init__(self) -> None:
        self._seen: dict[str, dict[str, Any]] = {}

    def note(self, body: dict[str, Any]) -> None:
        """Remember what was written, unless the object is being deleted: all tools go by that alone."""
        if body["kind"] in ROOTS and "deletionTimestamp" not in body["metadata"]:
            read = {key: value for key, value in body["status"].items() if key != "conditions"}
            conditions = [(each["type"], each["status"], each["reason"]) for each in body["status"].get("conditions", ())]
            generations = {each.get("observedGeneration") for each in body["status"].get("conditions", ())}
            self._seen[repr((body["kind"], body["metadata"]["generation"], generations, read, conditions))] = body

    def check(self) -> None:
        """Fails if a status is not one of the three states, or if tools disagree about it."""
        for body in self._seen.values():
            found = {each["type"]: each for each in body["status"].get("conditions", ())}
            true = {type for type in (READY, RECONCILING, STALLED) if type in found and found[type]["status"] == "True"}
            assert READY in found and len(true) <= 1, found
            assert all(type in true for type in (RECONCILING, STALLED) if type in found), found
            state = kstatus(body)
            if found[READY]["reason"] == BREACHED:
                assert (state, argo_cd(body)) == ("InProgress", "Degraded"), found
            else:
                assert (argo_cd(body), flux(body)) == AGREED[state], (state, found)
