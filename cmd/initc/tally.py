"""Tally: how many ready pods of which cliques are still missing."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

Pod = Mapping[str, Any]

CLIQUE = "grove.io/podclique"
"""The label that names a pod's clique."""


class Tally:
    """The ready pods of a gang at one instant, kept up to date by events."""

    def __init__(self, required: Mapping[str, int]) -> None:
        self._required = dict(required)
        self._ready: dict[str, str] = {}
        """Name of a ready pod -> its clique."""

    def apply(self, event: str, body: Mapping[str, Any]) -> None:
        """Apply one event. A `LIST` replaces everything that was known."""
        match event:
            case "LIST":
                self._ready = {}
                for pod in body["items"] or ():
                    self._update(pod)
            case "DELETED":
                self._ready.pop(body["metadata"]["name"], None)
            case "ADDED" | "MODIFIED":
                self._update(body)

    def _update(self, pod: Pod) -> None:
        metadata = pod["metadata"]
        if is_ready(pod):
            self._ready[metadata["name"]] = (metadata.get("labels") or {}).get(CLIQUE, "")
        else:
            self._ready.pop(metadata["name"], None)

    @property
    def missing(self) -> dict[str, int]:
        """Clique -> how many more of its pods must be ready; empty if enough pods of all cliques are ready at this instant."""
        ready = Counter(self._ready.values())
        return {clique: required - ready[clique] for clique, required in self._required.items() if ready[clique] < required}


def is_ready(pod: Pod) -> bool:
    """Whether a pod is ready and not being deleted."""
    conditions = (pod.get("status") or {}).get("conditions") or ()
    ready = any(condition.get("type") == "Ready" and condition.get("status") == "True" for condition in conditions)
    return ready and not pod["metadata"].get("deletionTimestamp")
