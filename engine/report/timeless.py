"""Timeless: a report about an imagined cluster, without its times: these mean nothing to a reader."""

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from msgspec.structs import replace

from engine.diff import same
from engine.operation import WriteStatus
from engine.plan import Plan, Wait
from engine.report.model import Report, RootReport, Step
from engine.resource import NOW

TIME: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]+)?Z")
"""A time in a status, as Kubernetes writes it."""


def timeless(report: Report) -> Report:
    """The report without the end of any wait, and with `NOW` for each time in a status."""
    forecast = report.forecast
    if forecast is not None:
        forecast = replace(forecast, plans={root: _plan(plan) for root, plan in forecast.plans.items()})
    return replace(report, roots=tuple(map(_root, report.roots)), forecast=forecast)


def _root(root: RootReport) -> RootReport:
    steps = tuple(Step(_status(each.operation), each.part) if isinstance(each.operation, WriteStatus) else each for each in root.steps)
    later, blocked, pending = map(_waits, (root.later, root.blocked, root.pending))
    return replace(root, steps=steps, later=later, blocked=blocked, pending=pending, wake_at=None)


def _plan(plan: Plan) -> Plan:
    return replace(plan, deferred=_waits(plan.deferred), pending=_waits(plan.pending), wake_at=None)


def _waits(waits: Iterable[Wait]) -> tuple[Wait, ...]:
    return tuple(replace(wait, until=None) if wait.until else wait for wait in waits)


def _status(operation: WriteStatus) -> WriteStatus:
    """The write of a status without the changes of which nothing is left."""
    changes = (replace(change, old=_without_times(change.old), new=_without_times(change.new)) for change in operation.changes)
    return replace(operation, changes=tuple(change for change in changes if not same(change.old, change.new)))


def _without_times(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _without_times(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_without_times(inner) for inner in value]
    return NOW if isinstance(value, str) and TIME.fullmatch(value) else value
