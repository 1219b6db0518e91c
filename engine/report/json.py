"""A report as one versioned JSON document: complete, in a fixed order, safe to print."""

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

import orjson

from engine.forecast.cluster_model import Level
from engine.forecast.forecast import Forecast
from engine.ids import ResourceId
from engine.mask import masked
from engine.operation import BoundOwner, Change, Creation, Operation, Release, owner_reference
from engine.paths import spell
from engine.plan import Objection, Violation, Wait
from engine.report.fields import changed_fields, json_default, uid_placeholder
from engine.report.forecast_text import Stage, stages_of
from engine.report.meaning import advice
from engine.report.model import Report, RootReport, Step
from engine.report.shapes import (
    ChangeEntry,
    Counts,
    DiffDocument,
    ForecastEntry,
    LeftEntry,
    LevelEntry,
    ObjectionEntry,
    OperationEntry,
    PassOperations,
    PolicyEntry,
    RootEntry,
    RootForecast,
    StageEntry,
    Summary,
    ViolationEntry,
    WaitEntry,
    identity,
)
from engine.resource import Body
from engine.verb import Verb

VERSION = 2
"""Raised when a key is removed or changes its meaning; additional keys alone do not raise it."""

UNSAFE = re.compile("[\x7f-\x9f\xad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\U000e0000-\U000e007f]")
"""Characters that JSON allows unescaped and that control a terminal or are invisible in it."""


def document(report: Report) -> DiffDocument:
    """The report as a JSON-compatible map; keys and their meaning are those of `VERSION`."""
    return {
        "version": VERSION,
        "kind": "Diff",
        "complete": not report.incomplete and not any(root.error for root in report.roots),
        "applicable": not report.denied and not report.faulty,
        "summary": summary_entry(report),
        "forecast": forecast_document(report.forecast) if report.forecast else None,
        "roots": [root_entry(root, report.forecast) for root in report.roots],
        "objections": [objection_entry(objection) for objection in report.objections],
        "policy": policy_document(report),
        "incomplete": dict(report.incomplete),
        "others": [identity(root) for root in report.others.roots],
    }


def summary_entry(report: Report) -> Summary:
    """The numbers of the next pass."""
    counts = report.counts
    return {
        **counts_by_verb(counts),
        "status": counts[Verb.STATUS],
        "later": report.later,
        "blocked": report.blocked,
        "pending": report.pending,
        "changes": report.changes,
    }


def root_entry(root: RootReport, forecast: Forecast | None = None) -> RootEntry:
    """The entry of one root in `roots`."""
    return {
        "root": identity(root.root),
        "parent": identity(root.parent) if root.parent else None,
        "operations": [step_entry(step) for step in root.steps],
        "later": [wait_entry(wait) for wait in root.later],
        "blocked": [wait_entry(wait) for wait in root.blocked],
        "pending": [wait_entry(wait) for wait in root.pending],
        "objections": [objection_entry(objection) for objection in root.objections],
        "problems": list(root.problems),
        "error": root.error or None,
        "notes": list(root.notes),
        "wakeAt": moment_text(root.wake_at),
        "forecast": root_forecast(forecast, root.root) if forecast else None,
    }


def step_entry(step: Step) -> OperationEntry:
    """The entry of one operation in `operations`."""
    operation = step.operation
    entry: OperationEntry = {
        "verb": str(operation.verb),
        "key": operation.key,
        "object": identity(operation.id),
        "part": step.part,
        "why": operation.why,
        "reason": str(operation.reason),
        "cause": str(operation.cause),
        "intended": operation.intended,
        "expect": {"uid": operation.expect.uid, "resourceVersion": operation.expect.revision},
        "after": sorted(operation.after),
        "changes": [change_entry(change) for change in changed_fields(operation)],
    }
    if isinstance(operation, Creation):
        entry["manifest"] = dict(masked(with_owners(operation.manifest, operation.owners)))
    elif isinstance(operation, Release):
        entry["finalizers"] = list(operation.finalizers)
    return entry


def change_entry(change: Change) -> ChangeEntry:
    """The entry of a changed field."""
    entry: ChangeEntry = {"path": spell(change.path), "old": change.old, "new": change.new, "cause": str(change.cause)}
    return {**entry, "order": True} if change.order else entry


def with_owners(body: Body, owners: Sequence[BoundOwner]) -> dict[str, Any]:
    """The manifest with its owner references; text stands for a uid that is not known before the plan is applied."""
    references = [owner_reference(owner, {owner.owner.id: uid_placeholder(owner.owner.id)}) for owner in owners]
    return {**body, "metadata": {**body["metadata"], "ownerReferences": references}} if references else dict(body)


def wait_entry(wait: Wait) -> WaitEntry:
    """The entry of a deferred or pending object."""
    reason = str(wait.reason) if wait.reason else None
    return {"object": identity(wait.id), "why": wait.why, "reason": reason, "until": moment_text(wait.until)}


def objection_entry(objection: Objection) -> ObjectionEntry:
    """The entry of an objection."""
    return {"rule": objection.rule, "message": objection.message}


def policy_document(report: Report) -> PolicyEntry:
    """What denies the plan, guards and policies alike, what people are warned of, what is only recorded here, and what was waived."""
    judgement = report.judgement
    return {
        "denied": [*_refusals(report), *map(violation_entry, judgement.denied)],
        "warned": [violation_entry(each) for each in judgement.warned],
        "audited": [violation_entry(each) for each in judgement.audited],
        "waived": [{**violation_entry(each), "action": str(each.enforcement), "reason": each.waived} for each in judgement.waived],
        "notes": list(judgement.notes),
    }


def _refusals(report: Report) -> Iterator[ViolationEntry]:
    """The entries of the guards' refusals: of the whole pass, then of each root."""
    yield from (_violation(objection.rule, None, objection.message) for objection in report.objections)
    for root in report.roots:
        yield from (_violation(objection.rule, root.root, objection.message) for objection in root.objections)


def violation_entry(violation: Violation) -> ViolationEntry:
    """The entry of a violation."""
    return _violation(violation.rule, violation.about, violation.message)


def _violation(rule: str, about: ResourceId | None, message: str) -> ViolationEntry:
    return {"rule": rule, "object": identity(about) if about else None, "message": message}


def moment_text(moment: datetime | None) -> str | None:
    """A time (UTC) in Kubernetes' format, to the second; None stays None."""
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ") if moment else None


def printed(value: Any) -> str:
    """A document as indented text with sorted keys; characters that a terminal would interpret are escaped."""
    options = orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS
    return UNSAFE.sub(escaped, orjson.dumps(value, default=json_default, option=options).decode())


def one_line(value: Any) -> str:
    """A document as one line of ASCII, with its keys in their own order."""
    return json.dumps(value, separators=(",", ":")).replace("\x7f", "\\u007f")


def escaped(match: re.Match[str]) -> str:
    """The matched character as a JSON escape; as a surrogate pair beyond the basic plane."""
    encoded = match[0].encode("utf-16-be")
    return "".join(f"\\u{encoded[at] << 8 | encoded[at + 1]:04x}" for at in range(0, len(encoded), 2))


def forecast_document(forecast: Forecast) -> ForecastEntry:
    """The whole forecast: whether its end was reached, what it assumes, and the operations of all roots by verb."""
    return {
        "complete": forecast.is_finished and not forecast.repeating,
        "assumptions": sorted(assumption.name for assumption in forecast.assumptions),
        "mayNotFit": list(forecast.doubts),
        "roomNotChecked": forecast.unchecked,
        "operations": counts_by_verb(Counter(operation.verb for operation in forecast.operations())),
        "collected": forecast.collected,
    }


def root_forecast(forecast: Forecast, root: ResourceId) -> RootForecast:
    """The forecast of one root, from the first pass on."""
    effects, plan = forecast.effects.get(root), forecast.plans.get(root)
    return {
        "end": str(forecast.end_of(root)),
        "stages": [stage_entry(stage) for stage in stages_of(forecast, root)],
        "operations": counts_by_verb(Counter(operation.verb for operation in forecast.operations_of(root))),
        "effects": dict(effects.counts) if effects else {},
        "availability": [level_entry(level) for level in (effects.levels if effects else ())],
        "left": [left_entry(wait, advice(wait, forecast, root)) for wait in ((*plan.deferred, *plan.pending) if plan else ())],
    }


def counts_by_verb(counts: Mapping[Verb, int]) -> Counts:
    """The numbers of operations without that of statuses."""
    return {
        "create": counts[Verb.CREATE],
        "patch": counts[Verb.PATCH],
        "scale": counts[Verb.SCALE],
        "replace": counts[Verb.REPLACE],
        "release": counts[Verb.RELEASE],
        "delete": counts[Verb.DELETE],
    }


def stage_entry(stage: Stage) -> StageEntry:
    """A stage: seconds since the first pass, how often its passes repeat, and each pass of the first time."""
    return {
        "after": int(stage.after.total_seconds()),
        "times": stage.times,
        "passes": [pass_entry(operations) for operations in stage.passes[: stage.period]],
    }


def pass_entry(operations: Sequence[Operation]) -> list[PassOperations]:
    """The operations of a pass by verb, kind and reason."""
    groups: dict[tuple[str, str, str, str], list[str]] = {}
    for operation in operations:
        key = str(operation.verb), operation.id.group, operation.id.kind, str(operation.reason)
        groups.setdefault(key, []).append(operation.id.name)
    return [
        {"verb": verb, "group": group, "kind": kind, "reason": reason, "names": names}
        for (verb, group, kind, reason), names in groups.items()
    ]


def level_entry(level: Level) -> LevelEntry:
    """How many members of an object are ready."""
    return {
        "object": identity(level.id),
        "unit": level.unit,
        "before": level.before,
        "lowest": level.lowest,
        "after": level.after,
        "minAvailable": level.minimum,
        "below": level.falls_below,
    }


def left_entry(wait: Wait, to_do: str) -> LeftEntry:
    """An object that is still deferred or pending at the end, and what to do about it."""
    return {"object": identity(wait.id), "why": wait.why, "blocked": wait.blocked, "advice": to_do}
