"""Preview: a look at a world, and the report of what a sync would do about it."""

from engine.guard import Limits
from engine.report.json import document
from engine.report.model import Report, compose
from engine.report.text import text
from engine.runtime.passes import Engine, Pass
from engine.runtime.session import preview as look_once
from enginectl import fitness, output, wiring
from enginectl.admitting import admitted
from enginectl.crowds import noted
from enginectl.exits import Exit, worst
from enginectl.manifest_files import NO_FILES, Wanted
from enginectl.options import Output
from enginectl.wiring import USUAL, Wiring


async def preview(wired: Wiring, wanted: Wanted, against: str, form: Output, *, detailed: bool = False, limits: Limits = USUAL) -> Exit:
    """Pass, report, and answer with the exit code. The same look as that of a sync, and nothing else."""
    async with wiring.world(wired, against) as (provider, otherwise):
        where = wiring.where(wired, wanted, otherwise=otherwise)
        asked = await admitted(wired, wanted, provider, against, where)
        look = await look_at(wiring.engine_of(wired, provider, where, limits), asked.wanted)
        look = await noted(look, wired.setup, provider, complete=against == wiring.LIVE)
    found = report_of(asked.answered(look))
    code = verdict(found, detailed=detailed)
    if form is Output.JSON:
        output.say_document(document(found))
    else:
        output.say_all(text(found, verbose=wired.options.verbose))
    return code


async def look_at(engine: Engine, wanted: Wanted = NO_FILES) -> Pass:
    """A look, with a note on stderr about roots that the cluster does not know."""
    look = await look_once(engine, wanted.roots)
    unknown = [kind for kind in engine.scope.roots if kind.name in look.world.unserved]
    if unknown and (note := await wiring.unserved(engine.provider, unknown)):
        output.tell(f"note: {note}")
    if lacking := await fitness.note(engine.configuration, engine.provider):
        output.tell(f"note: {lacking}")
    return look


def report_of(look: Pass) -> Report:
    """The report of a look."""
    return compose(look.planned.plans, wiring.part_of, objections=look.planned.objections, incomplete=look.world.incomplete)


def verdict(report: Report, *, detailed: bool) -> Exit:
    """The exit code of a preview; a change counts only where it is asked about."""
    found = {
        Exit.FAILED: report.faulty,
        Exit.DENIED: report.denied,
        Exit.INCOMPLETE: bool(report.incomplete),
        Exit.CHANGES: detailed and report.changes > 0,
    }
    return worst(code for code, applies in found.items() if applies)
