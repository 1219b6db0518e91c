"""`engine delete`: removes workloads, and waits until they and everything they have are gone."""

import anyio

from engine.focus import Focus
from enginectl.actions.consent import Consent
from enginectl.actions.gates import Gate
from enginectl.actions.look import Look, Subject
from enginectl.actions.preview import write_report
from enginectl.actions.reporting import Outputs
from enginectl.actions.sync import Patience, dry_run, sync
from enginectl.base.exit_codes import Exit
from enginectl.base.options import OutputFormat, ReportFormat
from enginectl.input.deletion import Deletion
from enginectl.input.plan_policies import Policies
from enginectl.input.roots import NO_ROOTS
from enginectl.wiring.configuration import Wiring

NOTHING_ELSE = Focus(frozenset())
"""The focus on what is deleted."""


async def delete(
    wiring: Wiring,
    deletion: Deletion,
    format: OutputFormat,
    stop: anyio.CancelScope,
    *,
    patience: Patience,
    policies: Policies,
    is_confirmed: bool,
    began: float,
) -> Exit:
    """Show what would be deleted, ask unless `is_confirmed`, delete it, write the result, and return the exit code.

    What the policies deny is not asked about, and not deleted.

    Raises `InputError` and `UsageError` if what is named does not exist or is ambiguous, and what `sync` raises.
    """
    gates = [shown(wiring)] if is_confirmed and format is OutputFormat.TEXT else []
    return await sync(
        wiring,
        NO_ROOTS,
        format,
        stop,
        focus=NOTHING_ELSE,
        patience=patience,
        policies=policies,
        gates=gates,
        consent=Consent(yes=is_confirmed, required=True),
        removing=deletion,
        command="delete",
        began=began,
    )


async def preview_deletion(wiring: Wiring, deletion: Deletion, format: ReportFormat, policies: Policies, *, give_up_at: float) -> Exit:
    """Show what would be deleted, and delete nothing."""
    subject = Subject(removing=deletion, focus=NOTHING_ELSE, policies=policies)
    return await dry_run(wiring, subject, Outputs(format), give_up_at=give_up_at)


def shown(wiring: Wiring) -> Gate:
    """A gate that shows what is deleted, and lets it pass: nobody is asked."""

    async def gate(seen: Look) -> Exit | None:
        write_report(wiring, seen.report, seen.result.now, ReportFormat.TEXT)
        return None

    return gate
