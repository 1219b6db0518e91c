"""Headline: what happens to one root, in a few words: `update`, `scale in 3 to 1`, `create, STUCK`."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from engine.forecast.forecast import End, Forecast
from engine.operation import Operation
from engine.reason import Reason
from engine.report.fields import is_hash
from engine.report.model import RootReport
from engine.verb import Verb

CREATE, DELETE = "create", "delete"
SCALES: Final = ("scale out", "scale in")
WORDS: Final[Mapping[Reason, str]] = {
    Reason.SCALED_OUT: "scale out",
    Reason.SCALED_IN: "scale in",
    Reason.MANIFEST_CHANGED: "update",
    Reason.TEMPLATE_CHANGED: "update",
    Reason.SET_DELETED: DELETE,
    Reason.PRUNED: "prune",
    Reason.MISSING: "repair",
    Reason.DRIFTED: "repair",
    Reason.ORPHANED: "repair",
    Reason.USER_DELETED: "repair",
    Reason.POD_ENDED: "repair",
    Reason.GANG_TERMINATED: "repair",
    Reason.DOMAIN_REPLACED: "repair",
    Reason.ADOPTED: "take over",
}
"""Reason -> what it is a sign of. Operations with other reasons continue what has begun."""
ORDER: Final = ("prune", DELETE, CREATE, *SCALES, "update", "repair", "take over")
EMPHASIS: Final[Mapping[End, str]] = {End.STUCK: "STUCK", End.REPEATS: "REPEATS"}
"""Ends that the headline names."""
REPLICAS: Final = ("spec", "replicas")


def headline(root: RootReport, forecast: Forecast | None) -> str:
    """What happens to the root until everything is settled or, without a forecast, in the next pass; and what is wrong."""
    signs = tuple(_signs(root, forecast))
    words = change_of(root, forecast) or ("" if (root.blocked or root.later) and signs else "no changes")
    return ", ".join(filter(None, (words, *signs)))


def change_of(root: RootReport, forecast: Forecast | None) -> str:
    """What happens to the root, in words; empty if nothing but statuses is written."""
    operations = [step.operation for step in root.steps]
    if forecast is not None:  # In which nobody else changes anything: whatever a later pass finds different, it made itself.
        operations += [operation for operation in forecast.operations_of(root.root) if operation.reason is not Reason.DRIFTED]
    return _words(root, [operation for operation in operations if operation.verb is not Verb.STATUS])


def _words(root: RootReport, operations: list[Operation]) -> str:
    if not operations:
        return ""
    signs = {sign for operation in operations for sign in _signs_of(root, operation)}
    for alone in ("prune", DELETE, CREATE):
        if alone in signs:
            return alone
    replicas = _replicas(root, operations)
    words = [f"{word} {replicas}" if word in SCALES and replicas else word for word in ORDER if word in signs]
    return " and ".join(words) or "continue"


def _signs_of(root: RootReport, operation: Operation) -> Iterator[str]:
    """What one operation is a sign of. A new root, and one that is carried out for the first time, is created."""
    is_root = operation.id == root.root
    if operation.verb is Verb.CREATE and operation.reason is Reason.MANIFEST_CHANGED:
        yield CREATE
    elif is_root and operation.verb in (Verb.DELETE, Verb.RELEASE) and operation.reason is not Reason.PRUNED:
        yield DELETE
    elif is_root and (scaled := _scaled(operation)):
        yield SCALES[scaled[0] > scaled[1]]
        if any(change.path != REPLICAS and not is_hash(operation, change.path) for change in operation.changes):
            yield "update"
    elif word := WORDS.get(operation.reason):
        yield word


def _scaled(operation: Operation) -> tuple[int, int] | None:
    """The old and new number of replicas that a patch sets; None if it sets none."""
    for change in operation.changes:
        if change.path == REPLICAS and isinstance(change.old, int) and isinstance(change.new, int):
            return change.old, change.new
    return None


def _replicas(root: RootReport, operations: Iterable[Operation]) -> str:
    """`3 to 1` if the plan changes the replicas of the root, else empty."""
    scaled = next((scaled for operation in operations if operation.id == root.root and (scaled := _scaled(operation))), None)
    return f"{scaled[0]} to {scaled[1]}" if scaled else ""


def _signs(root: RootReport, forecast: Forecast | None) -> Iterator[str]:
    """What is wrong."""
    if root.objections:
        yield "DENIED"
    if root.error or root.problems:
        yield "INVALID" if root.problems else "FAILED"
    emphasis = EMPHASIS.get(forecast.end_of(root.root)) if forecast is not None else None
    if emphasis:
        yield emphasis
    elif root.blocked:
        yield "BLOCKED"
