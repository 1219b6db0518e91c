"""The state of workloads, topology bindings and shards: tables with details for people, and entries of the JSON document."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from os.path import commonprefix
from typing import Any, Final

from msgspec.structs import asdict

from engine.plan import Alarm
from engine.reason import REMEDIES, Reason
from engine.report.alike import shared_reason, spread, waits_alike, without_repetition
from engine.report.json import moment_text
from engine.report.meaning import listed
from engine.report.printable import Line, clipped, printable
from engine.report.shapes import identity
from engine.report.text import group_name
from engine.runtime.lease_holder import MAX_IDENTITY, MAX_PURPOSE, readable
from engine.runtime.shard_leases import ShardHolder
from enginectl.output.domains import domain_entry, domain_lines, listed_domains
from enginectl.output.tables import age, table
from resources.reports.binding_summary import BindingSummary
from resources.reports.summary import GangSummary, WaitSince, WorkloadSummary

HEADERS = ("NAMESPACE", "NAME", "STATE", "REPLICAS", "AVAILABLE", "UPDATED", "GANGS", "PODS READY", "AGE")
BINDING_HEADERS = ("TOPOLOGY BINDING", "STATE", "LEVELS", "DRIFT", "AGE")
TONES = {
    "settled": "good",
    "completed": "good",
    "faulty": "bad",
    "denied": "bad",
    "degraded": "bad",
    "later": "later",
    "blocked": "blocked",
    "deleting": "delete",
}
MAX_GANGS = 10
"""Gangs that are listed; of the others the number is given."""
MAX_NAMES = 3
"""Objects with the same reason that are named in one line; of the others the number is given."""
MAX_REASON = 400
SHARED = 60
"""From so many characters on, the end that two reasons share is written once."""
AS_ABOVE: Final = "as above"
MAX_ADVICE = 2000
"""For texts that may end with a command: one for eight pods with long names is not cut."""


def workload_lines(workloads: Sequence[WorkloadSummary], now: datetime, *, where: str, verbose: bool) -> Iterator[Line]:
    """The table of workloads, and below each row what is not settled and why; or that there are none `where` they were looked for."""
    if not workloads:
        yield Line(f"no workloads {where}")
        return
    head, *rows = table(HEADERS, [workload_row(workload, now) for workload in workloads])
    yield Line(head, "head")
    for workload, row in zip(workloads, rows, strict=True):
        yield Line(row, TONES.get(workload.state, ""))
        yield from workload_details(workload, now, verbose)


def workload_row(workload: WorkloadSummary, now: datetime) -> tuple[str, ...]:
    """The cells of one workload."""
    complete = sum(gang.is_complete for gang in workload.gangs)
    return (
        printable(workload.id.namespace),
        printable(workload.id.name),
        workload.state,
        str(workload.replicas),
        str(workload.available),
        str(workload.updated),
        f"{complete}/{len(workload.gangs)}",
        f"{workload.ready}/{workload.pods}",
        age(now, workload.created_at) if workload.created_at else "-",
    )


def workload_details(workload: WorkloadSummary, now: datetime, verbose: bool) -> Iterator[Line]:
    """The graph that it is part of, problems and notes, gangs that are not ready, domains, and the objects that are not settled."""
    if workload.parent:
        yield Line(f"  part of {printable(str(workload.parent))}", "faint")
    for problem in dict.fromkeys(workload.problems):
        yield Line(f"  problem: {printable(problem)}", "bad")
    for note in dict.fromkeys(workload.notes):
        yield Line(f"  note: {printable(note)}", "later")
    yield from warning_lines(workload.alarms)
    gangs = [gang for gang in workload.gangs if verbose or not gang.is_complete]
    written, advised = dict[str, str](), set[str]()
    for gang in gangs if verbose else gangs[:MAX_GANGS]:
        yield from gang_lines(gang, advised, None if verbose else written)
    if len(gangs) > MAX_GANGS and not verbose:
        yield Line(f"  … {len(gangs) - MAX_GANGS} more gangs; -v shows all", "faint")
    yield from domain_lines(workload.domains, verbose=verbose)
    # The line of a domain says what it waits for.
    described = {(domain.id, domain.why) for domain in listed_domains(workload.domains, verbose=verbose)}
    yield from wait_lines([wait for wait in workload.waits if (wait.id, wait.why) not in described], now, verbose, written, advised)


def warning_lines(alarms: Iterable[Alarm]) -> Iterator[Line]:
    """What is wrong although nothing is left to do; without faults, which are among the problems."""
    yield from (Line(f"  warning: {clipped(alarm.text, MAX_ADVICE)}", "bad") for alarm in alarms if not alarm.fault)


def gang_lines(gang: GangSummary, advised: set[str] | None = None, written: dict[str, str] | None = None) -> Iterator[Line]:
    """A gang, how many of its pods are ready, and which room it waits for.

    `advised`: the advice above it, which is not repeated, and to which its own is added. `written`: see `abridged`; None: nothing is
    abridged.
    """
    completed = f", {gang.completed} completed" if gang.completed else ""
    yield Line(f"  gang {printable(gang.name)}: {printable(gang.phase)}, {gang.ready} of {gang.pods} pods ready{completed}", "faint")
    if gang.waiting:
        waiting = without_repetition(gang.waiting)
        yield Line(f"    waits for room: {clipped(waiting if written is None else abridged(waiting, written), MAX_ADVICE)}", "later")
    yield from advice_lines(gang.advice, set() if advised is None else advised)


def binding_lines(bindings: Sequence[BindingSummary], now: datetime, *, verbose: bool) -> Iterator[Line]:
    """The table of topology bindings, and below each row the schedulers that are not in sync, and why."""
    head, *rows = table(BINDING_HEADERS, [binding_row(binding, now) for binding in bindings])
    yield Line(head, "head")
    for binding, row in zip(bindings, rows, strict=True):
        yield Line(row, TONES.get(binding.state, ""))
        for problem in dict.fromkeys(binding.problems):
            yield Line(f"  problem: {printable(problem)}", "bad")
        for scheduler in binding.schedulers:
            if verbose or not scheduler.in_sync:
                message = "in sync" if scheduler.in_sync else clipped(scheduler.message, MAX_REASON)
                yield Line(f"  {clipped(scheduler.name, 80)} {clipped(scheduler.topology, 80)}: {message}", "faint")
        yield from wait_lines(binding.waits, now, verbose)


def binding_row(binding: BindingSummary, now: datetime) -> tuple[str, ...]:
    """The cells of one binding."""
    levels = printable(" > ".join(binding.levels))
    return printable(binding.id.name), binding.state, levels, printable(binding.drift) or "-", age(now, binding.created_at)


def wait_lines(
    waits: Sequence[WaitSince], now: datetime, verbose: bool, written: dict[str, str] | None = None, advised: set[str] | None = None
) -> Iterator[Line]:
    """The objects that are not settled, why, and since when. Objects of one kind with one reason share a line unless `verbose`.

    `written`: the reasons above them, see `abridged`. `advised`: the advice above them, which is not repeated.
    """
    waits, written, advised = tuple(dict.fromkeys(waits)), {} if written is None else written, set() if advised is None else advised
    if not verbose:
        unlisted = [wait for wait in waits if wait.reason is Reason.NOT_LISTED]
        waits = tuple(wait for wait in waits if wait.reason is not Reason.NOT_LISTED)
        yield from unlisted_lines(unlisted)
    for wait_groups in [[(wait,)] for wait in waits] if verbose else groups_by_reason(waits):
        onset = min((wait.since for group in wait_groups for wait in group if wait.since), default=None)
        since = f", since {age(now, onset)}" if onset else ""
        reason = spread(wait.why for wait in wait_groups[0])
        shown = reason if verbose else abridged(reason, written)
        yield Line(f"  {names_of(wait_groups)}: {clipped(shown, MAX_REASON)}{since}", "faint")
        yield from advice_lines(wait_groups[0][0].advice, advised)


def advice_lines(advice: str, advised: set[str]) -> Iterator[Line]:
    """What to do, unless it is among what has been advised; it is then added."""
    if advice and advice not in advised:
        advised.add(advice)
        yield Line(f"    do: {clipped(advice, MAX_ADVICE)}", "faint")


def abridged(text: str, written: dict[str, str]) -> str:
    """The text, with `as above` in place of a long end that one above it has as well. It is noted in `written`: end -> text."""
    if len(text) < SHARED or (above := written.get(text[-SHARED:])) is None:
        written[text[-SHARED:]] = text
        return text
    shared = len(commonprefix([text[::-1], above[::-1]]))
    start = len(text) - shared
    clauses = [at + 2 for mark in (": ", ", ", "; ") if (at := text.find(mark, start)) >= 0] if start else [0]
    begin = min(clauses, default=len(text))
    return f"{text[:begin]}{AS_ABOVE}" if len(text) - begin >= SHARED else text


def unlisted_lines(waits: Sequence[WaitSince]) -> Iterator[Line]:
    """The objects that wait until kinds can be listed, together: the kinds have lines of their own."""
    if waits:
        yield Line(f"  {listed([wait.id for wait in waits])}: {clipped(shared_reason(waits), MAX_REASON)}", "faint")
        yield Line(f"    do: {REMEDIES[Reason.NOT_LISTED]}", "faint")


def groups_by_reason(waits: Iterable[WaitSince]) -> Iterable[list[tuple[WaitSince, ...]]]:
    """The waits in groups with similar names; groups of one kind, one namespace and one reason are listed together."""
    by_reason: dict[tuple[str, str, str], list[tuple[WaitSince, ...]]] = {}
    for group in waits_alike(waits):
        id = group[0].id
        by_reason.setdefault((id.kind, id.namespace, spread(wait.why for wait in group)), []).append(group)
    return by_reason.values()


def names_of(wait_groups: Sequence[Sequence[WaitSince]]) -> str:
    """The objects of one kind: the first `MAX_NAMES` groups by name, and how many objects are in the others."""
    first, *others = [group_name(None, [wait.id for wait in group]) for group in wait_groups[:MAX_NAMES]]
    listed = ", ".join((first, *(name.rpartition("/")[2] for name in others)))
    rest = sum(map(len, wait_groups[MAX_NAMES:]))
    return f"{listed} and {rest} more" if rest else listed


def workload_entry(workload: WorkloadSummary) -> dict[str, Any]:
    """A workload in the JSON document."""
    return {
        "root": identity(workload.id),
        "parent": identity(workload.parent) if workload.parent else None,
        "state": workload.state,
        "createdAt": moment_text(workload.created_at),
        "replicas": workload.replicas,
        "availableReplicas": workload.available,
        "updatedReplicas": workload.updated,
        "pods": {"total": workload.pods, "scheduled": workload.scheduled, "ready": workload.ready, "completed": workload.completed},
        "gangs": [asdict(gang) for gang in workload.gangs],
        "waits": wait_entries(workload.waits),
        "problems": list(workload.problems),
        "notes": list(workload.notes),
        "alarms": alarm_entries(workload.alarms),
        "domains": [domain_entry(domain) for domain in workload.domains],
    }


def binding_entry(binding: BindingSummary) -> dict[str, Any]:
    """A topology binding in the JSON document."""
    return {
        "root": identity(binding.id),
        "state": binding.state,
        "createdAt": moment_text(binding.created_at),
        "levels": list(binding.levels),
        "drift": binding.drift,
        "schedulers": [asdict(scheduler) for scheduler in binding.schedulers],
        "waits": wait_entries(binding.waits),
        "problems": list(binding.problems),
    }


def alarm_entries(alarms: Iterable[Alarm]) -> list[dict[str, str]]:
    """What is wrong although nothing is left to do, in the JSON document."""
    return [{"reason": alarm.reason, "message": alarm.text} for alarm in alarms]


def wait_entries(waits: Iterable[WaitSince]) -> list[dict[str, Any]]:
    """The objects that are not settled in the JSON document."""
    return [
        {
            "object": identity(wait.id),
            "why": wait.why,
            "advice": wait.advice,
            "since": moment_text(wait.since),
            "until": moment_text(wait.until),
        }
        for wait in waits
    ]


SHARD_HEADERS = ("SHARD", "HOLDER", "SINCE", "RENEWED", "FOR")


def shard_lines(shards: Sequence[ShardHolder]) -> Iterator[Line]:
    """The table of shards and their holders."""
    head, *rows = table(SHARD_HEADERS, [shard_row(shard, len(shards)) for shard in shards])
    yield Line(head, "head")
    for shard, row in zip(shards, rows, strict=True):
        yield Line(row, "" if shard.holder.identity else "blocked")


def shard_row(shard: ShardHolder, count: int) -> tuple[str, ...]:
    """The cells of one shard."""
    holder = shard.holder
    if not holder.identity:
        return (f"{shard.index} of {count}", "none", "", "", "")
    who, purpose = clipped(readable(holder.identity), MAX_IDENTITY), clipped(holder.purpose, MAX_PURPOSE)
    return (f"{shard.index} of {count}", who, printable(holder.acquired_at), printable(shard.renewed_at), purpose)


def shard_entry(shard: ShardHolder) -> dict[str, Any]:
    """A shard in the JSON document; `holder` is null if it has none."""
    holder = shard.holder
    return {
        "shard": shard.index,
        "lease": shard.lease,
        "holder": holder.identity or None,
        "since": holder.acquired_at or None,
        "renewed": shard.renewed_at or None,
        "purpose": holder.purpose or None,
    }
