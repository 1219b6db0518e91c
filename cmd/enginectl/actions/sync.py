"""`engine sync`: applies the plan, pass after pass, until every workload is settled."""

from dataclasses import dataclass

import anyio

from engine.errors import LeaseLost
from engine.guard import Limits
from engine.runtime import session
from engine.runtime.lease import DISABLED
from engine.runtime.session import Ending
from enginectl.actions import requirements
from enginectl.actions.preview import report_errors, report_of
from enginectl.base import terminal
from enginectl.base.exit_codes import Exit
from enginectl.base.options import OutputFormat
from enginectl.input.admission import admit_against
from enginectl.input.roots import Roots, select_for
from enginectl.output.progress import show_progress
from enginectl.output.sync_report import sync_document, sync_lines
from enginectl.wiring.cluster import DEFAULT_LIMITS, LIVE, connect, engine_of, lease_of
from enginectl.wiring.configuration import Wiring, default_namespace

CODES = {
    Ending.INTERRUPTED: Exit.INTERRUPTED,
    Ending.FAILED: Exit.FAILED,
    Ending.DENIED: Exit.DENIED,
    Ending.INCOMPLETE: Exit.INCOMPLETE,
    Ending.DONE: Exit.DONE,
}


@dataclass(frozen=True, slots=True)
class Patience:
    """Whether to wait until every workload is settled, and for how many seconds at most."""

    wait: bool = True
    seconds: float = 300.0


async def sync(
    wiring: Wiring,
    roots: Roots,
    format: OutputFormat,
    stop: anyio.CancelScope,
    *,
    limits: Limits = DEFAULT_LIMITS,
    patience: Patience = Patience(),
) -> Exit:
    """Sync as the holder of the lease, write the result, and return the exit code.

    Cancelling `stop` lets calls under way finish. Raises `InputError` if a manifest is rejected, before anything is written.
    """
    selection = select_for(wiring, roots, default=(default_namespace(wiring),))
    async with connect(wiring) as (client, provider):
        await requirements.require(wiring, provider, selection, roots.kinds)
        admitted = await admit_against(wiring, roots, provider, LIVE, selection)
        admitted.require_all()
        engine, lease = engine_of(wiring, provider, selection, limits), lease_of(wiring, client)
        if lease is None:
            terminal.notice(f"warning: {DISABLED}")
        with show_progress(wiring) as progress:
            result = await session.sync(
                engine,
                lease,
                admitted.roots.bodies,
                wait=patience.wait,
                patience=patience.seconds,
                stop=stop,
                progress=progress,
                log=wiring.log if wiring.options.log_format else None,
            )
    remaining = report_of(result.last_pass)
    if format is OutputFormat.JSON:
        terminal.print_json(sync_document(result, remaining))
    else:
        terminal.print_lines(sync_lines(result, remaining, verbose=wiring.options.verbose))
    if wiring.options.verbose and not wiring.options.log_format:
        report_errors(result.plans, verbose=True)
    return Exit.NOT_LEADER if isinstance(result.error, LeaseLost) else CODES[result.ending]
