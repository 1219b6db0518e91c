"""Look: one pass that writes nothing, with what the rules of admission, the forecast and the cluster add to it."""

from dataclasses import dataclass, replace

from engine.forecast.forecast import Forecast
from engine.guard import Limits
from engine.intent import Intent
from engine.report.model import Report
from engine.runtime.passes import Pass
from engine.runtime.provider import Provider
from enginectl.actions.circumstances import cluster_identity
from enginectl.actions.domain_sharing import with_sharing_notes
from enginectl.actions.forecasting import forecast_of
from enginectl.actions.node_capacity import with_capacity_notes
from enginectl.actions.planning import plan_of_all, report_of
from enginectl.actions.unread_secrets import without_unread_secrets
from enginectl.base.runner import report_internal_error
from enginectl.input.admission import AdmittedRoots, admit_against
from enginectl.input.roots import NO_ROOTS, Roots, select_for
from enginectl.wiring.cluster import DEFAULT_LIMITS, LIVE, engine_of, open_baseline
from enginectl.wiring.configuration import Wiring
from enginectl.wiring.scope import Selection

NO_FORECAST = "there is no forecast of what follows the next pass"


@dataclass(frozen=True, slots=True, eq=False)
class Subject:
    """What a look is about."""

    roots: Roots = NO_ROOTS
    """The manifests that are applied first."""
    against: str = LIVE
    """What they are compared with: see `open_baseline`."""
    only_next: bool = False
    """Only the next pass, without a forecast."""
    limits: Limits = DEFAULT_LIMITS
    for_approval: bool = False
    """Whether what is seen is to be approved: then it must be known which cluster it is."""


@dataclass(frozen=True, slots=True, eq=False)
class Look:
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
        selection = select_for(wiring, subject.roots, default=namespaces)
        admitted = await admit_against(wiring, subject.roots, provider, subject.against, selection)
        return await look_at(wiring, subject, provider, selection, admitted)


async def look_at(wiring: Wiring, subject: Subject, provider: Provider, selection: Selection, admitted: AdmittedRoots) -> Look:
    """The same of a cluster that is open already, and of manifests that admission has judged."""
    intent = Intent(admitted.roots.bodies)
    observed = await plan_of_all(engine_of(wiring, provider, selection, subject.limits), intent)
    result = without_unread_secrets(observed)
    result = await with_capacity_notes(result, wiring.configuration, provider, complete=subject.against == LIVE)
    forecast = None if subject.only_next else forecast_if_possible(wiring, observed, intent, subject.limits)
    result = with_sharing_notes(result, wiring.configuration)
    result = admitted.added_to(result)
    cluster = await cluster_identity(provider) if subject.for_approval else ""
    return Look(subject, intent, result, replace(report_of(result), forecast=forecast), selection, cluster)


def forecast_if_possible(wiring: Wiring, observed: Pass, intent: Intent, limits: Limits) -> Forecast | None:
    """The forecast of what follows a pass. If our own code fails on it, a line says so, and the report is written without one."""
    try:
        return forecast_of(observed, intent, wiring.configuration, limits)
    except Exception as error:
        report_internal_error(error, verbose=wiring.options.verbose, about=NO_FORECAST)
        return None
