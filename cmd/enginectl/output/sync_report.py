"""The result of a sync: lines for people, and the JSON document."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

from engine.report.json import VERSION, document, identity
from engine.report.line import Line
from engine.report.model import Report
from engine.report.printable import clipped, printable
from engine.report.text import text
from engine.result import Outcome, Result
from engine.runtime.session import Ending, SyncReport
from enginectl.output.progress import counted

MAX_FAILURES = 20
"""Failures that are listed; of the others the number is given."""
MAX_ERROR = 300


def sync_lines(sync: SyncReport, remaining: Report, *, verbose: bool) -> Iterator[Line]:
    """What was applied, what failed, and what the last plan still has."""
    settled = sync.ending is Ending.DONE and all(root.silent for root in remaining.roots)
    yield Line(f"Applied: {applied_text(sync) or ('nothing, everything is in sync' if settled else 'nothing')}.", "head")
    for result in sync.failures[:MAX_FAILURES]:
        operation = result.operation
        yield Line(f"failed: {operation.verb} {printable(str(operation.id))}: {clipped(str(result.error), MAX_ERROR)}", "bad")
    if len(sync.failures) > MAX_FAILURES:
        yield Line(f"… and {len(sync.failures) - MAX_FAILURES} more failures", "bad")
    if sync.error:
        yield Line(f"stopped: {clipped(str(sync.error), MAX_ERROR)}", "bad")
    if sync.interrupted:
        unstarted = counted(len(sync.not_started), "operation") if sync.not_started else "no operation"
        yield Line(f"Interrupted: {unstarted} of the last plan left; run the command again to continue.", "bad")
    elif sync.timed_out:
        yield Line("Not settled in time; this is left:", "bad")
    # After an interruption the last plan also holds operations that were applied: only a new pass can say what is left.
    if not settled and not sync.interrupted:
        yield from text(remaining, verbose=verbose)


def applied_text(sync: SyncReport) -> str:
    """How many operations of each verb were applied, e.g. `12 create, 3 status`; empty if none."""
    counts = Counter(str(result.operation.verb) for result in sync.results if result.outcome is Outcome.DONE)
    return ", ".join(f"{count} {verb}" for verb, count in sorted(counts.items()))


def sync_document(sync: SyncReport, remaining: Report) -> dict[str, Any]:
    """Every operation with its outcome, and what the last plan still has, as a JSON document."""
    return {
        "version": VERSION,
        "kind": "Sync",
        "ending": str(sync.ending),
        "timedOut": sync.timed_out,
        "error": str(sync.error) if sync.error else None,
        "results": [result_entry(result) for result in sync.results],
        "left": document(remaining),
    }


def result_entry(result: Result) -> dict[str, Any]:
    """An operation and its outcome in the JSON document."""
    operation = result.operation
    return {
        "verb": str(operation.verb),
        "object": identity(operation.id),
        "why": operation.why,
        "outcome": str(result.outcome),
        "error": str(result.error) if result.error else None,
    }
