"""`engine delete`: removes workloads with everything they have."""

from functools import partial
from pathlib import Path
from typing import Annotated, Final

import typer

from enginectl.base import options as params
from enginectl.base.exit_codes import Exit
from enginectl.commands.completion import objects

EXAMPLES: Final = """
engine delete web --dry-run      # what would be deleted, in which order
engine delete dgd/chat --yes     # skip confirmation
engine delete -f web.yaml
"""


def delete(
    ctx: typer.Context,
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[KIND/]NAME", help="Workloads, e.g. web or dgd/chat. Repeatable.", show_default=False, autocompletion=objects
        ),
    ] = None,
    files: params.Files = None,
    enable_remote: params.EnableRemote = False,
    selector: Annotated[
        str, typer.Option("--selector", "-l", metavar="SELECTOR", help="Workloads with these labels, as for kubectl.", show_default=False)
    ] = "",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be deleted, and delete nothing.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Skip confirmation. Needed where there is no terminal.")] = False,
    ignore_not_found: Annotated[bool, typer.Option("--ignore-not-found", help="A workload that does not exist is no error.")] = False,
    wait: Annotated[bool, typer.Option("--wait/--no-wait", help="Wait until everything is gone, or only do what can be done now.")] = True,
    timeout: params.Timeout = "5m",
    policy: params.PolicyFiles = None,
    waive: params.Waivers = None,
    format: params.PlanFormat = params.ReportFormat.TEXT,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="Delete nothing: save what is shown as a plan for `sync --plan`.")
    ] = None,
    valid_for: params.ValidFor = "24h",
) -> Exit:
    """Delete workloads with everything they have, and wait until all of it is gone.

    First it shows what goes, in which order, and asks. Workloads with the annotation engine.grove.io/protect, and those that are parts of
    others, are refused; so is a deletion that a rule of --policy denies. With --out it only shows and saves: `sync --plan` deletes.

    Signs: + create, ~ patch, scale or status, - delete, ± replace, ⊘ release a finalizer, ? later, ! blocked, · pending.

    Exit codes: 0 done, 1 failed, not found or not confirmed, 3 denied, 5 incomplete, 6 lease taken, 7 preflight failed, 64 usage error.
    """
    from enginectl.actions.delete import delete as delete_and_wait
    from enginectl.actions.delete import preview_of_deletion, require_consent
    from enginectl.actions.diff import saving_to
    from enginectl.actions.reporting import Outputs
    from enginectl.actions.sync import SyncRequest
    from enginectl.actions.sync import dry_run as show_deletion
    from enginectl.base.exit_codes import UsageError
    from enginectl.base.runner import conclude
    from enginectl.input.deletion import deletion_of
    from enginectl.input.plan_policies import load_all
    from enginectl.wiring.configuration import wire
    from enginectl.wiring.published_configuration import run_reading, run_writing

    seconds = params.parse_seconds(timeout, "--timeout")
    if out is not None and yes:
        raise UsageError("--out saves the deletion and deletes nothing: it excludes --yes")
    saving = saving_to(out, valid_for)
    dry_run = dry_run or saving is not None
    if format not in (params.ReportFormat.TEXT, params.ReportFormat.JSON) and not dry_run:
        raise UsageError(f"-o {format} shows a plan: it needs --dry-run")
    if not dry_run:
        require_consent(format, is_confirmed=yes)
    policies = load_all(policy or (), waive or (), remote=enable_remote)
    wiring = wire(params.options(ctx))
    give_up_at = wiring.clock.monotonic() + seconds
    deletion = deletion_of(wiring, names or (), files or (), selector, ignore_missing=ignore_not_found, remote=enable_remote)
    preview = preview_of_deletion(deletion, policies)
    if dry_run:
        show = partial(show_deletion, request=preview, outputs=Outputs(format), give_up_at=give_up_at, saving=saving)
        code = run_reading(wiring, show, give_up_at=give_up_at)
    else:
        request = SyncRequest(preview, give_up_at, wait, format=params.OutputFormat(format))
        code = run_writing(wiring, partial(delete_and_wait, request=request, is_confirmed=yes), give_up_at=give_up_at)
    return conclude(code if code is not Exit.UNSETTLED else Exit.FAILED, format)
