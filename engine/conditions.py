"""Conditions: an answer in a status keeps the time of its onset until the answer flips."""

from collections.abc import Iterable, Mapping
from typing import Any

from engine.resource import NOW

Condition = Mapping[str, Any]


def condition(type: str, status: bool | None, reason: str, message: str, *, generation: int | None = None, at: Any = NOW) -> dict[str, Any]:
    """A condition whose transition is happening at `at` (default: the time of writing); a status of None is `Unknown`."""
    body: dict[str, Any] = {"type": type, "status": "Unknown" if status is None else str(status), "reason": reason, "message": message}
    if generation is not None:
        body["observedGeneration"] = generation
    return body | {"lastTransitionTime": at}


def find(conditions: Iterable[Condition], type: str) -> Condition | None:
    """The condition of that type."""
    return next((one for one in conditions if one.get("type") == type), None)


def is_true(conditions: Iterable[Condition], type: str) -> bool:
    """Whether the condition of that type is there and True."""
    found = find(conditions, type)
    return found is not None and found.get("status") == "True"


def keep(live: Iterable[Condition], wanted: Iterable[Condition], *, owned: Iterable[str]) -> list[Condition]:
    """The live list with ours in it: an onset is kept unless the answer flips, conditions of others stay as they are.

    `owned` names the types that are ours: those we no longer want are taken out.
    """
    ours = {one["type"]: one for one in wanted}
    mine = set(owned)
    kept: list[Condition] = []
    for old in live:
        new = ours.pop(old.get("type", ""), None)
        if new is not None:
            kept.append(_with_onset(old, new))
        elif old.get("type") not in mine:
            kept.append(old)
    return kept + list(ours.values())


def _with_onset(old: Condition, new: Condition) -> Condition:
    if old.get("status") != new["status"] or not old.get("lastTransitionTime"):
        return new
    return {**new, "lastTransitionTime": old["lastTransitionTime"]}
