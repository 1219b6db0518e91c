"""`engine sync`: applies the plan, pass after pass, until every workload is settled."""

from collections.abc import Callable
from pathlib import Path

import anyio
from msgspec import Struct, field
from msgspec.structs import replace

from engine.approval.ledger import Ledger
from engine.errors import LeaseLost, LeaseTaken
from engine.ids import ResourceId
from engine.observed import Live, World
from engine.plan import NO_JUDGEMENT, Judgement
from engine.runtime import session
from engine.runtime.clock import in_time
from engine.runtime.lease import DISABLED
from engine.runtime.observers import Observers
from engine.runtime.passes import Pass
from engine.runtime.provider import Client, Provider
from engine.runtime.sync_report import Ending, SyncReport
from engine.runtime.verdicts import Verdicts
from engine.world import as_listed
from enginectl.actions import requirements
from enginectl.actions.announcement import Announcement
from enginectl.actions.approved import foreign_circumstances, refuse
from enginectl.actions.consent import Consent, arrange
from enginectl.actions.diff import Saving, diff
from enginectl.actions.gates import Gate, policy_gates, refused
from enginectl.actions.planning import first_pass_of, report_errors, report_of_pass, write_notices
from enginectl.actions.preview import Preview, PreviewRequest, intent_of, preview_of
from enginectl.actions.reporting import Outputs
from enginectl.base import terminal
from enginectl.base.exit_codes import Exit
from enginectl.base.options import OutputFormat
from enginectl.input.admission import AdmittedRoots, admit_against
from enginectl.input.removals import RemovalScope, found_by
from enginectl.input.roots import select_for
from enginectl.input.saved_plans import selection_of
from enginectl.input.targets import note_missing_namespace, require_matches
from enginectl.output.progress import show_progress
from enginectl.output.sync_report import change_lines, changes, error_texts, sync_document, sync_lines
from enginectl.wiring.cluster import LIVE, engine_of, with_events
from enginectl.wiring.configuration import Wiring, default_namespace
from enginectl.wiring.connection import connect
from enginectl.wiring.leases import lease_of, purpose_of, renewing
from enginectl.wiring.tracing import traced
from providers.read_only import ReadOnlyProvider
from resources.ports.configuration import Configuration
from resources.preview.facts import FirstPass
from resources.preview.pod_patterns import with_patterns

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


class SyncRequest(Struct, frozen=True, eq=False):
    """What a sync applies and removes, how long it may take, how users agree to it, and how it reports."""

    preview: PreviewRequest
    """The manifests, removals, workloads in focus, limits and policies, as a preview of the sync takes them."""
    give_up_at: float
    """When it ends, on the monotonic clock, whatever it waits for."""
    wait: bool = True
    """Whether to wait until every workload is settled."""
    lock_timeout: float | None = None
    """Seconds to wait for another holder of the lease; None: see `session.sync`."""
    consent: Consent = Consent()
    """How users agree, after the policies and `gates` have judged; then only what they have seen is done."""
    gates: tuple[Gate, ...] = ()
    command: str = "sync"
    """What the lease says its holder does."""
    files: tuple[Path, ...] = ()
    """Where the manifests were read from."""
    format: OutputFormat = OutputFormat.TEXT
    quiet: bool = False
    """Whether to write only what was changed and what is wrong."""


class CheckedCluster(Struct, frozen=True, eq=False):
    """A cluster that meets the requirements of a sync, with what the sync removes and applies there."""

    provider: Provider
    scope: RemovalScope
    admitted: AdmittedRoots


class Agreement(Struct, frozen=True, eq=False):
    """What was judged and agreed to before the first write."""

    give_up_at: float
    """When the sync ends: the time that users take to answer is not counted."""
    judgement: Judgement = NO_JUDGEMENT
    ledger: Ledger | None = None
    """Limits the sync to what was agreed to."""
    verdicts: Verdicts = field(default_factory=Verdicts)
    """What the server has said of new templates."""
    first: FirstPass | None = None
    """The pass of the preview that was agreed to; None: there was no preview."""


async def sync(wiring: Wiring, stop: anyio.CancelScope, request: SyncRequest) -> Exit:
    """Sync the workloads in focus and remove what is to be removed, as the holder of the lease wherever it writes.

    Before the first write, stderr gets what a preview shows besides the plan. At the end it writes the result, and returns the exit code.

    Cancelling `stop` lets calls under way finish. Raises `InputError` if a manifest is rejected, before anything is written, and
    `LeaseTaken` and `TimedOut` if that is how it ends before its first pass.
    """
    announcement = Announcement(wiring, is_due=not (request.quiet or wiring.options.log_format))  # A log has events only.
    async with connect(wiring) as (client, provider):
        checked = await checked_cluster(wiring, request, provider)
        if isinstance(checked, Exit):
            return checked
        agreement = await agreed(wiring, request, checked, announcement, lambda: stop.cancel_called)
        if isinstance(agreement, Exit):
            return agreement
        applied = await apply(wiring, request, client, checked, agreement, announcement, stop)
        result = await with_stuck(wiring, applied, checked.provider, assume_nodes=request.preview.assume_nodes)
        await note_missing_namespace(result.last_pass.world, wiring, checked.provider)
    write_orphans(result.last_pass.world)
    announcement.of_last_pass(result.last_pass)
    return write(wiring, request, result, agreement.judgement)


async def checked_cluster(wiring: Wiring, request: SyncRequest, provider: Provider) -> CheckedCluster | Exit:
    """The cluster with what the sync removes and applies; the exit code, after a message, if there is nothing that it may do.

    Raises `InputError` if a manifest is rejected or a workload does not exist, `MissingRequirement`, and `TimedOut`.
    """
    clock, plan = wiring.clock, request.consent.plan
    if plan is not None and (deviations := await foreign_circumstances(wiring, plan, provider)):
        return refuse(deviations, clock.now(), request.format, quiet=request.quiet)
    checked = await in_time(clock, request.give_up_at, lambda: check(wiring, request, provider), "the cluster could be checked")
    removals = checked.scope.removals
    for objection in removals.objections:
        terminal.error(f"denied by {objection.rule}: {objection.message}")
    if removals.objections:
        return Exit.DENIED
    if request.preview.removing is not None and not (removals.roots or request.preview.roots.bodies or checked.scope.record):
        terminal.note("there is nothing to remove")
        return Exit.DONE
    return checked


async def check(wiring: Wiring, request: SyncRequest, provider: Provider) -> CheckedCluster:
    """What is removed, and the roots as the cluster would admit them. Raises `InputError` if it would not admit them or a workload does not
    exist, and `MissingRequirement`."""
    roots, focus, plan = request.preview.roots, request.preview.focus, request.consent.plan
    selection = selection_of(plan) if plan is not None else select_for(wiring, roots, (default_namespace(wiring),), focus)
    await requirements.require(wiring, provider, selection, roots.kinds)
    scope = await found_by(request.preview.removing, wiring, provider, selection)
    await require_matches(wiring, provider, scope.selection, roots, focus)
    admitted = await admit_against(wiring, roots, provider, LIVE, scope.selection)
    admitted.require_all()
    return CheckedCluster(provider, scope, admitted)


async def agreed(
    wiring: Wiring, request: SyncRequest, checked: CheckedCluster, announcement: Announcement, is_cancelled: Callable[[], bool]
) -> Agreement | Exit:
    """What policies, gates and users say of a preview, if any of them judges it; the exit code if they refuse. Raises `TimedOut`."""
    clock, verdicts = wiring.clock, Verdicts()
    arrangement = arrange(wiring, request.consent, request.format, is_cancelled, quiet=request.quiet)
    gates = (*policy_gates(request.preview.policies, request.format, quiet=request.quiet), *request.gates, *arrangement.gates)
    if not gates:
        return Agreement(request.give_up_at)

    async def previewed() -> Preview:
        reader = ReadOnlyProvider(checked.provider)
        return await preview_of(wiring, request.preview, reader, checked.scope, checked.admitted, verdicts=verdicts)

    seen = await in_time(clock, request.give_up_at, previewed, "the plan was made")
    announcement.of_preview(seen, is_shown=bool(request.gates) or arrangement.shows(seen))
    asked_at = clock.monotonic()
    if (code := await refused(gates, seen)) is not None:
        return code
    ledger = arrangement.ledger(seen)
    return Agreement(request.give_up_at + clock.monotonic() - asked_at, seen.report.judgement, ledger, verdicts, seen.first)


async def apply(
    wiring: Wiring,
    request: SyncRequest,
    client: Client,
    checked: CheckedCluster,
    agreement: Agreement,
    announcement: Announcement,
    stop: anyio.CancelScope,
) -> SyncReport[Configuration]:
    """Make passes as the holder of the lease, and show their progress. Returns what was done and what is left."""
    clock, limits, selection = wiring.clock, request.preview.limits, checked.scope.selection
    intent = intent_of(request.preview, checked.scope, checked.admitted)
    if (first := agreement.first) is not None:
        intent = replace(intent, memo=first.intent.memo, world=as_listed(first.world))

    async def announce_first(current: Pass[Configuration]) -> None:
        engine, left = engine_of(wiring, ReadOnlyProvider(checked.provider), selection, limits), agreement.give_up_at - clock.monotonic()
        await announcement.of_first_pass(engine, first_pass_of(current, intent, limits), left, assume_nodes=request.preview.assume_nodes)

    async with renewing(wiring, wiring.log) as renewal:
        lease = lease_of(wiring, client, purpose_of(request.command, request.files, selection, request.preview.focus), renewal)
        if lease is None:
            terminal.warning(DISABLED)
        with show_progress(wiring, quiet=request.quiet) as progress, traced(clock, wiring.log, is_one_shot=True) as tracing:
            return await session.sync(
                with_events(engine_of(wiring, checked.provider, selection, limits)),
                lease,
                intent,
                wait=request.wait,
                patience=max(0.0, agreement.give_up_at - clock.monotonic()),
                lock_timeout=request.lock_timeout,
                stop=stop,
                progress=progress,
                log=wiring.log if wiring.options.log_format else None,
                ledger=agreement.ledger,
                verdicts=agreement.verdicts,
                observer=Observers(*tracing) if tracing else None,
                before_writing=announce_first if announcement.is_due else None,
            )


async def with_stuck(
    wiring: Wiring, result: SyncReport[Configuration], provider: Provider, *, assume_nodes: bool
) -> SyncReport[Configuration]:
    """The report; if the time was over although nothing failed, with the roots that more time would not settle."""
    if result.ending is not Ending.TIMED_OUT or result.mid_pass:
        return result
    from enginectl.actions.component_reading import pods_of_components
    from enginectl.actions.facts import with_volume_claims
    from resources.cluster_model.component_pods import of_newest_template
    from resources.preview.stuck_roots import stuck_roots, unready_components

    last = await with_volume_claims(provider, first_pass_of(result.last_pass))
    written = {root for each in changes(result) if (root := result.roots.get(each.operation.key)) is not None}
    components = {each.live.id: each for each in unready_components(last, written)} if not assume_nodes else {}
    pods: dict[ResourceId, list[Live]] = {}
    read = await pods_of_components(provider, wiring.clock, components.values())
    last = replace(last, component_pods={id: tuple(of_newest_template(listed)) for id, listed in read.items()})
    for id, newest in last.component_pods.items():
        pods.setdefault(components[id].root, []).extend(newest)
    return replace(result, stuck=stuck_roots(last, written, assume_nodes=assume_nodes, component_pods=pods))


async def dry_run(wiring: Wiring, request: PreviewRequest, outputs: Outputs, *, give_up_at: float, saving: Saving | None = None) -> Exit:
    """Write the plan, save it if asked, and apply nothing. Raises `TimedOut` when the monotonic clock reaches `give_up_at`."""
    return await in_time(wiring.clock, give_up_at, lambda: diff(wiring, request, outputs, saving=saving), "the plan was made")


def write_orphans(world: World) -> None:
    """Note on stderr which objects belong to no workload."""
    if world.orphans:
        from resources.preview.orphans import orphan_notices

        write_notices(orphan_notices(world))


def write(wiring: Wiring, request: SyncRequest, result: SyncReport[Configuration], judgement: Judgement) -> Exit:
    """Write the result, and return the exit code."""
    code = Exit.NOT_LEADER if isinstance(result.error, LeaseLost | LeaseTaken) else CODES[result.ending]
    if request.quiet:
        write_quietly(result, request.format, code, judgement)
    else:
        write_result(wiring, result, request.format, judgement)
    return code


def write_result(wiring: Wiring, result: SyncReport[Configuration], format: OutputFormat, judgement: Judgement) -> None:
    """Write what was done and what is left. The JSON document has what policies said as well; in text that was written before."""
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
