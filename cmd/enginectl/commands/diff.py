"""`engine diff`: what the next sync would do."""

from typing import Annotated

import typer

from enginectl.base.exit_codes import Exit
from enginectl.base.options import (
    AllowEmpty,
    AllowReplace,
    ApplySetParent,
    Excluded,
    Files,
    Kustomizations,
    PlanFormat,
    Prune,
    Recursive,
    ReportFormat,
    Selectors,
    Targets,
    options,
)


def diff(
    ctx: typer.Context,
    files: Files = None,
    recursive: Recursive = False,
    kustomizations: Kustomizations = None,
    targets: Targets = None,
    selectors: Selectors = None,
    excluded: Excluded = None,
    against: Annotated[str, typer.Option(metavar="live|empty|SNAPSHOT", help="What to compare with.")] = "live",
    format: PlanFormat = ReportFormat.TEXT,
    allow_replace: AllowReplace = False,
    prune: Prune = False,
    applyset: ApplySetParent = "",
    allow_empty: AllowEmpty = False,
    only_next: Annotated[bool, typer.Option("--next", help="Only the next pass, without a forecast of what follows.")] = False,
    detailed_exitcode: Annotated[bool, typer.Option("--detailed-exitcode", help="Exit with 2 if there are changes.")] = False,
) -> Exit:
    """Show what a sync would do, and why.

    First comes the next pass, in which every operation has a reason; then a forecast of what follows until everything is settled:
    stages, restarted pods, the fewest ready ones, totals. Nothing is written.
    With -f: as if these manifests were applied first, and only for their workloads; --target '*' shows all others of their namespaces
    as well. The pods of a workload that does not exist yet get names computed from its namespace and name instead of its uid.
    With --prune: as if workloads that have left the manifests were removed then.
    """
    from enginectl.actions.look import Subject
    from enginectl.actions.preview import preview
    from enginectl.base.runner import conclude, run_cancellable
    from enginectl.input.applysets import PruneOptions, check_options, check_restrictions, pruning
    from enginectl.input.roots import load_roots
    from enginectl.input.targets import Words, focus_on
    from enginectl.wiring.configuration import wire

    pruned = PruneOptions(prune, applyset, allow_empty)
    check_options(pruned, [*(files or ()), *(kustomizations or ())], against)
    wiring = wire(options(ctx), allow_replace=allow_replace)
    words = Words(targets or (), selectors or (), excluded or ())
    check_restrictions(pruned, words)
    given = load_roots(wiring, files or (), against=against, recursive=recursive, kustomizations=kustomizations or (), allow_empty=prune)
    chosen, focus = focus_on(given, words)
    roots, removing = pruning(wiring, pruned, chosen)
    subject = Subject(roots, against, only_next, focus=focus, removing=removing)
    return conclude(run_cancellable(lambda: preview(wiring, subject, format, detailed=detailed_exitcode)), format)
