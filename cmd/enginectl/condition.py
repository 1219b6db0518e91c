"""Condition: the state of workloads as a table with what they wait for, and as a document."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Any

from engine.report.alike import held_alike, spread
from engine.report.json import identity, moment_text
from engine.report.line import Line
from engine.report.printable import clipped, printable
from engine.report.text import group_name
from enginectl import domains_shown, output, wiring
from enginectl.exits import Exit
from enginectl.manifest_files import NO_FILES
from enginectl.options import Output
from enginectl.preview import look_at
from enginectl.wiring import Wiring
from resources.base.kinds import PODCLIQUESET, TOPOLOGY_BINDING
from resources.domains.status import domain_statuses
from resources.reports.binding_summary import Binding, binding_summary
from resources.reports.summary import Gang, Waiting, Workload, summary

VERSION = 1
HEADERS = ("NAMESPACE", "NAME", "STATE", "REPLICAS", "AVAILABLE", "UPDATED", "GANGS", "PODS READY", "AGE")
BINDING_HEADERS = ("TOPOLOGY BINDING", "STATE", "LEVELS", "DRIFT", "AGE")
TONES = {"settled": "good", "faulty": "bad", "denied": "bad", "held": "held", "deleting": "delete"}
GANGS = 10
"""Gangs that are not ready and shown one by one; of the others there is only the number."""


async def show(wired: Wiring, name: str, form: Output) -> Exit:
    """Pass once, and tell how the workloads are doing."""
    async with wiring.world(wired, wiring.LIVE) as (provider, otherwise):
        where = wiring.where(wired, NO_FILES, otherwise=otherwise)
        look = await look_at(wiring.engine_of(wired, provider, where))
    plans = {plan.root: plan for plan in look.planned.plans}
    chosen = [(seen, plans[seen.root.id]) for seen in look.world.roots if name in ("", seen.root.id.name)]
    found = [
        summary(seen, plan, domain_statuses(seen, plan, wired.setup)) for seen, plan in chosen if seen.root.id.kind == PODCLIQUESET.name
    ]
    bindings = [binding_summary(seen, plan) for seen, plan in chosen if seen.root.id.kind == TOPOLOGY_BINDING.name]
    missing = bool(name) and not chosen
    code = Exit.FAILED if missing else Exit.INCOMPLETE if look.world.incomplete else Exit.DONE
    if form is Output.JSON:
        output.say_document(
            {
                "version": VERSION,
                "workloads": [entry(one) for one in found],
                "bindings": [binding_entry(one) for one in bindings],
                "incomplete": dict(look.world.incomplete),
            }
        )
    else:
        tables = [told(found, look.now, verbose=wired.options.verbose)] if found or not bindings else []
        tables += [told_of_bindings(bindings, look.now, verbose=wired.options.verbose)] if bindings else []
        for number, lines in enumerate(tables):
            output.say_all((Line(""), *lines) if number else lines)
    for kind, why in look.world.incomplete.items():
        output.fault(f"not every {kind} could be seen: {clipped(why, 200)}")
    if missing:
        output.fault(
            f"no workload is called {printable(name)} {f'in {printable(where.namespaces[0])}' if where.namespaces else 'in any namespace'}"
        )
    return code


def told(found: Sequence[Workload], now: datetime, *, verbose: bool) -> Iterator[Line]:
    """The table, and beneath it what is not settled and why."""
    if not found:
        yield Line("no workloads")
        return
    head, *rows = table(HEADERS, [row(one, now) for one in found])
    yield Line(head, "head")
    for one, cells in zip(found, rows, strict=True):
        yield Line(cells, TONES.get(one.state, ""))
        yield from details(one, now, verbose)


def told_of_bindings(found: Sequence[Binding], now: datetime, *, verbose: bool) -> Iterator[Line]:
    """The table of the topology bindings, and beneath each which scheduler does not agree with it, and why."""
    head, *rows = table(BINDING_HEADERS, [binding_row(one, now) for one in found])
    yield Line(head, "head")
    for one, cells in zip(found, rows, strict=True):
        yield Line(cells, TONES.get(one.state, ""))
        for problem in one.problems:
            yield Line(f"  problem: {printable(problem)}", "bad")
        for scheduler in one.schedulers:
            if verbose or not scheduler.in_sync:
                agrees = "in sync" if scheduler.in_sync else clipped(scheduler.message, 200)
                yield Line(f"  {clipped(scheduler.name, 80)} {clipped(scheduler.topology, 80)}: {agrees}", "faint")
        yield from wait_lines(one.waits, now, verbose)


def binding_row(one: Binding, now: datetime) -> tuple[str, ...]:
    """The line of one binding."""
    return printable(one.id.name), one.state, printable(" > ".join(one.levels)), printable(one.drift) or "-", age(now, one.created_at)


def row(one: Workload, now: datetime) -> tuple[str, ...]:
    """The line of one workload."""
    whole = sum(gang.whole for gang in one.gangs)
    return (
        printable(one.id.namespace),
        printable(one.id.name),
        one.state,
        str(one.replicas),
        str(one.available),
        str(one.updated),
        f"{whole}/{len(one.gangs)}",
        f"{one.ready}/{one.pods}",
        age(now, one.created_at),
    )


def details(one: Workload, now: datetime, verbose: bool) -> Iterator[Line]:
    """What stands against it, which of its gangs are not ready, and what it waits for."""
    for problem in one.problems:
        yield Line(f"  problem: {printable(problem)}", "bad")
    for note in one.notes:
        yield Line(f"  note: {printable(note)}", "held")
    lame = [gang for gang in one.gangs if verbose or not gang.whole]
    for gang in lame if verbose else lame[:GANGS]:
        yield gang_line(gang)
    if len(lame) > GANGS and not verbose:
        yield Line(f"  … {len(lame) - GANGS} more gangs; -v shows all", "faint")
    yield from domains_shown.lines(one.domains, verbose=verbose)
    yield from wait_lines(one.waits, now, verbose)


def gang_line(gang: Gang) -> Line:
    """A gang, and how many of its pods are ready."""
    return Line(f"  gang {printable(gang.name)}: {printable(gang.phase)}, {gang.ready} of {gang.pods} pods ready", "faint")


def wait_lines(waits: Iterable[Waiting], now: datetime, verbose: bool) -> Iterator[Line]:
    """What waits, why, and since when; what is alike is told once."""
    groups: Iterable[Sequence[Waiting]] = [(wait,) for wait in waits] if verbose else held_alike(waits)
    for group in groups:
        onset = min((wait.since for wait in group if wait.since), default=None)
        since = f", since {age(now, onset)}" if onset else ""
        name = group_name(None, [wait.id for wait in group])
        yield Line(f"  {name}: {clipped(spread(wait.why for wait in group), 200)}{since}", "faint")


def table(headers: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """The lines of a table, the one with the headers first."""
    widths = [max(len(line[column]) for line in (headers, *rows)) for column in range(len(headers))]
    return (aligned(cells, widths) for cells in (headers, *rows))


def aligned(cells: Sequence[str], widths: Sequence[int]) -> str:
    """A line of a table."""
    return "   ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)).rstrip()


def age(now: datetime, then: datetime) -> str:
    """A span as kubectl shows it: its largest unit, or two where one says too little."""
    seconds = max(0, int((now - then).total_seconds()))
    for unit, size, below, small in (("d", 86400, "h", 3600), ("h", 3600, "m", 60), ("m", 60, "s", 1)):
        if seconds >= 2 * size:
            rest = seconds % size // small
            return f"{seconds // size}{unit}{f'{rest}{below}' if rest and seconds < 10 * size else ''}"
    return f"{seconds}s"


def entry(one: Workload) -> dict[str, Any]:
    """A workload in the document."""
    return {
        "root": identity(one.id),
        "state": one.state,
        "createdAt": moment_text(one.created_at),
        "replicas": one.replicas,
        "availableReplicas": one.available,
        "updatedReplicas": one.updated,
        "pods": {"total": one.pods, "scheduled": one.scheduled, "ready": one.ready},
        "gangs": [asdict(gang) for gang in one.gangs],
        "waits": waits(one.waits),
        "problems": list(one.problems),
        "notes": list(one.notes),
        "domains": [domains_shown.entry(domain) for domain in one.domains],
    }


def binding_entry(one: Binding) -> dict[str, Any]:
    """A binding in the document."""
    return {
        "root": identity(one.id),
        "state": one.state,
        "createdAt": moment_text(one.created_at),
        "levels": list(one.levels),
        "drift": one.drift,
        "schedulers": [asdict(scheduler) for scheduler in one.schedulers],
        "waits": waits(one.waits),
        "problems": list(one.problems),
    }


def waits(found: Iterable[Waiting]) -> list[dict[str, Any]]:
    """What waits, in the document."""
    return [
        {"object": identity(wait.id), "why": wait.why, "since": moment_text(wait.since), "until": moment_text(wait.until)} for wait in found
    ]
