"""Planning: one pass for commands that only read, with notes about what the cluster lacks, and the report of a pass."""

from collections.abc import Collection, Iterable

from engine.intent import NOTHING, Intent
from engine.plan import Plan
from engine.report.model import Report, compose
from engine.runtime.passes import Engine, Pass
from engine.runtime.preview import preview as plan_once
from enginectl.actions import requirements
from enginectl.actions.domain_sharing import with_sharing_notes
from enginectl.actions.unread_secrets import NOTE, may_not_list_secrets, without_unread_secrets
from enginectl.base import terminal
from enginectl.base.runner import report_internal_error
from enginectl.wiring.scope import part_of
from resources.ports.configuration import Configuration


async def plan_with_notes(engine: Engine, intent: Intent = NOTHING) -> Pass:
    """One pass over the cluster with this intent. Kinds that the cluster does not serve are named on stderr.

    Secrets that the user may not list are left out, with a note.
    """
    return without_unread_secrets(await plan_of_all(engine, intent))


async def plan_of_all(engine: Engine, intent: Intent) -> Pass:
    """The same, with what waits for Secrets that the user may not list."""
    result = await plan_once(engine, intent)
    if may_not_list_secrets(result.world.incomplete):
        terminal.note(NOTE)
    if note := await missing_kinds(engine, result.world.unserved, {manifest["kind"] for manifest in intent.manifests}):
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


def report_of(result: Pass) -> Report:
    """The report of a pass."""
    planned = result.planned
    return compose(planned.plans, part_of, objections=planned.objections, incomplete=result.world.incomplete, others=planned.others)


def report_with_notes(result: Pass, configuration: Configuration) -> Report:
    """The report of a pass with the notes that need no further reads of the cluster."""
    return report_of(with_sharing_notes(result, configuration))


def report_errors(plans: Iterable[Plan], *, verbose: bool) -> bool:
    """Write the internal errors of the engine while planning to stderr, with `verbose` their tracebacks. Returns whether there are any."""
    errors = [(plan.root, plan.error) for plan in plans if plan.error is not None]
    for root, error in errors:
        report_internal_error(error, verbose=verbose, about=str(root))
    return bool(errors)
