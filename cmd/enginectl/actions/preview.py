"""`engine diff`: one pass, and the report of what a sync would do."""

from collections.abc import Collection, Iterable
from dataclasses import replace
from datetime import datetime
from typing import Final

from engine.forecast.forecast import Forecast
from engine.guard import Limits
from engine.plan import Plan
from engine.report.html import html
from engine.report.json import document
from engine.report.model import Report, compose
from engine.report.text import text
from engine.resource import Body
from engine.runtime.passes import Engine, Pass
from engine.runtime.session import preview as plan_once
from enginectl.actions import requirements
from enginectl.actions.domain_sharing import with_sharing_notes
from enginectl.actions.forecasting import forecast_of
from enginectl.actions.judging import judged
from enginectl.actions.node_capacity import with_capacity_notes
from enginectl.actions.unread_secrets import NOTE, may_not_list_secrets, without_unread_secrets
from enginectl.base import terminal
from enginectl.base.exit_codes import Exit, worst
from enginectl.base.options import ReportFormat
from enginectl.base.runner import report_internal_error
from enginectl.input.admission import admit_against
from enginectl.input.plan_policies import NO_POLICIES, Policies
from enginectl.input.roots import Roots, select_for
from enginectl.wiring.cluster import DEFAULT_LIMITS, LIVE, engine_of, open_baseline
from enginectl.wiring.configuration import Wiring
from enginectl.wiring.scope import part_of
from resources.ports.configuration import Configuration

NO_FORECAST: Final = "there is no forecast of what follows the next pass"


async def preview(
    wiring: Wiring,
    roots: Roots,
    against: str,
    format: ReportFormat,
    *,
    detailed: bool = False,
    only_next: bool = False,
    limits: Limits = DEFAULT_LIMITS,
    policies: Policies = NO_POLICIES,
) -> Exit:
    """Plan as the first pass of a sync would, write the report, and return the exit code. Nothing is written to the cluster.

    The report forecasts what follows that pass, unless `only_next`.
    """
    async with open_baseline(wiring, against) as (provider, namespaces):
        selection = select_for(wiring, roots, default=namespaces)
        admitted = await admit_against(wiring, roots, provider, against, selection)
        observed = await plan_of_all(engine_of(wiring, provider, selection, limits), admitted.roots.bodies)
        result = without_unread_secrets(observed)
        result = await with_capacity_notes(result, wiring.configuration, provider, complete=against == LIVE)
    forecast = None if only_next else forecast_if_possible(wiring, observed, admitted.roots.bodies, limits)
    result = with_sharing_notes(result, wiring.configuration)
    result = admitted.added_to(result)
    report = await judged(report_of(result, forecast), observed, policies)
    write_report(wiring, report, result.now, format)
    if wiring.options.verbose:
        report_errors(result.planned.plans, verbose=True)
    return exit_code(report, detailed=detailed)


def forecast_if_possible(wiring: Wiring, observed: Pass, manifests: tuple[Body, ...], limits: Limits) -> Forecast | None:
    """The forecast of what follows a pass. If our own code fails on it, a line says so, and the report is written without one."""
    try:
        return forecast_of(observed, manifests, wiring.configuration, limits)
    except Exception as error:
        report_internal_error(error, verbose=wiring.options.verbose, about=NO_FORECAST)
        return None


def write_report(wiring: Wiring, report: Report, now: datetime, format: ReportFormat) -> None:
    """Write the report to stdout; `now`: when the cluster was observed."""
    if format is ReportFormat.JSON:
        terminal.print_json(document(report))
    elif format is ReportFormat.HTML:
        terminal.print_text(html(report, now))
        terminal.flush()
    else:
        terminal.print_lines(text(report, verbose=wiring.options.verbose))


async def plan_with_notes(engine: Engine, manifests: tuple[Body, ...] = ()) -> Pass:
    """One pass over the cluster as if the manifests were applied. Kinds that the cluster does not serve are named on stderr.

    Secrets that the user may not list are left out, with a note.
    """
    return without_unread_secrets(await plan_of_all(engine, manifests))


async def plan_of_all(engine: Engine, manifests: tuple[Body, ...]) -> Pass:
    """The same, with what waits for Secrets that the user may not list."""
    result = await plan_once(engine, manifests)
    if may_not_list_secrets(result.world.incomplete):
        terminal.note(NOTE)
    if note := await missing_kinds(engine, result.world.unserved, {manifest["kind"] for manifest in manifests}):
        terminal.note(note)
    if note := await requirements.missing_if_known(engine.configuration, engine.provider):
        terminal.note(note)
    return result


async def missing_kinds(engine: Engine, unserved: frozenset[str], asked: Collection[str]) -> str:
    """What to do about root kinds that the cluster does not serve and that the user may miss; empty if there are none."""
    if unserved.isdisjoint(kind.key for kind in engine.scope.roots):
        return ""
    wanted = [kind for kind in engine.scope.roots if kind.name in asked]
    provider, optional = engine.provider, requirements.optional_roots(engine.scope.roots)
    for note in (await requirements.unserved_roots(provider, wanted), await requirements.nothing_served(provider)):
        if note:
            return note
    return await requirements.unserved_roots(provider, optional)


def report_of(result: Pass, forecast: Forecast | None = None) -> Report:
    """The report of a pass, with a forecast of what follows it."""
    report = compose(result.planned.plans, part_of, objections=result.planned.objections, incomplete=result.world.incomplete)
    return replace(report, forecast=forecast)


def report_with_notes(result: Pass, configuration: Configuration) -> Report:
    """The report of a pass with the notes that need no further reads of the cluster."""
    return report_of(with_sharing_notes(result, configuration))


def report_errors(plans: Iterable[Plan], *, verbose: bool) -> bool:
    """Write the internal errors of the engine while planning to stderr, with `verbose` their tracebacks. Returns whether there are any."""
    errors = [(plan.root, plan.error) for plan in plans if plan.error is not None]
    for root, error in errors:
        report_internal_error(error, verbose=verbose, about=str(root))
    return bool(errors)


def exit_code(report: Report, *, detailed: bool) -> Exit:
    """The exit code of a preview. Changes count only with `detailed`."""
    conditions = {
        Exit.FAILED: report.faulty,
        Exit.DENIED: report.denied,
        Exit.INCOMPLETE: bool(report.incomplete),
        Exit.CHANGES: detailed and report.changes > 0,
    }
    return worst(code for code, applies in conditions.items() if applies)
