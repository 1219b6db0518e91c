"""`engine delete`: removes workloads, and waits until they and everything they have are gone."""

import anyio
from msgspec.structs import replace

from engine.focus import Focus
from enginectl.actions.consent import Consent, answered
from enginectl.actions.diff import write_report
from enginectl.actions.gates import Gate
from enginectl.actions.preview import Preview, PreviewRequest
from enginectl.actions.sync import SyncRequest, sync
from enginectl.base.exit_codes import Exit, UsageError
from enginectl.base.options import OutputFormat, ReportFormat
from enginectl.base.terminal import can_ask
from enginectl.input.deletion import Deletion
from enginectl.input.plan_policies import Policies
from enginectl.wiring.configuration import Wiring

ASKED = Consent(yes=True)
"""`delete` asks, so `sync` does not. The user agrees to delete whole workloads, with objects that they get in the meantime."""
NOTHING_ELSE = Focus(frozenset())
"""The focus on what is deleted."""


async def delete(wiring: Wiring, stop: anyio.CancelScope, *, request: SyncRequest, is_confirmed: bool) -> Exit:
    """Show what would be deleted, ask unless `is_confirmed`, delete it, write the result, and return the exit code.

    What the policies deny is not asked about, and not deleted.

    Raises `InputError` and `UsageError` if what is named does not exist or is ambiguous, and what `sync` raises.
    """
    gates = (gate(wiring, stop, is_confirmed=is_confirmed),) if request.format is OutputFormat.TEXT else ()
    return await sync(wiring, stop, replace(request, gates=gates, consent=ASKED, command="delete"))


def preview_of_deletion(deletion: Deletion, policies: Policies) -> PreviewRequest:
    """What is previewed: the deletion alone."""
    return PreviewRequest(removing=deletion, focus=NOTHING_ELSE, policies=policies)


def require_consent(format: ReportFormat, *, is_confirmed: bool) -> None:
    """Raise `UsageError` if the deletion is not confirmed and no user can be asked."""
    if not is_confirmed and format is not ReportFormat.TEXT:
        raise UsageError("-o json asks no questions: confirm with --yes, or look first with --dry-run")
    if not is_confirmed and not can_ask():
        raise UsageError("there is no terminal to ask on: confirm with --yes, or look first with --dry-run")


def gate(wiring: Wiring, stop: anyio.CancelScope, *, is_confirmed: bool) -> Gate:
    """A gate that shows what would be deleted and asks whether it may be, unless that is confirmed already."""

    async def judge(seen: Preview) -> Exit | None:
        if not seen.intent.removals:
            return None
        write_report(wiring, seen.report, seen.result.now, ReportFormat.TEXT)
        return None if is_confirmed else await answered(seen, lambda: stop.cancel_called)

    return judge
