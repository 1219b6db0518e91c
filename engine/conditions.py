"""Conditions: entries of `status.conditions`, which keep their transition time until their status changes."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from engine.resource import NOW

Condition = Mapping[str, Any]
READY: Final = "Ready"
APPLIED: Final = "Applied"
"""The condition whose `observedGeneration` is the last generation of which every object existed, and nothing older was left."""


def condition(type: str, status: bool | None, reason: str, message: str, *, generation: int | None = None, at: Any = NOW) -> dict[str, Any]:
    """A condition with the transition time `at` (default: the time of writing); a status of None is `Unknown`."""
    body: dict[str, Any] = {"type": type, "status": "Unknown" if status is None else str(status), "reason": reason, "message": message}
    if generation is not None:
        body["observedGeneration"] = generation
    return body | {"lastTransitionTime": at}


def applied(generation: int) -> dict[str, Any]:
    """The condition that says which generation was carried out completely last."""
    message = "every object of the observed generation exists, and nothing older is left"
    return condition(APPLIED, True, "AllObjectsExist", message, generation=generation)


def find(conditions: Iterable[Condition], type: str) -> Condition | None:
    """The condition of that type; None if there is none."""
    return next((condition for condition in conditions if condition.get("type") == type), None)


def is_true(conditions: Iterable[Condition], type: str) -> bool:
    """Whether the condition of that type exists and is True."""
    match = find(conditions, type)
    return match is not None and match.get("status") == "True"


def completed_generation(root: Mapping[str, Any]) -> int | None:
    """The last generation of a root that its status says was carried out completely; None if it names none.

    That is the generation of the condition `Applied`; without it, of a kind with the condition `Ready` that at which it was ready; of
    another one, as earlier versions and Grove's operator write it, `status.observedGeneration`.
    """
    status = root.get("status") or {}
    conditions = status.get("conditions") or ()
    applied, ready = find(conditions, APPLIED), find(conditions, READY)
    if applied is not None:
        generation = applied.get("observedGeneration")
    elif ready is None:
        generation = status.get("observedGeneration")
    else:
        generation = ready.get("observedGeneration") if ready.get("status") == "True" else None
    return generation if isinstance(generation, int) else None


def merge(live: Iterable[Condition], desired: Iterable[Condition], *, owned: Iterable[str]) -> list[Condition]:
    """The live conditions with the desired ones merged in.

    A transition time is kept unless the status changes. Live conditions that are not desired are removed if their type is
    in `owned`, and kept otherwise.
    """
    new_by_type = {condition["type"]: condition for condition in desired}
    owned_types = set(owned)
    merged: list[Condition] = []
    for old in live:
        new = new_by_type.pop(old.get("type", ""), None)
        if new is not None:
            merged.append(_with_transition_time(old, new))
        elif old.get("type") not in owned_types:
            merged.append(old)
    return merged + list(new_by_type.values())


def _with_transition_time(old: Condition, new: Condition) -> Condition:
    """The new condition, with the old transition time if the status is the same."""
    if old.get("status") != new["status"] or not old.get("lastTransitionTime"):
        return new
    return {**new, "lastTransitionTime": old["lastTransitionTime"]}
