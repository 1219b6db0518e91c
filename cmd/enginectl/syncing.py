"""Syncing: a session that makes the difference true, shown while it works and told when it has ended."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import anyio

from engine.errors import LeaseLost
from engine.guard import Limits
from engine.report.json import VERSION, document, identity
from engine.report.line import Line
from engine.report.printable import clipped, printable
from engine.report.text import text
from engine.result import Outcome, Result
from engine.runtime.session import Ending, Report, sync
from enginectl import fitness, output, wiring
from enginectl.admitting import admitted
from enginectl.exits import Exit
from enginectl.manifest_files import Wanted
from enginectl.options import Output
from enginectl.preview import report_of
from enginectl.progress import showing
from enginectl.wiring import Wiring

CODES = {
    Ending.INTERRUPTED: Exit.INTERRUPTED,
    Ending.FAILED: Exit.FAILED,
    Ending.DENIED: Exit.DENIED,
    Ending.INCOMPLETE: Exit.INCOMPLETE,
    Ending.DONE: Exit.DONE,
}
TOLD = 20
"""Failures told one by one."""


@dataclass(frozen=True, slots=True)
class Patience:
    """Whether to wait until all is settled, and for how many seconds at most."""

    wait: bool = True
    seconds: float = 300.0


async def synced(wired: Wiring, wanted: Wanted, form: Output, limits: Limits, patience: Patience, stop: anyio.CancelScope) -> Exit:
    """Sync as the holder of the lease, and answer with the exit code."""
    where = wiring.where(wired, wanted, otherwise=(wiring.home(wired),))
    async with wiring.cluster(wired) as (client, provider):
        await wiring.require_roots(provider, where)
        await fitness.require(wired, provider)
        asked = await admitted(wired, wanted, provider, wiring.LIVE, where)
        asked.require_all()
        engine, lease = wiring.engine_of(wired, provider, where, limits), wiring.lease(wired, client)
        with showing(wired) as progress:
            report = await sync(
                engine, lease, asked.wanted.roots, wait=patience.wait, patience=patience.seconds, stop=stop, progress=progress
            )
    code = Exit.NOT_LEADER if isinstance(report.error, LeaseLost) else CODES[report.ending]
    if form is Output.JSON:
        output.say_document(told_as_document(report))
    else:
        output.say_all(told(report, verbose=wired.options.verbose))
    return code


def told(report: Report, *, verbose: bool) -> Iterator[Line]:
    """What was done, what failed, and what is left."""
    left = report_of(report.seen)
    settled = report.ending is Ending.DONE and all(account.silent for account in left.accounts)
    yield Line(f"Done: {counted(report) or ('nothing, all is as desired' if settled else 'nothing')}.", "head")
    for result in report.failures[:TOLD]:
        yield Line(f"failed: {result.operation.verb} {printable(str(result.operation.id))}: {clipped(str(result.error), 300)}", "bad")
    if len(report.failures) > TOLD:
        yield Line(f"… and {len(report.failures) - TOLD} more failures", "bad")
    if report.error:
        yield Line(f"stopped: {clipped(str(report.error), 300)}", "bad")
    if report.interrupted:
        yield Line(f"Interrupted: {len(report.undone)} operations of the last plan were not begun; run it again to go on.", "bad")
    elif report.timed_out:
        yield Line("Not settled in time; this is left:", "bad")
    # After an interruption the last plan speaks of what has been done as well: what is left is for the next look to say.
    if not settled and not report.interrupted:
        yield from text(left, verbose=verbose)


def counted(report: Report) -> str:
    """How many operations of each verb were done."""
    counts = Counter(str(result.operation.verb) for result in report.results if result.outcome is Outcome.DONE)
    return ", ".join(f"{count} {verb}" for verb, count in sorted(counts.items()))


def told_as_document(report: Report) -> dict[str, Any]:
    """The whole session as a document: every operation and how it ended, and what is left."""
    return {
        "version": VERSION,
        "kind": "Sync",
        "ending": str(report.ending),
        "timedOut": report.timed_out,
        "error": str(report.error) if report.error else None,
        "results": [result_entry(result) for result in report.results],
        "left": document(report_of(report.seen)),
    }


def result_entry(result: Result) -> dict[str, Any]:
    """One operation and how it ended."""
    operation = result.operation
    return {
        "verb": str(operation.verb),
        "object": identity(operation.id),
        "why": operation.why,
        "outcome": str(result.outcome),
        "error": str(result.error) if result.error else None,
    }
