"""Planning: the first pass of commands that only read, and the report of plans."""

from collections.abc import Iterable

from msgspec.structs import replace

from engine.guard import Limits
from engine.intent import NOTHING, Intent
from engine.plan import Objection, Plan
from engine.report.model import Report
from engine.runtime.passes import Engine, Pass
from engine.runtime.passes import preview as plan_once
from engine.runtime.provider import RecordedProvider
from engine.runtime.verdicts import Verdicts
from enginectl.actions.facts import read_facts, with_component_requirements
from enginectl.base import terminal
from enginectl.base.runner import report_internal_error
from enginectl.wiring.cluster import DEFAULT_LIMITS
from resources.base.kinds import SECRET
from resources.ports.configuration import Configuration
from resources.preview.facts import FirstPass
from resources.preview.shown import Shown, general_notices, shown


async def first_pass(
    engine: Engine[Configuration], intent: Intent = NOTHING, objections: tuple[Objection, ...] = (), verdicts: Verdicts | None = None
) -> tuple[Pass[Configuration], FirstPass]:
    """The pass that a sync would make first, and the same as previews show it.

    `objections`: those to the command as a whole, besides what the guards say. `verdicts`: see `plan_once`.
    """
    current = await plan_once(engine, intent, verdicts)
    if objections:
        current = replace(current, planned=replace(current.planned, objections=(*current.planned.objections, *objections)))
    first = first_pass_of(current, intent, engine.limits)
    return current, replace(first, is_record=isinstance(engine.provider, RecordedProvider))


def first_pass_of(current: Pass[Configuration], intent: Intent = NOTHING, limits: Limits = DEFAULT_LIMITS) -> FirstPass:
    """A pass that was planned with this intent, as previews show it: Secrets that the user may not list are assumed."""
    read = replace(intent, memo=current.memo)
    first = FirstPass(current.now, current.world, current.planned, current.configuration, read, limits)
    if SECRET.key not in current.world.incomplete:
        return first
    from resources.preview.assumed_secrets import with_assumed_secrets  # Few users may not list Secrets.

    return with_assumed_secrets(first)


async def planned_pass(engine: Engine[Configuration]) -> Pass[Configuration]:
    """One pass for a command that shows what exists, with what `diff` shows of its plans. What the cluster lacks is named on stderr.

    The command itself names the gangs that no scheduler places.
    """
    current, notices = await pass_and_notices(engine)
    write_notices(notices)
    return current


async def pass_and_notices(engine: Engine[Configuration]) -> tuple[Pass[Configuration], tuple[str, ...]]:
    """The same pass, and what the cluster lacks."""
    current, first = await first_pass(engine)
    first = await with_component_requirements(engine, first)
    facts = await read_facts(engine, first)
    return shown_pass(current, shown(first, None, facts)), tuple(general_notices(first, first.world, facts))


def shown_pass(current: Pass[Configuration], seen: Shown) -> Pass[Configuration]:
    """The pass with the plans that are shown, and with what counts as not listed. Its objects are those that were observed."""
    return replace(current, planned=seen.planned, world=replace(current.world, incomplete=seen.incomplete))


def write_notices(notices: Iterable[str]) -> None:
    """Write what is assumed, and what is missing in the cluster or could not be read, to stderr."""
    for notice in notices:
        terminal.note(notice)


def report_of_pass(current: Pass[Configuration]) -> Report:
    """The report of the last pass of a session: what is left to do, without the remarks of a preview."""
    return Shown(current.planned, None, current.world.incomplete).report


def shown_of_pass(current: Pass[Configuration]) -> Shown:
    """What is shown of a pass that a loop has made. Nothing is assumed: it is what the loop planned with."""
    return shown(FirstPass(current.now, current.world, current.planned, current.configuration))


def report_errors(plans: Iterable[Plan], *, verbose: bool) -> bool:
    """Write the internal errors of the engine while planning to stderr, with `verbose` their tracebacks. Returns whether there are any."""
    errors = [(plan.root, plan.error) for plan in plans if plan.error is not None]
    for root, error in errors:
        report_internal_error(error, verbose=verbose, about=str(root))
    return bool(errors)
