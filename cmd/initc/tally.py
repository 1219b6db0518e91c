"""Tally: which pods of a gang are ready, and how many of which cliques are still missing."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

Pod = Mapping[str, Any]

CLIQUE = "grove.io/podclique"
"""The label that names a pod's clique."""


class Tally:
    """What is known of a gang's pods at one instant: what a list has told, and each event after it."""

    def __init__(self, needs: Mapping[str, int]) -> None:
        self._needs = dict(needs)
        self._ready: dict[str, str] = {}
        """Pod -> its clique, for those that are ready."""

    def take(self, event: str, body: Mapping[str, Any]) -> None:
        """One more piece of news: a `LIST` of all pods, with which what was known before is forgotten, or what has happened to one."""
        match event:
            case "LIST":
                self._ready = {}
                for pod in body["items"] or ():
                    self._note(pod)
            case "DELETED":
                self._ready.pop(body["metadata"]["name"], None)
            case "ADDED" | "MODIFIED":
                self._note(body)

    def _note(self, pod: Pod) -> None:
        metadata = pod["metadata"]
        if is_ready(pod):
            self._ready[metadata["name"]] = (metadata.get("labels") or {}).get(CLIQUE, "")
        else:
            self._ready.pop(metadata["name"], None)

    @property
    def missing(self) -> dict[str, int]:
        """How many more ready pods of each clique it takes; empty: all are there, at this one instant."""
        there = Counter(self._ready.values())
        return {clique: needed - there[clique] for clique, needed in self._needs.items() if there[clique] < needed}


def is_ready(pod: Pod) -> bool:
    """Whether a pod is ready, and not on its way out."""
    conditions = (pod.get("status") or {}).get("conditions") or ()
    ready = any(one.get("type") == "Ready" and one.get("status") == "True" for one in conditions)
    return ready and not pod["metadata"].get("deletionTimestamp")
