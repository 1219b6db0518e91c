"""The statuses that a story has seen written, as kstatus, Argo CD and Flux read them, and what Argo CD offers to do."""

import re
from collections.abc import Iterator
from typing import Any, Final

import orjson

from engine.conditions import READY
from engine.health import BREACHED, RECONCILING, STALLED
from engine.paths import get
from resources.base import kinds
from tests.gitops_tools import acted, actions, argo_cd, flux
from tests.kstatus import kstatus

ROOTS: Final = frozenset({kinds.PODCLIQUESET.name, kinds.DYNAMO_GRAPH.name})
CHILDREN: Final = frozenset({kinds.PODCLIQUE.name, kinds.SCALING_GROUP.name, kinds.LEADER_WORKER_SET.name})
"""What else Argo CD has checks for: they are never Degraded, since one that comes up has the same status as one that has lost pods."""
TOUCHED: Final = {
    "scale": r"/spec/replicas",
    "restart": r"/spec/(restart(/id)?|template/cliques/\d+/annotations(/kubectl.kubernetes.io~restartedAt)?"
    r"|leaderWorkerTemplate/(leader|worker)Template/metadata(/annotations(/kubectl.kubernetes.io~restartedAt)?)?)",
}
"""Action of Argo CD -> the places of an object that it may change."""
AGREED: Final = {"Current": ("Healthy", "current"), "Failed": ("Degraded", "failed"), "InProgress": ("Progressing", "inProgress")}
"""What kstatus says -> what Argo CD and Flux say of the same status."""


_PASSED: Final = set[bytes]()
"""Objects that have passed in this process. Stories that begin alike write the same statuses."""
OF_ONE_RUN: Final = frozenset({"uid", "resourceVersion", "creationTimestamp", "managedFields"})
"""Metadata that no tool reads."""


class Healths:
    """Statuses that differ for a tool, each once."""

    def __init__(self) -> None:
        self._seen: dict[str, dict[str, Any]] = {}

    def note(self, body: dict[str, Any]) -> None:
        """Remember what was written, unless the object is being deleted: all tools go by that alone."""
        if body["kind"] in ROOTS | CHILDREN and "deletionTimestamp" not in body["metadata"]:
            read = {key: value for key, value in body["status"].items() if key != "conditions"}
            conditions = [(each["type"], each["status"], each.get("reason")) for each in body["status"].get("conditions", ())]
            generations = {each.get("observedGeneration") for each in body["status"].get("conditions", ())}
            self._seen[repr((body["kind"], body["metadata"]["generation"], generations, read, conditions))] = body

    def check(self) -> None:
        """Fails if a status is not one of the three states, or if tools disagree about it."""
        for seen in self._seen.values():
            body = {**seen, "metadata": {key: value for key, value in seen["metadata"].items() if key not in OF_ONE_RUN}}
            content = orjson.dumps(body, default=dict, option=orjson.OPT_SORT_KEYS)
            if content not in _PASSED:
                check(body)
                _PASSED.add(content)


def check(body: dict[str, Any]) -> None:
    """Fails if the status is not one of the three states, or if tools disagree about it."""
    check_actions(body)
    if body["kind"] in CHILDREN:
        assert argo_cd(body) in ("Healthy", "Progressing"), body["status"]
        return
    found = {each["type"]: each for each in body["status"].get("conditions", ())}
    true = {type for type in (READY, RECONCILING, STALLED) if type in found and found[type]["status"] == "True"}
    assert READY in found and len(true) <= 1, found
    assert all(type in true for type in (RECONCILING, STALLED) if type in found), found
    state = kstatus(body)
    if found[READY]["reason"] == BREACHED:
        assert (state, argo_cd(body)) == ("InProgress", "Degraded"), found
    else:
        assert (argo_cd(body), flux(body)) == AGREED[state], (state, found)


def check_actions(body: dict[str, Any]) -> None:
    """Fails if an action of Argo CD changes anything but what it is about, or nothing. A set without cliques has nothing to restart."""
    replicas = 8 if body["spec"].get("replicas") == 7 else 7
    for action in actions(body):
        changed = list(differing(body, acted(body, action, replicas=str(replicas)), ""))
        is_empty = action == "restart" and get(body, ("spec", "template", "cliques")) == []
        assert bool(changed) is not is_empty and all(re.fullmatch(TOUCHED[action], place) for place in changed), (
            body["kind"],
            action,
            changed,
        )


def differing(before: Any, after: Any, place: str) -> Iterator[str]:
    """The places at which two values differ. Lua knows no null, and one empty table."""
    if isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        before, after = dict(enumerate(before)), dict(enumerate(after))
    if isinstance(before, dict) and isinstance(after, dict):
        for key in before.keys() | after.keys():
            yield from differing(before.get(key), after.get(key), f"{place}/{str(key).replace('/', '~')}")
    elif before != after and (before or after):
        yield place
