"""Consent: how users agree to what a command does before it writes anything: by a saved plan, at a question, or with --yes."""

from collections.abc import Callable

from msgspec import Struct

from engine.approval.ledger import Ledger
from engine.approval.saved_plan import SavedPlan
from engine.report.model import without_notes
from engine.report.text import text
from engine.verb import Verb
from enginectl.actions.approved import ledger_of, staleness_gate
from enginectl.actions.gates import Gate
from enginectl.actions.preview import Preview
from enginectl.actions.saved_preview import approval_of_preview, with_whole_forecast
from enginectl.base import terminal
from enginectl.base.exit_codes import Exit
from enginectl.base.options import OutputFormat
from enginectl.base.terminal import ask, can_ask
from enginectl.wiring.configuration import Wiring
from resources.preview.pod_patterns import with_patterns

UNBOUND = "the forecast has no end: what is done after its last pass was not shown"
ASKED_ABOUT = (Verb.DELETE, Verb.REPLACE)
"""The verbs that need a yes. A restart of a pod is a delete, too."""


class Consent(Struct, frozen=True, eq=False):
    """How users agree."""

    plan: SavedPlan | None = None
    """The plan that was approved."""
    yes: bool = False
    """Whether --yes was given: whatever is done, no question is asked."""


class Arrangement(Struct, frozen=True, eq=False):
    """What a consent means for one command."""

    gates: tuple[Gate, ...] = ()
    ledger: Callable[[Preview], Ledger | None] = lambda seen: None
    """Limits the command to what was agreed to, once the gates are passed."""
    shows: Callable[[Preview], bool] = lambda seen: False
    """Whether the gates write the plan."""


def arrange(
    wiring: Wiring, consent: Consent, format: OutputFormat, is_cancelled: Callable[[], bool], *, quiet: bool = False
) -> Arrangement:
    """The gates and the ledger of a command. Without a terminal, and where the output is for programs, no question is asked."""
    if (plan := consent.plan) is not None:
        return Arrangement((staleness_gate(plan, format, quiet=quiet),), lambda seen: ledger_of(plan.approval))
    if consent.yes:
        return Arrangement()
    if quiet or format is not OutputFormat.TEXT or not can_ask():
        return Arrangement()
    return Arrangement((question_gate(wiring, is_cancelled),), lambda seen: _ledger_of_answer(wiring, seen), removes)


def question_gate(wiring: Wiring, is_cancelled: Callable[[], bool]) -> Gate:
    """Shows what follows and asks whether to apply it, if anything is deleted, replaced or restarted."""

    async def gate(seen: Preview) -> Exit | None:
        if not removes(seen):
            return None
        for line in text(with_patterns(without_notes(seen.report, seen.intent.warned)), verbose=wiring.options.verbose):
            terminal.notice(line)
        return await answered(seen, is_cancelled)

    return gate


async def answered(seen: Preview, is_cancelled: Callable[[], bool]) -> Exit | None:
    """Ask whether to apply what was shown. None if the user agrees, otherwise the exit code."""
    if await ask(question_of(seen), is_cancelled):
        return None
    if is_cancelled():
        return Exit.INTERRUPTED
    terminal.error("not applied; nothing was written")
    return Exit.FAILED


def question_of(seen: Preview) -> str:
    """The question. It says how many workloads are deleted, whichever command removes them."""
    removed = set(seen.intent.removals)
    if not removed:
        return "Apply this?"
    workloads = "this workload" if len(removed) == 1 else f"these {len(removed)} workloads"
    others = any(root.steps for root in seen.report.roots if removed.isdisjoint((root.root, root.parent)))
    return f"Apply this, and delete {workloads}?" if others else f"Delete {workloads}?"


def removes(seen: Preview) -> bool:
    """Whether what follows deletes, replaces or restarts anything."""
    forecast = seen.report.forecast
    first = [step.operation for root in seen.report.roots for step in root.steps]
    return any(operation.verb in ASKED_ABOUT for operation in (*first, *(forecast.operations() if forecast else ())))


def _ledger_of_answer(wiring: Wiring, seen: Preview) -> Ledger | None:
    """Limits a sync to what was shown; None if nothing had to be asked, or if more follows than could be shown."""
    if not removes(seen):
        return None
    if seen.report.forecast is None or not seen.report.forecast.is_finished:
        terminal.warning(UNBOUND)
        return None
    return ledger_of(approval_of_preview(wiring, with_whole_forecast(seen)))
