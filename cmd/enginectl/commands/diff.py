"""`engine diff`: what the next sync would do."""

from pathlib import Path
from typing import Annotated, Final

import typer

from enginectl.base import options as params
from enginectl.base.exit_codes import Exit

EXAMPLES: Final = """
engine diff -f web.yaml                    # what applying the file would do
engine diff                                # what the next sync of the namespace would do
engine diff -f web.yaml --against empty    # without a cluster
engine diff -f web.yaml --out plan.json    # save it for engine sync --plan
"""


def diff(
    ctx: typer.Context,
    files: params.Files = None,
    recursive: params.Recursive = False,
    kustomizations: params.Kustomizations = None,
    enable_remote: params.EnableRemote = False,
    targets: params.Targets = None,
    selectors: params.Selectors = None,
    excluded: params.Excluded = None,
    base: Annotated[
        list[Path] | None,
        typer.Option("--base", metavar="FILE|DIR", help="Compare with these manifests, as if applied and settled. Repeatable."),
    ] = None,
    against: Annotated[
        str,
        typer.Option(metavar="live|empty|SNAPSHOT", help="What to compare with. Default: live, and empty with --base.", show_default=False),
    ] = "",
    validate: params.Validate = params.FieldValidation.STRICT,
    format: params.PlanFormat = params.ReportFormat.TEXT,
    allow_replace: params.AllowReplace = False,
    take_over: params.TakeOver = False,
    prune: params.Prune = False,
    applyset: params.ApplySetParent = "",
    allow_empty: params.AllowEmpty = False,
    only_next: Annotated[bool, typer.Option("--next", help="Only the next pass, without a forecast of what follows.")] = False,
    server_dry_run: Annotated[
        bool,
        typer.Option("--server-dry-run", help="Let the API server check what the next pass would write; needs the rights to write it."),
    ] = False,
    assume_nodes: params.AssumeNodes = False,
    policy: params.PolicyFiles = None,
    waive: params.Waivers = None,
    forecast_passes: params.ForecastPasses = None,
    reports: params.Reports = None,
    summary: params.Summary = None,
    title: params.Title = "",
    link: params.Link = "",
    max_bytes: params.MaxBytes = 65_000,
    show_values: params.ShowValues = False,
    out: Annotated[Path | None, typer.Option("--out", metavar="FILE", help="Save what is shown as a plan for `sync --plan`.")] = None,
    valid_for: params.ValidFor = "24h",
    detailed_exitcode: Annotated[bool, typer.Option("--detailed-exitcode", help="Exit with 2 if there are changes.")] = False,
) -> Exit:
    """Show what a sync would do, and why.

    First comes the next pass, in which every operation has a reason; then a forecast of what follows until everything is settled:
    stages, restarted pods, the fewest ready ones, totals; -v shows each operation of the next pass, and each stage. Nothing is written.
    Exits with 9 if it would not settle.
    With -f: as if these manifests were applied first, and only for their workloads; --target '*' shows all others of their namespaces
    as well. The names of pods that depend on a uid which does not exist yet end in ?????.
    With --prune: as if workloads that have left the manifests were removed then.
    With --policy: what is shown is denied (exit 3) if it violates a rule.
    With --out: what is shown is saved as a plan, with the manifests as they are. What is denied, faulty or incomplete is not saved.

    Signs: + create, ~ patch, scale or status, - delete, ± replace, ⊘ release a finalizer, ? later, ! blocked, · pending.
    """
    from enginectl.actions.diff import diff as write_diff
    from enginectl.actions.diff import saving_to
    from enginectl.actions.preview import PreviewRequest
    from enginectl.actions.reporting import faults_reported, outputs_of
    from enginectl.base.exit_codes import UsageError
    from enginectl.base.runner import conclude, run_cancellable
    from enginectl.input.plan_policies import load_all
    from enginectl.input.prune import PruneOptions, check_options, check_restrictions, pruning
    from enginectl.input.roots import ManifestSources, load_roots
    from enginectl.input.targets import Words, focus_on_change
    from enginectl.wiring.cluster import EMPTY, LIVE
    from enginectl.wiring.configuration import Wiring, wire

    outputs = outputs_of(format, reports or (), summary, title=title, link=link, max_bytes=max_bytes, values=show_values)
    if policy and only_next:
        raise UsageError("--policy judges what follows as well: it excludes --next")
    sources = ManifestSources(files or (), kustomizations or (), recursive, enable_remote)
    compared_with = ManifestSources(base or (), recursive=recursive, remote=enable_remote)
    pruned = PruneOptions(prune, applyset, allow_empty)
    check_options(pruned, sources.paths, against=against, has_base=bool(base))
    policies = load_all(policy or (), waive or (), remote=enable_remote)
    wiring = wire(params.options(ctx), allow_replace=allow_replace, take_over=take_over, validation=validate)
    if server_dry_run and (base or against not in ("", LIVE)):
        raise UsageError("--server-dry-run asks the cluster: it excludes --base and --against")
    against = against or (EMPTY if base else LIVE)
    if out is not None and (against != LIVE or base or only_next):
        other = "--next" if only_next else "--base" if base else "--against"
        raise UsageError(f"--out saves what a sync of the cluster would do: it excludes {other}")
    saving = saving_to(out, valid_for)
    words = Words(targets or (), selectors or (), excluded or ())
    check_restrictions(pruned, words)
    with faults_reported(outputs):
        before = load_roots(wiring, compared_with, against=against, allow_empty=True)
        after = load_roots(wiring, sources, against=against, allow_empty=prune or bool(base))
    chosen, compared, focus = focus_on_change(after, before, words)
    base_roots = compared if base else None
    roots, removing = pruning(wiring, pruned, chosen, base_roots)
    request = PreviewRequest(
        roots,
        against,
        only_next,
        server_dry_run=server_dry_run,
        base=base_roots,
        policies=policies,
        focus=focus,
        removing=removing,
        forecast_passes=forecast_passes,
        assume_nodes=assume_nodes,
    )

    async def work(known: Wiring) -> Exit:
        return await write_diff(known, request, outputs, detailed=detailed_exitcode, saving=saving)

    if base or against != LIVE:
        return conclude(run_cancellable(lambda: work(wiring)), format)
    from enginectl.wiring.published_configuration import run_reading

    return conclude(run_reading(wiring, work), format)
