"""Look: one pass that writes nothing, with what the rules of admission, the forecast and the cluster add to it."""

from msgspec import Struct
from msgspec.structs import replace

from engine.focus import EVERYTHING, Focus
from engine.forecast.forecast import Forecast
from engine.guard import Limits
from engine.intent import Intent, intent_of
from engine.plan import Objection
from engine.removal import NO_REMOVALS, RootRemovals
from engine.report.model import Report
from engine.runtime.clock import StandingClock
from engine.runtime.passes import Pass
from engine.runtime.provider import Provider
from enginectl.actions.domain_sharing import with_sharing_notes
from enginectl.actions.forecasting import forecast_of
from enginectl.actions.judging import judged
from enginectl.actions.node_capacity import with_capacity_notes
from enginectl.actions.notes import with_notes
from enginectl.actions.planning import plan_of_all, report_of
from enginectl.actions.surroundings import blocked_by_namespaces, ending_with, with_plans, with_quotas, without_roots
from enginectl.actions.unread_secrets import without_unread_secrets
from enginectl.base import terminal
from enginectl.base.runner import report_internal_error
from enginectl.input.admission import AdmittedRoots, admit_against
from enginectl.input.applysets import parent_note
from enginectl.input.plan_policies import NO_POLICIES, Policies
from enginectl.input.removals import Removing, found_by
from enginectl.input.roots import NO_ROOTS, Roots, select_for
from enginectl.input.targets import require_matches
from enginectl.wiring.cluster import DEFAULT_LIMITS, EMPTY, LIVE, engine_of, open_baseline
from enginectl.wiring.configuration import Wiring
from enginectl.wiring.scope import Selection

NO_FORECAST = "there is no forecast of what follows the next pass"


class Subject(Struct, frozen=True, eq=False):
    """What a look is about."""

    roots: Roots = NO_ROOTS
    """The manifests that are applied first."""
    against: str = LIVE
    """What they are compared with: see `open_baseline`."""
    only_next: bool = False
    """Only the next pass, without a forecast."""
    limits: Limits = DEFAULT_LIMITS
    server_dry_run: bool = False
    """Whether the server checks the operations of the first pass without storing them."""
    base: Roots | None = None
    """Manifests that are applied first, until everything is settled: only what `roots` change after that is shown. None: there are none."""
    policies: Policies = NO_POLICIES
    """What judges the pass and what follows it."""
    focus: Focus = EVERYTHING
    """The workloads that it concerns."""
    removing: Removing | None = None
    """What finds the roots that are removed; None: none are."""
    forecast_passes: int | None = None
    """How many passes a forecast simulates; None: see `engine.forecast.simulation`."""
    for_approval: bool = False
    """Whether what is seen is to be approved: then it must be known which cluster it is."""


class Look(Struct, frozen=True, eq=False):
    """What was seen."""

    subject: Subject
    intent: Intent
    """What was planned with: the manifests that admission accepts."""
    result: Pass
    """The pass, with the faults of the manifests that admission rejects, and with notes."""
    report: Report
    selection: Selection
    """What was read."""
    cluster: str = ""
    """The identity of the cluster, if it was asked for and can be read."""


async def look(wiring: Wiring, subject: Subject) -> Look:
    """Plan as the first pass of a sync would, and forecast what follows. Nothing is written to the cluster."""
    async with open_baseline(wiring, subject.against) as (provider, namespaces):
        if subject.base is not None:
            return await look_after_base(wiring, subject, subject.base, provider, namespaces)
        selection = select_for(wiring, subject.roots, namespaces, subject.focus)
        await require_matches(wiring, provider, selection, subject.roots, subject.focus)
        scope = await found_by(subject.removing, wiring, provider, selection)
        if scope.record is not None and (note := parent_note(scope.record)):
            terminal.note(note)
        admitted = await admit_against(wiring, subject.roots, provider, subject.against, scope.selection)
        return await look_at(wiring, subject, provider, scope.selection, admitted, scope.removals)


async def look_after_base(wiring: Wiring, subject: Subject, base: Roots, provider: Provider, namespaces: tuple[str, ...]) -> Look:
    """Look at what exists when the base has been applied and everything is settled; time stands still then."""
    from enginectl.actions.base import notes_about_missing, settled_base, together

    selection = select_for(wiring, together(base, subject.roots), namespaces, subject.focus)
    baseline = await settled_base(wiring, base, provider, selection, against=subject.against, limits=subject.limits)
    later, after = replace(wiring, clock=StandingClock(baseline.at)), replace(subject, against=EMPTY, policies=NO_POLICIES)
    await require_matches(later, baseline.provider, selection, subject.roots, subject.focus)
    scope = await found_by(subject.removing, later, baseline.provider, selection)
    admitted = await admit_against(later, subject.roots, baseline.provider, EMPTY, selection)
    seen = await look_at(later, after, baseline.provider, selection, admitted, scope.removals)
    missing = {} if subject.removing is not None else notes_about_missing(base, subject.roots)
    result = with_notes(seen.result, {**baseline.notes, **missing})
    report = replace(report_of(result), forecast=seen.report.forecast)
    today = replace(result, now=wiring.clock.now())  # What calendars judge is when somebody wants to change something.
    return replace(seen, subject=subject, result=result, report=await judged(report, today, subject.policies))


async def look_at(
    wiring: Wiring,
    subject: Subject,
    provider: Provider,
    selection: Selection,
    admitted: AdmittedRoots,
    removals: RootRemovals = NO_REMOVALS,
) -> Look:
    """The same of a cluster that is open already, of manifests that admission has judged, and of removals that are known."""
    intent = intent_of(admitted.roots.bodies, subject.focus, removals.roots)
    observed = with_objections(await plan_of_all(engine_of(wiring, provider, selection, subject.limits), intent), removals.objections)
    is_live = subject.against == LIVE
    blocked = await blocked_by_namespaces(provider, observed) if is_live else {}
    result = with_plans(without_unread_secrets(observed), blocked)
    result = await with_capacity_notes(result, wiring.configuration, provider, complete=is_live)
    forecast = None if subject.only_next else forecast_if_possible(wiring, *without_roots(observed, intent, blocked), subject)
    if not subject.only_next:
        forecast = ending_with(forecast, observed.now, blocked)
    if is_live:
        result, forecast = await with_quotas(result, forecast, provider)
    result = with_sharing_notes(result, wiring.configuration)
    result = admitted.added_to(result)
    if subject.server_dry_run:
        from enginectl.actions.trial import try_out, with_trial

        result, forecast = with_trial(await try_out(provider, report_of(result)), result, forecast)
    report = replace(report_of(result), forecast=forecast)
    cluster = ""
    if subject.for_approval:
        from enginectl.actions.circumstances import cluster_identity

        cluster = await cluster_identity(provider)
    return Look(subject, intent, result, await judged(report, observed, subject.policies), selection, cluster)


def with_objections(result: Pass, objections: tuple[Objection, ...]) -> Pass:
    """The pass with more objections against all of it."""
    return replace(result, planned=replace(result.planned, objections=(*result.planned.objections, *objections)))


def forecast_if_possible(wiring: Wiring, observed: Pass, intent: Intent, subject: Subject) -> Forecast | None:
    """The forecast of what follows a pass. If our own code fails on it, a line says so, and the report is written without one."""
    try:
        return forecast_of(observed, intent, wiring.configuration, subject.limits, passes=subject.forecast_passes)
    except Exception as error:
        report_internal_error(error, verbose=wiring.options.verbose, about=NO_FORECAST)
        return None
