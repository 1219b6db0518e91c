"""`engine sync`: applies the plan until every workload is settled."""

from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Annotated, Final

import typer

from enginectl.base import options as params
from enginectl.base.exit_codes import Exit

EXAMPLES: Final = """
engine sync -f web.yaml              # apply the file, and wait until it is settled
engine sync -f web.yaml --dry-run    # show the plan, and write nothing
engine sync --plan plan.json         # apply what engine diff --out has saved
"""


def sync(
    ctx: typer.Context,
    files: params.Files = None,
    recursive: params.Recursive = False,
    kustomizations: params.Kustomizations = None,
    enable_remote: params.EnableRemote = False,
    targets: params.Targets = None,
    selectors: params.Selectors = None,
    excluded: params.Excluded = None,
    validate: params.Validate = params.FieldValidation.STRICT,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show the plan and write nothing.")] = False,
    wait: Annotated[
        bool, typer.Option("--wait/--no-wait", help="Wait until every workload is settled, or only do what can be done now.")
    ] = True,
    timeout: params.Timeout = "5m",
    lock_timeout: Annotated[
        str | None,
        typer.Option(
            metavar="DURATION",
            help="How long to wait for another holder of the lease; 0: not at all. Default: until that of a dead one expires (17s).",
            show_default=False,
        ),
    ] = None,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="Write one line for each change, nothing if there is none, and errors to stderr.")
    ] = False,
    max_deletes: Annotated[
        int | None,
        typer.Option(min=0, metavar="N", help="Allowed number of unintended deletes. Default: 10, or a tenth of all objects."),
    ] = None,
    assume_nodes: params.AssumeNodes = False,
    policy: params.PolicyFiles = None,
    waive: params.Waivers = None,
    allow_replace: params.AllowReplace = False,
    take_over: params.TakeOver = False,
    prune: params.Prune = False,
    applyset: params.ApplySetParent = "",
    allow_empty: params.AllowEmpty = False,
    plan: Annotated[
        Path | None,
        typer.Option("--plan", metavar="FILE", help="Apply a plan that was saved with --out, and nothing else."),
    ] = None,
    yes: params.Yes = False,
    format: params.PlanFormat = params.ReportFormat.TEXT,
    reports: params.Reports = None,
    summary: params.Summary = None,
    title: params.Title = "",
    link: params.Link = "",
    max_bytes: params.MaxBytes = 65_000,
    show_values: params.ShowValues = False,
) -> Exit:
    """Apply the plan until every workload is settled.

    Ends when there is nothing left to do or to wait for, or after --timeout; then it shows what is later, blocked or pending.
    With -f: apply these manifests first; it plans, writes and waits for their workloads only.
    With --prune: then remove the workloads of the same --applyset that are not among the manifests any more, and wait until they are gone.

    With --policy: the plan and its forecast are judged once, before the first write; if a rule denies them, nothing is written (exit 3).

    On a terminal it shows what it would do and asks, if anything is deleted, replaced or restarted; --yes skips that.
    With --plan: apply what was approved. If something has changed since, nothing is written (exit 4); what turns out later not to be
    in the plan is left, and the rest is done (exit 4).

    It holds the lease of all writers only while it writes; while it waits for pods, others may write.

    Signs: + create, ~ patch, scale or status, - delete, ± replace, ⊘ release a finalizer, ? later, ! blocked, · pending.

    Exit codes: 0 done, 1 failed, 3 denied, 4 not as approved, 5 incomplete, 6 lease taken, 7 preflight failed, 9 needs manual action,
    64 usage error. With --quiet, 8 instead of 1 if nothing has failed and the time is over.
    """
    from engine.guard import Limits
    from enginectl.actions.consent import Consent
    from enginectl.actions.preview import PreviewRequest
    from enginectl.actions.reporting import faults_reported, outputs_of
    from enginectl.actions.sync import SyncRequest
    from enginectl.actions.sync import dry_run as show_plan
    from enginectl.actions.sync import sync as apply_until_settled
    from enginectl.base import terminal
    from enginectl.base.exit_codes import UsageError
    from enginectl.base.runner import conclude
    from enginectl.input.plan_policies import load_all
    from enginectl.input.prune import PruneOptions, check_options, chosen_roots
    from enginectl.input.roots import ManifestSources
    from enginectl.input.saved_plans import approved_roots, load_plan, require_alone
    from enginectl.input.targets import Words
    from enginectl.wiring.configuration import wire
    from enginectl.wiring.published_configuration import run_reading, run_writing

    shared, is_lenient = params.options(ctx), validate is not params.FieldValidation.STRICT
    outputs = outputs_of(format, reports or (), summary, title=title, link=link, max_bytes=max_bytes, values=show_values)
    sources = ManifestSources(files or (), kustomizations or (), recursive, enable_remote)
    words, pruned = Words(targets or (), selectors or (), excluded or ()), PruneOptions(prune, applyset, allow_empty)
    if outputs.beside and not dry_run:
        raise UsageError(f"{outputs.beside} shows a plan: it needs --dry-run")
    if quiet and (dry_run or shared.verbose):
        raise UsageError(f"--quiet and {'--dry-run' if dry_run else '--verbose'} exclude each other")
    if plan is not None:
        require_alone(
            sources, words, shared, prune=prune, dry_run=dry_run, allow_replace=allow_replace, take_over=take_over, validate=is_lenient
        )
    check_options(pruned, sources.paths)
    lock_seconds = params.parse_seconds(lock_timeout, "--lock-timeout", zero=True) if lock_timeout is not None else None
    seconds = params.parse_seconds(timeout, "--timeout")
    policies = load_all(policy or (), waive or (), remote=enable_remote)

    with terminal.without_notes() if quiet else nullcontext():
        saved = load_plan(plan) if plan is not None else None
        wiring = wire(
            shared,
            allow_replace=allow_replace if saved is None else saved.scope.allow_replace,
            take_over=take_over if saved is None else saved.scope.take_over,
            # The manifests of a saved plan were judged when it was made.
            validation=validate if saved is None else params.FieldValidation.IGNORE,
        )
        give_up_at = wiring.clock.monotonic() + seconds
        if plan is None or saved is None:
            with faults_reported(outputs):
                roots, focus, removing = chosen_roots(wiring, sources, words, pruned)
        else:
            roots, focus, removing = approved_roots(saved, plan)
        preview = PreviewRequest(
            roots, limits=Limits(max_deletes), policies=policies, focus=focus, removing=removing, assume_nodes=assume_nodes
        )
        if dry_run:
            show = partial(show_plan, request=preview, outputs=outputs, give_up_at=give_up_at)
            code = run_reading(wiring, show, give_up_at=give_up_at)
        else:
            request = SyncRequest(
                preview,
                give_up_at,
                wait,
                lock_seconds,
                Consent(saved, yes),
                files=sources.paths,
                format=params.OutputFormat(format),
                quiet=quiet,
            )
            code = run_writing(wiring, partial(apply_until_settled, request=request), give_up_at=give_up_at, runs_again=quiet)
        # Only a job that runs again continues by itself: for everybody else a timeout is a failure.
        return conclude(code if quiet or code is not Exit.UNSETTLED else Exit.FAILED, format, quiet=quiet)
