"""Saved previews: what a preview has seen, as a plan that a user may approve and `engine sync --plan` applies."""

from datetime import timedelta
from pathlib import Path

from msgspec.structs import replace

from engine.approval.approval import Approval
from engine.approval.document import read, written
from engine.approval.draft import PlanInputs, approval_of
from engine.approval.saved_plan import PlanScope, SavedPlan
from engine.canonical import digest
from engine.report.printable import printable
from enginectl.actions.circumstances import circumstances
from enginectl.actions.preview import Preview
from enginectl.base import terminal
from enginectl.base.exit_codes import Exit
from enginectl.base.files import private_file
from enginectl.input.applysets import Prune
from enginectl.wiring.configuration import Wiring
from resources.preview.forecasting import forecast_of
from resources.preview.pod_recognition import RECOGNITION
from resources.preview.shown import shown
from resources.registry import BLUEPRINTS

MAX_PASSES = 20_000
"""How many passes are simulated at most, of large sets too."""


UNKNOWN_CLUSTER = "the namespace kube-system may not be read, so the plan does not say which cluster it is for"


def with_whole_forecast(seen: Preview) -> Preview:
    """What was seen, with a forecast for which every object was simulated: an approval needs what each of them becomes.

    The same preview if it has such a forecast already, or none.
    """
    forecast = seen.report.forecast
    if forecast is None or forecast.objects is not None:
        return seen
    first = replace(seen.first, passes=MAX_PASSES)
    whole = shown(first, forecast_of(first, whole=True), seen.facts)
    return replace(seen, report=replace(seen.report, forecast=whole.forecast))


def approval_of_preview(wiring: Wiring, seen: Preview) -> Approval:
    """The approval of everything that was seen."""
    rules = PlanInputs(BLUEPRINTS, wiring.configuration, RECOGNITION)
    result = seen.result
    return approval_of(result.world, result.planned, seen.report.forecast, seen.intent, result.now, rules)


def refusal(seen: Preview) -> tuple[Exit, str] | None:
    """Why what was seen cannot be approved as a whole, with the exit code; None if it can."""
    report, plans = seen.report, seen.result.planned.plans
    if any(plan.problems or plan.error for plan in plans):
        return Exit.FAILED, "correct what is wrong with the workloads first"
    if report.denied:
        return Exit.DENIED, "it is denied"
    if report.incomplete or seen.result.world.incomplete:
        return Exit.INCOMPLETE, "not everything could be listed"
    if report.forecast is None:
        is_idle = not any(plan.operations or plan.deferred or plan.pending or plan.wake_at for plan in plans)
        return None if is_idle else (Exit.FAILED, "there is no forecast of what follows")
    if not report.forecast.is_finished:
        return Exit.FAILED, "its forecast has no end: plan fewer workloads at a time, or more passes with --forecast-passes"
    if report.forecast.repeating:
        return Exit.STUCK, "the same operations would follow again and again"
    return None


def save(wiring: Wiring, seen: Preview, file: Path, valid_for: timedelta) -> Exit | None:
    """Save what was seen in a file, and say so on stderr. Returns the exit code if it cannot be approved; then no file is written."""
    if (refused := refusal(seen)) is not None:
        code, why = refused
        terminal.error(f"the plan was not saved: {why}")
        return code
    data = written(saved_plan(wiring, with_whole_forecast(seen), valid_for))
    plan = read(data)
    with private_file(file, "--out") as opened:
        opened.write(data)
    if not seen.cluster:
        terminal.note(UNKNOWN_CLUSTER)
    terminal.notice(
        f"the plan was saved in {printable(str(file))}: digest {plan.digest[:12]}, valid until {plan.expires_at:%Y-%m-%d %H:%M} UTC"
    )
    return None


def saved_plan(wiring: Wiring, seen: Preview, valid_for: timedelta) -> SavedPlan:
    """What was seen as a plan that is valid for a time from now on."""
    return SavedPlan(
        circumstances=circumstances(wiring, seen.cluster),
        created_at=seen.result.now,
        expires_at=wiring.clock.now() + valid_for,
        scope=plan_scope(wiring, seen),
        approval=approval_of_preview(wiring, seen),
        report=seen.report,
        policies={policy.metadata.name: digest(policy.model_dump(mode="json")) for policy in seen.request.policies.rules},
        waivers={violation.rule: violation.waived for violation in seen.report.judgement.waived},
    )


def plan_scope(wiring: Wiring, seen: Preview) -> PlanScope:
    """What was seen is about."""
    prune = seen.request.removing if isinstance(seen.request.removing, Prune) else None
    return PlanScope(
        seen.selection.namespaces,
        tuple(kind.name for kind in seen.selection.roots),
        seen.intent.focus,
        wiring.configuration.dynamo.allow_replace,
        prune.parent if prune is not None else None,
        prune is not None and prune.allow_empty,
        wiring.configuration.take_over,
    )
