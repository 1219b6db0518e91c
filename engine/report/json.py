"""A report as one versioned JSON document: complete, in a fixed order, safe to print."""

import json
import re
from collections.abc import Sequence
from datetime import datetime
from typing import Any

import orjson

from engine.ids import ResourceId
from engine.mask import masked
from engine.operation import BoundOwner, Operation
from engine.paths import spell
from engine.plan import Objection, Wait
from engine.planner import owner_reference
from engine.report.fields import lines_of, placeholder, uid_of
from engine.report.model import Report, RootReport, Step
from engine.resource import Body
from engine.verb import Verb

VERSION = 1
"""Grows when a field changes its meaning or goes; new fields alone do not change it."""

STEERING = re.compile("[\x7f-\x9f\xad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\U000e0000-\U000e007f]")
"""Characters that JSON may hold as they are, and that a terminal would obey or hide."""


def document(report: Report) -> dict[str, Any]:
    """The report as a document."""
    return {
        "version": VERSION,
        "kind": "Diff",
        "summary": {
            **{str(verb): count for verb, count in report.counts.items()},
            "held": report.deferred,
            "waiting": report.pending,
            "changes": report.changes,
        },
        "roots": [account_entry(account) for account in report.accounts],
        "objections": [objection_entry(objection) for objection in report.objections],
        "incomplete": dict(report.incomplete),
    }


def account_entry(account: RootReport) -> dict[str, Any]:
    """One root."""
    return {
        "root": identity(account.root),
        "operations": [step_entry(step) for step in account.steps],
        "held": [held_entry(held) for held in account.deferred],
        "waiting": [held_entry(held) for held in account.pending],
        "objections": [objection_entry(objection) for objection in account.objections],
        "problems": list(account.problems),
        "notes": list(account.notes),
        "wakeAt": moment_text(account.wake_at),
    }


def step_entry(step: Step) -> dict[str, Any]:
    """One operation, whole."""
    operation = step.operation
    return {
        "verb": str(operation.verb),
        "key": operation.key,
        "object": identity(operation.id),
        "part": step.part,
        "why": operation.why,
        "cause": str(operation.cause),
        "intended": operation.intended,
        "expect": {"uid": operation.expect.uid, "resourceVersion": operation.expect.revision},
        "after": sorted(operation.after),
        "changes": [
            {"path": spell(change.path), "old": change.old, "new": change.new, "cause": str(change.cause)} for change in lines_of(operation)
        ],
        **content(operation),
    }


def content(operation: Operation) -> dict[str, Any]:
    """What is sent along: the manifest of a create or replace, the finalizers of a release."""
    if operation.verb in (Verb.CREATE, Verb.REPLACE):
        return {"manifest": masked(with_owners(operation.body, operation.owners))}
    if operation.verb is Verb.RELEASE:
        return {"finalizers": list(operation.body.get("finalizers", ()))}
    return {}


def with_owners(body: Body, references: Sequence[BoundOwner]) -> dict[str, Any]:
    """The manifest with its owner references; a uid that is not known before the plan is executed is told in words."""
    owners = [owner_reference(one, {one.owner.id: uid_of(one.owner.id)}) for one in references]
    return {**body, "metadata": {**body["metadata"], "ownerReferences": owners}} if owners else dict(body)


def held_entry(held: Wait) -> dict[str, Any]:
    """Something that is not done now, or not there yet."""
    return {"object": identity(held.id), "why": held.why, "until": moment_text(held.until)}


def objection_entry(objection: Objection) -> dict[str, str]:
    """A guard's refusal."""
    return {"rule": objection.rule, "message": objection.message}


def identity(id: ResourceId) -> dict[str, str]:
    """Which object."""
    return {"group": id.group, "kind": id.kind, "namespace": id.namespace, "name": id.name}


def moment_text(moment: datetime | None) -> str | None:
    """A moment as Kubernetes writes it."""
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ") if moment else None


def printed(value: Any) -> str:
    """A document as text: sorted keys, indented, ASCII wherever a terminal might obey what it reads."""
    options = orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS
    return STEERING.sub(escaped, orjson.dumps(value, default=placeholder, option=options).decode())


def in_a_line(value: Any) -> str:
    """A document as one line of ASCII, its members in the order that they have."""
    return json.dumps(value, separators=(",", ":")).replace("\x7f", "\\u007f")


def escaped(found: re.Match[str]) -> str:
    """A character as JSON escapes it, in two halves when it lies beyond the basic plane."""
    encoded = found[0].encode("utf-16-be")
    return "".join(f"\\u{encoded[at] << 8 | encoded[at + 1]:04x}" for at in range(0, len(encoded), 2))
