"""`engine sync`: applies the plan, pass after pass, until every workload is settled."""

from collections.abc import Sequence
from pathlib import Path

import anyio
from msgspec import Struct
from msgspec.structs import replace

from engine.errors import LeaseLost, LeaseTaken
from engine.focus import EVERYTHING, Focus
from engine.guard import Limits
from engine.intent import Intent
from engine.plan import NO_JUDGEMENT, Judgement, Objection
from engine.runtime import session
from engine.runtime.clock import in_time
from engine.runtime.lease import DISABLED
from engine.runtime.observers import Observers
from engine.runtime.passes import Pass
from engine.runtime.provider import Provider
from engine.runtime.sync_report import Ending, SyncReport
from engine.runtime.verdicts import Verdicts
from enginectl.actions import requirements
from enginectl.actions.announcement import announce, write_remarks
from enginectl.actions.approved import foreign_circumstances, refuse
from enginectl.actions.consent import Consent, arrange
from enginectl.actions.diff import Saving, diff
from enginectl.actions.gates import Gate, policy_gates, refused
from enginectl.actions.planning import first_pass_of, report_errors, report_of_pass, write_notices
from enginectl.actions.preview import PreviewRequest, preview_of
from enginectl.actions.reporting import Outputs
from enginectl.base import terminal
from enginectl.base.exit_codes import Exit
from enginectl.base.options import OutputFormat
from enginectl.input.admission import AdmittedRoots, admit_against
from enginectl.input.plan_policies import NO_POLICIES, Policies
from enginectl.input.removals import RemovalScope, Removing, found_by
from enginectl.input.roots import Roots, select_for
from enginectl.input.saved_plans import selection_of
from enginectl.input.targets import require_matches
from enginectl.output.progress import show_progress
from enginectl.output.sync_report import change_lines, changes, error_texts, sync_document, sync_lines
from enginectl.wiring.cluster import DEFAULT_LIMITS, LIVE, engine_of, with_events
from enginectl.wiring.configuration import Wiring, default_namespace
from enginectl.wiring.connection import connect
from enginectl.wiring.leases import lease_of, purpose_of, renewing
from enginectl.wiring.scope import Selection
from enginectl.wiring.tracing import traced
from providers.read_only import ReadOnlyProvider
from resources.ports.configuration import Configuration
from resources.preview.pod_patterns import with_patterns
from resources.preview.shown import gang_notices

CODES = {
    Ending.INTERRUPTED: Exit.INTERRUPTED,
    Ending.FAILED: Exit.FAILED,
    Ending.DENIED: Exit.DENIED,
    Ending.UNAPPROVED: Exit.STALE,
    Ending.STUCK: Exit.STUCK,
    Ending.INCOMPLETE: Exit.INCOMPLETE,
    Ending.TIMED_OUT: Exit.UNSETTLED,
    Ending.DONE: Exit.DONE,
}


class Patience(Struct, frozen=True):
    """Whether to wait until every workload is settled, and for how many seconds at most."""

    wait: bool = True
    seconds: float = 300.0
    """From the beginning of the command to its end, whatever it waits for."""
    lock_timeout: float | None = None
    """Seconds to wait for another holder of the lease; None: see `session.sync`."""


async def sync(
    wiring: Wiring,
    roots: Roots,
    format: OutputFormat,
    stop: anyio.CancelScope,
    *,
    focus: Focus = EVERYTHING,
    limits: Limits = DEFAULT_LIMITS,
    patience: Patience = Patience(),  # noqa: B008
    policies: Policies = NO_POLICIES,
    gates: Sequence[Gate] = (),
    consent: Consent = Consent(),  # noqa: B008
    removing: Removing | None = None,
    command: str = "sync",
    files: Sequence[Path] = (),
    began: float | None = None,
    quiet: bool = False,
    assume_nodes: bool = False,
) -> Exit:
    """Sync the workloads in focus and remove what `removing` finds, as the holder of the lease wherever it writes.

    Before it writes, it tells what a preview shows besides the plan; at the end it writes the result, and returns the exit code.

    `files`: where the roots were read from. `began`: when the command began, on the monotonic clock; None: now. `quiet`: write only what
    was changed and what is wrong. `policies` and `gates` judge, before anything is written, what the sync would do; then people consent to
    it, and only what they have seen is done. `assume_nodes`: see `PreviewRequest`. Cancelling `stop` lets calls under way finish. Raises
    `InputError` if a manifest is rejected, before anything is written, and `LeaseTaken` and `TimedOut` if that is how it ends before its
    first pass.
    """
    clock = wiring.clock
    give_up_at = (clock.monotonic() if began is None else began) + patience.seconds
    plan = consent.plan
    selection = selection_of(plan) if plan is not None else select_for(wiring, roots, (default_namespace(wiring),), focus)
    arrangement = arrange(wiring, consent, format, lambda: stop.cancel_called, quiet=quiet)
    all_gates = (*policy_gates(policies, format, quiet=quiet), *gates, *arrangement.gates)
    judgement, ledger, verdicts, was_previewed = NO_JUDGEMENT, None, Verdicts(), False
    writes_remarks = not (quiet or wiring.options.log_format)  # A log has events only.
    async with connect(wiring) as (client, provider):
        if plan is not None and (deviations := await foreign_circumstances(wiring, plan, provider)):
            return refuse(deviations, clock.now(), format, quiet=quiet)
        read = selection
        scope, admitted = await in_time(
            clock, give_up_at, lambda: checked(wiring, roots, focus, removing, provider, read), "the cluster could be checked"
        )
        selection, removals = scope.selection, scope.removals
        if removals.objections:
            report_objections(removals.objections)
            return Exit.DENIED
        if removing is not None and not (removals.roots or roots.bodies or scope.record):
            terminal.note("there is nothing to remove")
            return Exit.DONE
        if all_gates:
            request = PreviewRequest(roots, limits=limits, policies=policies, focus=focus, removing=removing, assume_nodes=assume_nodes)
            seen = await in_time(
                clock,
                give_up_at,
                lambda: preview_of(
                    wiring, request, ReadOnlyProvider(provider), selection, admitted, removals, scope.record, verdicts=verdicts
                ),
                "the plan was made",
            )
            judgement, was_previewed = seen.report.judgement, True
            if writes_remarks and not (gates or arrangement.shows(seen)):
                write_remarks(wiring, seen.report)
            seen_at = clock.monotonic()
            if (code := await refused(all_gates, seen)) is not None:
                return code
            ledger = arrangement.ledger(seen)
            give_up_at += clock.monotonic() - seen_at  # The time in which people make up their minds is theirs.
        intent = Intent(admitted.roots.bodies, focus.including(removals.roots), removals.roots, scope.record, admitted.roots.memo)

        async def announce_first(current: Pass[Configuration]) -> None:
            nonlocal was_previewed
            was_previewed = True
            reading, left = engine_of(wiring, ReadOnlyProvider(provider), selection, limits), give_up_at - clock.monotonic()
            await announce(wiring, reading, first_pass_of(current, intent, limits), left, assume_nodes=assume_nodes)

        async with renewing(wiring, wiring.log) as renewal:
            lease = lease_of(wiring, client, purpose_of(command, files, selection, focus), renewal)
            if lease is None:
                terminal.warning(DISABLED)
            with show_progress(wiring, quiet=quiet) as progress, traced(clock, wiring.log, is_one_shot=True) as tracing:
                result = await session.sync(
                    with_events(engine_of(wiring, provider, selection, limits)),
                    lease,
                    intent,
                    wait=patience.wait,
                    patience=max(0.0, give_up_at - clock.monotonic()),
                    lock_timeout=patience.lock_timeout,
                    stop=stop,
                    progress=progress,
                    log=wiring.log if wiring.options.log_format else None,
                    ledger=ledger,
                    verdicts=verdicts,
                    observer=Observers(*tracing) if tracing else None,
                    before_writing=announce_first if writes_remarks and not was_previewed else None,
                )
    result = with_stuck(result, assume_nodes=assume_nodes)
    if result.last_pass.world.orphans:
        from resources.preview.orphans import orphan_notices

        write_notices(orphan_notices(result.last_pass.world))
    if writes_remarks and not was_previewed:
        write_notices(gang_notices(result.last_pass.world, result.last_pass.planned.plans, wiring.configuration))
    code = Exit.NOT_LEADER if isinstance(result.error, LeaseLost | LeaseTaken) else CODES[result.ending]
    if quiet:
        write_quietly(result, format, code, judgement)
    else:
        write(wiring, result, format, judgement)
    return code


def with_stuck(result: SyncReport[Configuration], *, assume_nodes: bool) -> SyncReport[Configuration]:
    """The report; if the time was over although nothing failed, with the roots that more time would not settle."""
    if result.ending is not Ending.TIMED_OUT or result.mid_pass:
        return result
    from resources.preview.forecasting import stuck_roots

    written = {root for each in changes(result) if (root := result.roots.get(each.operation.key)) is not None}
    return replace(result, stuck=stuck_roots(first_pass_of(result.last_pass), written, assume_nodes=assume_nodes))


async def checked(
    wiring: Wiring, roots: Roots, focus: Focus, removing: Removing | None, provider: Provider, selection: Selection
) -> tuple[RemovalScope, AdmittedRoots]:
    """What is removed, and the roots as the cluster would admit them. Raises `InputError` if it would not admit them or a workload does not
    exist, and `MissingRequirement`."""
    await requirements.require(wiring, provider, selection, roots.kinds)
    scope = await found_by(removing, wiring, provider, selection)
    await require_matches(wiring, provider, scope.selection, roots, focus)
    admitted = await admit_against(wiring, roots, provider, LIVE, scope.selection)
    admitted.require_all()
    return scope, admitted


async def dry_run(wiring: Wiring, request: PreviewRequest, outputs: Outputs, *, give_up_at: float, saving: Saving | None = None) -> Exit:
    """Write the plan, save it if asked, and apply nothing. Raises `TimedOut` when the monotonic clock reaches `give_up_at`."""
    return await in_time(wiring.clock, give_up_at, lambda: diff(wiring, request, outputs, saving=saving), "the plan was made")


def report_objections(objections: Sequence[Objection]) -> None:
    """Write to stderr what speaks against the whole command."""
    for objection in objections:
        terminal.error(f"denied by {objection.rule}: {objection.message}")


def write(wiring: Wiring, result: SyncReport[Configuration], format: OutputFormat, judgement: Judgement) -> None:
    """Write what was done and what is left. The JSON document has what policies said as well; people were told before."""
    verbose, remaining = wiring.options.verbose, with_patterns(report_of_pass(result.last_pass))
    if format is OutputFormat.JSON:
        terminal.print_json(sync_document(result, replace(remaining, judgement=judgement)))
    else:
        terminal.print_lines(sync_lines(result, remaining, verbose=verbose))
    if verbose and not wiring.options.log_format:
        report_errors(result.plans, verbose=True)


def write_quietly(result: SyncReport[Configuration], format: OutputFormat, code: Exit, judgement: Judgement) -> None:
    """Write what was changed to stdout, and what is wrong to stderr; nothing at all if nothing was changed and nothing is wrong."""
    if format is OutputFormat.TEXT:
        terminal.print_lines(change_lines(result))
    elif code is not Exit.DONE or any(changes(result)):
        terminal.print_json(sync_document(result, replace(with_patterns(report_of_pass(result.last_pass)), judgement=judgement)))
    for message in error_texts(result):
        terminal.error(message)
    terminal.incomplete(result.incomplete)
    report_errors(result.plans, verbose=False)
