"""Preview: what a sync would do first, what follows, and what is known beyond that. Nothing is written to the cluster."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import datetime
from types import MappingProxyType
from typing import Final, TypeVar

from anyio import to_thread
from msgspec import Struct
from msgspec.structs import replace

from engine.errors import Forbidden
from engine.focus import EVERYTHING, Focus
from engine.forecast.forecast import Forecast
from engine.guard import Limits
from engine.ids import ResourceId
from engine.intent import Intent
from engine.report.model import Report
from engine.runtime.clock import StandingClock
from engine.runtime.passes import Engine, Pass
from engine.runtime.provider import Provider
from engine.runtime.verdicts import Verdicts
from enginectl.actions.facts import read_facts, with_requirements
from enginectl.actions.planning import first_pass, shown_pass, write_notices
from enginectl.base.runner import report_internal_error
from enginectl.input.admission import AdmittedRoots, admit_against
from enginectl.input.plan_policies import NO_POLICIES, Policies
from enginectl.input.removals import RemovalScope, Removing, found_by
from enginectl.input.roots import NO_ROOTS, Roots, select_for
from enginectl.input.targets import note_missing_namespace, require_matches
from enginectl.wiring.cluster import DEFAULT_LIMITS, EMPTY, LIVE, engine_of, open_baseline
from enginectl.wiring.configuration import Wiring
from enginectl.wiring.scope import Selection
from resources.ports.configuration import Configuration
from resources.preview.facts import NO_FACTS, NO_TRIAL, Facts, FirstPass, TrialResult
from resources.preview.forecasting import forecast_of
from resources.preview.shown import Shown, shown

NO_FORECAST: Final = "there is no forecast of what follows the next pass"
NO_REMARKS: Final[Mapping[ResourceId, tuple[str, ...]]] = MappingProxyType({})
Result = TypeVar("Result")


class PreviewRequest(Struct, frozen=True, eq=False):
    """What a preview is about."""

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
    assume_nodes: bool = False
    """Whether nodes are added for pods that have no room: then nodes are not read."""
    for_approval: bool = False
    """Whether what is seen is to be approved: then it must be known which cluster it is."""


class Preview(Struct, frozen=True, eq=False):
    """What was seen."""

    request: PreviewRequest
    first: FirstPass
    """The first pass as it was planned, with the manifests that admission accepts."""
    facts: Facts
    result: Pass[Configuration]
    """The pass as it is shown: with remarks, and with the faults of the manifests that admission rejects."""
    report: Report
    selection: Selection
    """What was read."""
    cluster: str = ""
    """The identity of the cluster, if it was asked for and can be read."""

    @property
    def intent(self) -> Intent:
        """What was planned with."""
        return self.first.intent


async def preview(wiring: Wiring, request: PreviewRequest) -> Preview:
    """Plan as the first pass of a sync would, and forecast what follows. Nothing is written to the cluster."""
    async with open_baseline(wiring, request.against) as (provider, namespaces):
        if request.base is not None:
            return await preview_after_base(wiring, request, request.base, provider, namespaces)
        selection = select_for(wiring, request.roots, namespaces, request.focus)
        await require_matches(wiring, provider, selection, request.roots, request.focus)
        scope = await found_by(request.removing, wiring, provider, selection)
        admitted = await admit_against(wiring, request.roots, provider, request.against, scope.selection)
        seen = await preview_of(wiring, request, provider, scope, admitted)
        await note_missing_namespace(seen.result.world, wiring, provider)
        return seen


async def preview_after_base(
    wiring: Wiring, request: PreviewRequest, base: Roots, provider: Provider, namespaces: tuple[str, ...]
) -> Preview:
    """The preview of what exists when the base has been applied and everything is settled; no time passes then, and times are not shown."""
    from engine.report.timeless import timeless
    from enginectl.actions.base import notes_about_missing, settled_base, together

    selection = select_for(wiring, together(base, request.roots), namespaces, request.focus)
    baseline = await settled_base(wiring, base, provider, selection, against=request.against, limits=request.limits)
    later = replace(wiring, clock=StandingClock(baseline.at))
    await require_matches(later, baseline.provider, selection, request.roots, request.focus)
    scope = await found_by(request.removing, later, baseline.provider, selection)
    admitted = await admit_against(later, request.roots, baseline.provider, EMPTY, selection, is_base=True)
    missing = {} if request.removing is not None else notes_about_missing(base, request.roots)
    notes = {**baseline.notes, **missing}
    # Policies with a calendar judge the time of the change, and not the time at which the base is settled.
    today = wiring.clock.now()
    read = RemovalScope(selection, scope.removals)
    seen = await preview_of(later, request, baseline.provider, read, admitted, base=notes, judged_at=today)
    return replace(seen, report=timeless(seen.report))


async def preview_of(
    wiring: Wiring,
    request: PreviewRequest,
    provider: Provider,
    scope: RemovalScope,
    admitted: AdmittedRoots,
    *,
    base: Mapping[ResourceId, tuple[str, ...]] = NO_REMARKS,
    judged_at: datetime | None = None,
    verdicts: Verdicts | None = None,
) -> Preview:
    """The preview of a cluster that is open already, of manifests that admission has judged, and of removals that are known.

    `base`: remarks about the manifests with which the change is compared. `judged_at`: when policies judge it; None: when it is planned.
    `verdicts`: see `first_pass`.
    """
    intent = intent_of(request, scope, admitted)
    engine = engine_of(wiring, provider, scope.selection, request.limits, tries_new=True)
    current, first = await first_pass(engine, intent, scope.removals.objections, verdicts)
    first = replace(await with_requirements(engine, first), passes=request.forecast_passes)
    trial = await tried(provider, first) if request.server_dry_run else NO_TRIAL
    known = Facts(rejected=admitted.rejected, trial=trial, base=base)
    seen, facts = await shown_and_facts(wiring, engine, first, known, only_next=request.only_next, assume_nodes=request.assume_nodes)
    write_notices(seen.notices)
    cluster = ""
    if request.for_approval:
        from enginectl.actions.circumstances import cluster_identity

        with suppress(Forbidden):
            cluster = await cluster_identity(provider)
    result = shown_pass(current, seen)
    report = await judged(seen.report, replace(current, now=judged_at or current.now), request.policies)
    return Preview(request, first, facts, result, report, scope.selection, cluster)


def intent_of(request: PreviewRequest, scope: RemovalScope, admitted: AdmittedRoots) -> Intent:
    """What passes are planned with: the manifests as admitted, and the removals with the record in which they are noted."""
    removed, roots = scope.removals.roots, admitted.roots
    focus = request.focus.including(removed)
    return Intent(roots.bodies, focus, removed, scope.record, roots.memo, admitted.warned, roots.replicas, roots.beside)


async def shown_and_facts(
    wiring: Wiring,
    engine: Engine[Configuration],
    first: FirstPass,
    known: Facts = NO_FACTS,
    *,
    only_next: bool = False,
    assume_nodes: bool = False,
    in_thread: bool = False,
) -> tuple[Shown, Facts]:
    """What is shown of a pass and what follows it, and the facts that it depends on, of which some are known already.

    `in_thread`: what takes long is computed beside what this thread serves. The others: see `PreviewRequest`.
    """

    async def compute(make: Callable[[], Result]) -> Result:
        return await to_thread.run_sync(make) if in_thread else make()

    verbose = wiring.options.verbose
    forecast = None if only_next else await compute(lambda: forecast_if_possible(first, verbose=verbose))
    facts = await read_facts(engine, first, forecast, known, assume_nodes=assume_nodes)
    return await compute(lambda: shown_if_possible(first, forecast, facts, verbose=verbose)), facts


def forecast_if_possible(first: FirstPass, *, verbose: bool) -> Forecast | None:
    """The forecast. If our own code fails on it, a line says so, and the report is written without one."""
    try:
        return forecast_of(first)
    except Exception as error:
        report_internal_error(error, verbose=verbose, about=NO_FORECAST)
        return None


def shown_if_possible(first: FirstPass, forecast: Forecast | None, facts: Facts, *, verbose: bool) -> Shown:
    """What is shown. If our own code fails on the forecast, a line says so, and there is none."""
    try:
        return shown(first, forecast, facts)
    except Exception as error:
        if forecast is None:
            raise
        report_internal_error(error, verbose=verbose, about=NO_FORECAST)
        return shown(first, None, facts)


async def tried(provider: Provider, first: FirstPass) -> TrialResult:
    """What the API server says of the operations of a pass. Raises `UsageError` if there is none that can check them."""
    from enginectl.actions.trial import try_out

    return await try_out(provider, shown(first).report)


async def judged(report: Report, observed: Pass[Configuration], policies: Policies) -> Report:
    """The report of this pass with what the policies say about it; the report itself if there are none."""
    if not policies.rules:
        return report
    return await to_thread.run_sync(lambda: _judged(report, observed, policies))


def _judged(report: Report, observed: Pass[Configuration], policies: Policies) -> Report:
    from providers.plan_policies.process import expressions_of_child  # Needs an extra, as everything of that folder does.
    from resources.plan_policies.judge import judge
    from resources.plan_policies.plan_data import plan_data

    with expressions_of_child() as expressions:
        data = plan_data(report, observed.world, observed.now)
        return replace(report, judgement=judge(policies.rules, data, expressions, policies.waivers))
