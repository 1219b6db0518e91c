"""The result of a sync: lines for people, and the JSON document."""

from collections import Counter
from collections.abc import Iterator

from engine.ids import ResourceId
from engine.operation import Outcome, Result, WriteStatus
from engine.report.json import VERSION, document
from engine.report.meaning import explained_by
from engine.report.model import Report
from engine.report.printable import DONE, Line, clipped, counted, printable, totals
from engine.report.shapes import ResultEntry, SyncDocument, identity
from engine.report.text import others_lines, text
from engine.runtime.sync_report import Ending, SyncReport
from engine.verb import Verb
from enginectl.output.approval import MAX_DEVIATIONS, deviation_entry, deviation_lines
from enginectl.output.progress import pending_texts, wait_texts
from enginectl.output.status import MAX_ADVICE

MAX_FAILURES = 20
"""Failures that are listed; of the others the number is given."""
MAX_ERROR = 300
REFUSED = "correct the manifest, or the quota, policy or webhook that refuses it, and run the command again"
CONTINUE = "of the last plan left; run the command again to continue."


def sync_lines(sync: SyncReport[object], remaining: Report, *, verbose: bool) -> Iterator[Line]:
    """What was applied, what failed, and what the last plan still has."""
    settled = sync.ending is Ending.DONE and all(root.silent for root in remaining.roots)
    yield Line(f"Applied: {applied_text(sync, verbose=verbose) or ('nothing, everything is in sync' if settled else 'nothing')}.", "head")
    for result in sync.failures[:MAX_FAILURES]:
        operation = result.operation
        yield Line(f"failed: {operation.verb} {printable(str(operation.id))}: {printable(str(result.error))}", "bad")
    if len(sync.failures) > MAX_FAILURES:
        yield Line(f"… and {len(sync.failures) - MAX_FAILURES} more failures", "bad")
    if sync.failures and sync.ending is Ending.STUCK:
        yield Line(f"do: {REFUSED}", "blocked")
    if sync.error:
        yield Line(f"stopped: {printable(str(sync.error))}", "bad")
    yield from deviation_lines([each.deviation for each in sync.unapproved])
    if is_cut_short(sync):
        unstarted = counted(len(sync.not_started), "operation") if sync.not_started else "no operation"
        yield Line(f"{'Interrupted' if sync.interrupted else 'Timed out'}: {unstarted} {CONTINUE}", "bad")
    elif sync.timed_out:
        yield Line("Not settled in time; this is left:", "bad")
    if sync.lease_taken:
        yield Line(f"{printable(sync.lease_taken)}: what is left to write is left to it", "later")
    # The last plan also holds operations that were applied: only a new pass can say what is left.
    if not settled and not is_cut_short(sync):
        yield from text(remaining, verbose=verbose)
        yield from (Line(f"do: {printable(explained_by(id))}", "blocked") for id in to_explain(sync))
    else:
        yield from others_lines(remaining.others)


def to_explain(sync: SyncReport[object]) -> list[ResourceId]:
    """The roots of a sync that ended stuck whose plans do not say what to do, in their order; of one that is gone what is blocked."""
    if sync.ending is not Ending.STUCK:
        return []
    existing = {observed.root.id for observed in sync.last_pass.world.roots}
    plans = (plan for plan in sync.plans if plan.root in sync.stuck or not all(wait.remedy for wait in plan.blocked))
    ids = (
        id for plan in plans for id in ((plan.root,) if plan.root in existing else (wait.id for wait in plan.blocked if not wait.remedy))
    )
    return list(dict.fromkeys(ids))[:MAX_FAILURES]


def is_cut_short(sync: SyncReport[object]) -> bool:
    """Whether it ended before its last plan was carried out, by a signal or because the time was over."""
    return sync.interrupted or (sync.timed_out and sync.mid_pass)


def changes(sync: SyncReport[object]) -> Iterator[Result]:
    """What was applied, statuses apart: they report and change nothing."""
    return (result for result in sync.results if result.outcome is Outcome.DONE and not isinstance(result.operation, WriteStatus))


def change_lines(sync: SyncReport[object]) -> Iterator[Line]:
    """A line for each change that was applied, with its workload, its sentence and its reason."""
    for result in changes(sync):
        operation = result.operation
        object, root = printable(str(operation.id)), sync.roots.get(operation.key)
        workload = f" of {printable(str(root))}" if root is not None and root != operation.id else ""
        yield Line(f"{operation.verb} {object}{workload}: {clipped(operation.why, MAX_ERROR)} ({operation.reason})", operation.verb)


def error_texts(sync: SyncReport[object]) -> Iterator[str]:
    """What is wrong, a text for each: failures, faults, guards, what is blocked, and after a timeout what is left, with the alarms."""
    for result in sync.failures[:MAX_FAILURES]:
        yield f"{result.operation.verb} {result.operation.id}: {printable(str(result.error))}"
    if len(sync.failures) > MAX_FAILURES:
        yield f"{len(sync.failures) - MAX_FAILURES} more operations failed"
    if sync.error:
        yield printable(str(sync.error))
    yield from (f"not as approved: {clipped(str(each.deviation), MAX_ERROR)}" for each in sync.unapproved[:MAX_DEVIATIONS])
    for plan in sync.plans:
        yield from (f"{plan.root}: {clipped(problem, MAX_ERROR)}" for problem in (*plan.problems, *plan.faults))
        if plan.blocked:  # Otherwise it is what blocks.
            yield from (f"{plan.root}: {clipped(alarm.text, MAX_ERROR)}" for alarm in plan.blocking_alarms)
    yield from (f"denied by {objection.rule}: {clipped(objection.message, MAX_ERROR)}" for objection in sync.objections)
    yield from (f"blocked: {text}" for text in wait_texts(sync.blocked, MAX_ADVICE))
    if is_cut_short(sync) and sync.not_started:
        yield f"{counted(len(sync.not_started), 'operation')} {CONTINUE}"
    if sync.timed_out:
        yield "not settled in time"
    if sync.timed_out and not sync.mid_pass:
        yield from (f"later: {text}" for text in wait_texts([wait for plan in sync.plans for wait in plan.later]))
        yield from (f"pending: {text}" for text in pending_texts(sync.plans))
        yield from (f"{plan.root}: {clipped(alarm.text, MAX_ADVICE)}" for plan in sync.plans for alarm in plan.alarms if not alarm.blocking)
    if sync.lease_taken:
        yield f"{sync.lease_taken}: what is left to write is left to it"


def applied_text(sync: SyncReport[object], *, verbose: bool = False) -> str:
    """How many operations of each verb were applied, e.g. `12 created, 3 patched`; empty if none.

    Statuses are counted with `verbose`, or where nothing else was applied.
    """
    counts = Counter[Verb](result.operation.verb for result in sync.results if result.outcome is Outcome.DONE)
    statuses, applied = counts[Verb.STATUS], totals(counts, DONE)
    texts = [applied, counted(statuses, "status") if statuses and (verbose or not applied) else ""]
    return ", ".join(filter(None, texts))


def sync_document(sync: SyncReport[object], remaining: Report) -> SyncDocument:
    """Every operation with its outcome, and what the last plan still has, as a JSON document."""
    return {
        "version": VERSION,
        "kind": "Sync",
        "ending": str(sync.ending),
        "timedOut": sync.timed_out,
        "error": str(sync.error) if sync.error else None,
        "leaseTaken": sync.lease_taken or None,
        "results": [result_entry(result, sync.roots.get(result.operation.key)) for result in sync.results],
        "unapproved": [deviation_entry(each.deviation) for each in sync.unapproved],
        "left": document(remaining),
    }


def result_entry(result: Result, root: ResourceId | None) -> ResultEntry:
    """An operation and its outcome in the JSON document. `root`: the root whose plan it was in, if that is known."""
    operation = result.operation
    return {
        "verb": str(operation.verb),
        "object": identity(operation.id),
        "root": identity(root) if root is not None else None,
        "why": operation.why,
        "reason": str(operation.reason),
        "cause": str(operation.cause),
        "outcome": str(result.outcome),
        "error": str(result.error) if result.error else None,
    }
