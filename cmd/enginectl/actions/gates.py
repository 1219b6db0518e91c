"""Gates: what decides, before a command writes anything, whether it may write; and the gate of the rules of `--policy`."""

from collections.abc import Awaitable, Callable, Sequence

from engine.report.text import judgement_lines, violation_text
from engine.runtime.sync_report import Ending, SyncReport
from enginectl.actions.preview import Preview
from enginectl.base import terminal
from enginectl.base.exit_codes import Exit
from enginectl.base.options import OutputFormat
from enginectl.input.plan_policies import Policies
from enginectl.output.sync_report import sync_document

Gate = Callable[[Preview], Awaitable[Exit | None]]
"""Judges a preview. Returns None if the command may go on; otherwise it writes why not, and returns the exit code."""


async def refused(gates: Sequence[Gate], seen: Preview) -> Exit | None:
    """The exit code of the first gate that refuses; None if none does."""
    for gate in gates:
        if (code := await gate(seen)) is not None:
            return code
    return None


def policy_gates(policies: Policies, format: OutputFormat, *, quiet: bool = False) -> tuple[Gate, ...]:
    """The gate of these policies; none if there are no policies."""

    async def gate(seen: Preview) -> Exit | None:
        if not seen.report.judgement.denied:
            _write_remarks(seen, format, quiet=quiet)
            return None
        _refuse(seen, format, quiet=quiet)
        return Exit.DENIED

    return (gate,) if policies.rules else ()


def _write_remarks(seen: Preview, format: OutputFormat, *, quiet: bool) -> None:
    """Write warnings, waivers and notes to stderr, where they are no part of the result."""
    if not quiet and format is OutputFormat.TEXT:
        for line in judgement_lines(seen.report.judgement, verbose=True):
            terminal.notice(line)


def _refuse(seen: Preview, format: OutputFormat, *, quiet: bool) -> None:
    """Write what denies the plan: to stderr with `quiet`, else to stdout."""
    if format is OutputFormat.JSON:
        nothing_done = SyncReport(seen.result, ())
        terminal.print_json({**sync_document(nothing_done, seen.report), "ending": str(Ending.DENIED)})
    elif not quiet:
        terminal.print_lines(judgement_lines(seen.report.judgement, verbose=True))
    if quiet:
        for violation in seen.report.judgement.denied:
            terminal.error(violation_text("denied by", violation))
