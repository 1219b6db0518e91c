"""Approved: whether a saved plan may be applied here and now, and the limits that an approval sets to a sync."""

from collections.abc import Iterator, Sequence
from datetime import datetime

from engine.approval.approval import Approval, Deviation
from engine.approval.ledger import Ledger
from engine.approval.saved_plan import SavedPlan, changed_circumstances
from engine.approval.staleness import changed_removals, changed_roots, changed_scalers
from engine.errors import Forbidden, InputError
from engine.report.model import Report
from engine.runtime.passes import Pass
from engine.runtime.provider import Provider
from engine.runtime.sync_report import Ending, SyncReport
from engine.tick import Plans
from engine.world import empty
from enginectl.actions.circumstances import circumstances, cluster_identity
from enginectl.actions.gates import Gate
from enginectl.actions.preview import Preview
from enginectl.base import terminal
from enginectl.base.exit_codes import Exit
from enginectl.base.options import OutputFormat
from enginectl.output.approval import deviation_entry, deviation_lines
from enginectl.output.sync_report import sync_document
from enginectl.wiring.configuration import Wiring
from resources.preview.pod_recognition import RECOGNITION

REMEDY = "nothing was written: look at what has changed, and make and approve a new plan"


def ledger_of(approval: Approval) -> Ledger:
    """Limits one sync to the approval."""
    return Ledger(approval, RECOGNITION)


async def foreign_circumstances(wiring: Wiring, plan: SavedPlan, provider: Provider) -> list[Deviation]:
    """Why the plan is not valid in this cluster, with this configuration or at this time; empty if it is.

    Raises `InputError` if it is for one cluster, and the user may not read which one this is.
    """
    try:
        cluster = await cluster_identity(provider) if plan.circumstances.cluster else ""
    except Forbidden as error:
        raise InputError(f"whether the plan is for this cluster is not known: {error}") from None
    return list(changed_circumstances(plan, circumstances(wiring, cluster), wiring.clock.now()))


def staleness_gate(plan: SavedPlan, format: OutputFormat, *, quiet: bool = False) -> Gate:
    """Refuses a plan whose roots have changed, or of which the first pass would do something that was not approved."""

    async def gate(seen: Preview) -> Exit | None:
        deviations = list(stale(plan.approval, seen))
        return refuse(deviations, seen.result.now, format, quiet=quiet) if deviations else None

    return gate


def stale(approval: Approval, seen: Preview) -> Iterator[Deviation]:
    """The roots that have changed, and of the others what would be removed or done now and was not approved."""
    world = seen.result.world
    changed = dict(changed_removals(approval, seen.intent.removals, world)) | dict(changed_roots(approval, world))
    yield from changed.values()
    scaled = [each for each in changed_scalers(approval, world) if each[0] not in changed]
    yield from (deviation for _, deviation in scaled)
    reported = {*changed, *(root for root, _ in scaled)}
    ledger = ledger_of(approval)
    ledger.limited(world, seen.result.planned)
    yield from (each.deviation for each in ledger.excess if each.root not in reported)


def refuse(deviations: Sequence[Deviation], at: datetime, format: OutputFormat, *, quiet: bool = False) -> Exit:
    """Write every deviation that was found at this time, and return the exit code of a plan that is not applied."""
    if format is OutputFormat.JSON:
        entries = [deviation_entry(each) for each in deviations]
        nothing_done = SyncReport(Pass(at, 0.0, empty(), Plans(()), frozenset(), None), ())
        terminal.print_json({**sync_document(nothing_done, Report(())), "ending": str(Ending.UNAPPROVED), "unapproved": entries})
    elif quiet:
        for deviation in deviations:
            terminal.error(str(deviation))
    else:
        terminal.print_lines(deviation_lines(deviations))
    terminal.error(f"not as approved; {REMEDY}")
    return Exit.STALE
