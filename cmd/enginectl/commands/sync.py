"""`engine sync`: applies the plan until every workload is settled."""

from contextlib import nullcontext
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
    import anyio

    from engine.errors import TimedOut
    from engine.guard import Limits
    from enginectl.actions.consent import Consent
    from enginectl.actions.preview import PreviewRequest
    from enginectl.actions.reporting import faults_reported, outputs_of
    from enginectl.actions.sync import Patience
    from enginectl.actions.sync import dry_run as show_plan
    from enginectl.actions.sync import sync as apply_until_settled
    from enginectl.base import terminal
    from enginectl.base.exit_codes import UsageError
    from enginectl.base.runner import conclude, leaves, run, run_cancellable
    from enginectl.input.plan_policies import load_all
    from enginectl.input.prune import PruneOptions, check_options, check_restrictions, pruning
    from enginectl.input.roots import load_roots
    from enginectl.input.saved_plans import load_plan, removing_of, roots_of
    from enginectl.input.targets import Words, focus_on
    from enginectl.wiring.configuration import Wiring, wire
    from enginectl.wiring.published_configuration import with_configuration

    outputs = outputs_of(format, reports or (), summary, title=title, link=link, max_bytes=max_bytes, values=show_values)
    if outputs.beside and not dry_run:
        raise UsageError(f"{outputs.beside} shows a plan: it needs --dry-run")
    if quiet and (dry_run or params.options(ctx).verbose):
        raise UsageError(f"--quiet and {'--dry-run' if dry_run else '--verbose'} exclude each other")
    shared = params.options(ctx)
    excluding: dict[str, object] = {"--filename": files, "--kustomize": kustomizations, "--target": targets}
    excluding |= {"--selector": selectors, "--exclude": excluded}
    excluding |= {"--prune": prune, "--dry-run": dry_run, "--allow-replace": allow_replace, "--take-over": take_over}
    excluding |= {"--validate": validate is not params.FieldValidation.STRICT}
    excluding |= {"--namespace": shared.namespace, "--all-namespaces": shared.all_namespaces}
    if plan is not None and (option := next((option for option, value in excluding.items() if value), "")):
        raise UsageError(f"--plan applies what was approved: it excludes {option}")
    pruned = PruneOptions(prune, applyset, allow_empty)
    check_options(pruned, [*(files or ()), *(kustomizations or ())])
    lock_seconds = params.parse_seconds(lock_timeout, "--lock-timeout", zero=True) if lock_timeout is not None else None
    patience, limits = Patience(wait, params.parse_seconds(timeout, "--timeout"), lock_seconds), Limits(max_deletes)
    policies = load_all(policy or (), waive or (), remote=enable_remote)
    with terminal.without_notes() if quiet else nullcontext():
        saved = load_plan(plan) if plan is not None else None
        # The manifests of a saved plan were judged when it was made.
        validation = params.FieldValidation.IGNORE if saved is not None else validate
        replaces = allow_replace or (saved is not None and saved.scope.allow_replace)
        takes_over = take_over or (saved is not None and saved.scope.take_over)
        wiring = wire(shared, allow_replace=replaces, take_over=takes_over, validation=validation)
        began = wiring.clock.monotonic()
        words = Words(targets or (), selectors or (), excluded or ())
        check_restrictions(pruned, words)
        with faults_reported(outputs):
            given = load_roots(
                wiring, files or (), remote=enable_remote, recursive=recursive, kustomizations=kustomizations or (), allow_empty=prune
            )
        chosen, focus = focus_on(given, words)
        roots, removing = pruning(wiring, pruned, chosen)
        if saved is not None and plan is not None:
            roots, focus = roots_of(saved, plan), saved.scope.focus
            removing = removing_of(saved, roots)
        paths = (*(files or ()), *(kustomizations or ()))

        give_up_at = began + patience.seconds

        async def work(stop: anyio.CancelScope) -> Exit:
            async def apply(known: Wiring) -> Exit:
                return await apply_until_settled(
                    known,
                    roots,
                    params.OutputFormat(format),
                    stop,
                    focus=focus,
                    limits=limits,
                    patience=patience,
                    consent=Consent(saved, yes),
                    policies=policies,
                    removing=removing,
                    files=paths,
                    began=began,
                    quiet=quiet,
                    assume_nodes=assume_nodes,
                )

            try:
                return await with_configuration(wiring, apply, writes=True, give_up_at=give_up_at)
            except (TimedOut, ExceptionGroup) as error:
                timeouts = list(leaves(error))
                if not (quiet and all(isinstance(each, TimedOut) for each in timeouts)):
                    raise
                terminal.error(str(timeouts[0]))
                return Exit.UNSETTLED

        if dry_run:
            request = PreviewRequest(roots, limits=limits, policies=policies, focus=focus, removing=removing, assume_nodes=assume_nodes)

            async def show(known: Wiring) -> Exit:
                return await show_plan(known, request, outputs, give_up_at=give_up_at)

            code = run_cancellable(lambda: with_configuration(wiring, show, give_up_at=give_up_at))
        else:
            code = run(work)
        # Only a job that runs again continues by itself: for everybody else a timeout is a failure.
        return conclude(code if quiet or code is not Exit.UNSETTLED else Exit.FAILED, format, quiet=quiet)
