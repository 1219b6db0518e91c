"""Handmade plans for tests of reports."""

from typing import Any

from engine.ids import ResourceId
from engine.operation import Cause, Change, Operation
from engine.plan import Plan
from engine.reason import Reason
from engine.report.model import Report, compose
from engine.verb import Verb
from tests.operations import operation_of

ROOT = ResourceId("grove.io", "PodCliqueSet", "default", "simple")


def pod(name: str) -> ResourceId:
    """A pod in the root's namespace."""
    return ResourceId("", "Pod", "default", name)


def operation(verb: Verb, id: ResourceId, why: str = "its template has changed", cause: Cause = Cause.INTENT, **rest: Any) -> Operation:
    """An operation with a reason."""
    reason = Reason.DRIFTED if cause is Cause.DRIFT else Reason.TEMPLATE_CHANGED
    return operation_of(verb, id, why, cause, **{"reason": reason, **rest})


def patch(id: ResourceId, *changes: Change, why: str = "the template changed", seal: str = "") -> Operation:
    """A patch that makes these changes."""
    return operation(Verb.PATCH, id, why, changes[0].cause, changes=changes, seal=seal)


def change(path: str, old: Any, new: Any, cause: Cause = Cause.INTENT) -> Change:
    """A changed field; the path in dots."""
    return Change(tuple(path.split(".")), old, new, cause)


def replica_of(root: ResourceId, child: ResourceId) -> str:
    """The part of a child, read from a name such as `simple-3-worker`."""
    rest = child.name.removeprefix(root.name).split("-")
    return f"replica {rest[1]}" if len(rest) > 1 and rest[1].isdecimal() else ""


def report_of(*operations: Operation, **rest: Any) -> Report:
    """The report of one root's plan."""
    return compose([Plan(ROOT, operations, **rest)], replica_of)
