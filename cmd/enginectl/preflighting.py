"""Preflighting: an installation looked at as a whole, and the checks as a table or a document."""

from collections.abc import Iterator, Sequence
from typing import Any

from engine.report.line import Line
from engine.report.printable import clipped
from engine.runtime.client import Client
from enginectl import output, wiring
from enginectl.condition import aligned
from enginectl.exits import Exit
from enginectl.manifest_files import NO_FILES
from enginectl.options import Output
from enginectl.wiring import Wiring
from providers.asking import allowed, ask, offer
from resources.base import kinds
from resources.install.permissions import permissions
from resources.install.preflight import Rights, checks, failed
from resources.ports.checks import Check, Level, Outcome
from resources.ports.inspection import InspectingFabric, Installation
from resources.ports.queries import Query
from resources.registry import BLUEPRINTS

VERSION = 1
HEADERS = ("LEVEL", "RESULT", "CHECK", "FOUND")
TONES = {Outcome.GOOD: "", Outcome.BAD: "bad", Outcome.UNKNOWN: "held"}
CELL = 120
"""Characters of what was found that are shown in a table."""


async def inspected(wired: Wiring, form: Output) -> Exit:
    """Pass, judge, tell, and answer with the exit code."""
    async with wiring.cluster(wired) as (client, _):
        found = tuple(checks(await site(wired, client), await rights(wired, client), wired.setup.fabrics))
    if form is Output.JSON:
        output.say_document({"version": VERSION, "kind": "Preflight", "checks": [entry(check) for check in found]})
    else:
        output.say_all(told(found))
    return verdict(found)


async def site(wired: Wiring, client: Client) -> Installation:
    """What there is of everything that the checks look at."""
    offered = await offer(client)
    sets = Query(kinds.PODCLIQUESET)
    wanted = [question for fabric in wired.setup.fabrics if isinstance(fabric, InspectingFabric) for question in fabric.questions()]
    answers = await ask(client, (sets, *wanted), offered)
    seen = answers.to(sets)
    return Installation(offered, answers, seen.objects if seen.known and seen.served else None)


async def rights(wired: Wiring, client: Client) -> Rights:
    """What we may and may not do where workloads are looked after."""
    election = wired.settings.leader_election.resource_namespace or wiring.HOME
    roots = wiring.where(wired, NO_FILES).roots
    looked_after = [blueprint for blueprint in BLUEPRINTS if blueprint.kind in roots]
    return await allowed(client, permissions(looked_after, wired.setup, election), wired.options.namespace)


def verdict(found: Sequence[Check]) -> Exit:
    """7 where nothing can work; 5 where nobody can tell whether it does."""
    if failed(found):
        return Exit.PREFLIGHT
    return Exit.INCOMPLETE if any(one.level is Level.HARD and one.outcome is Outcome.UNKNOWN for one in found) else Exit.DONE


def told(found: Sequence[Check]) -> Iterator[Line]:
    """The table; beneath a row that is not good, what to do about it."""
    rows = [(str(one.level), str(one.outcome), clipped(one.what, CELL), clipped(one.found, CELL * 3)) for one in found]
    widths = [max(len(row[column]) for row in (HEADERS, *rows)) for column in range(len(HEADERS) - 1)] + [0]
    yield Line(aligned(HEADERS, widths), "head")
    for one, row in zip(found, rows, strict=True):
        yield Line(aligned(row, widths), TONES[one.outcome])
        if one.remedy and one.outcome is not Outcome.GOOD:
            yield Line(f"{' ' * (widths[0] + widths[1] + 6)}do: {clipped(one.remedy, CELL * 3)}", "faint")


def entry(check: Check) -> dict[str, Any]:
    """A check in the document."""
    return {
        "level": str(check.level),
        "result": str(check.outcome),
        "check": check.what,
        "found": check.found,
        "remedy": check.remedy if check.outcome is not Outcome.GOOD else "",
    }
