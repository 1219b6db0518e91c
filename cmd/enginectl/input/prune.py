"""Prune: the options `--prune`, `--applyset` and `--allow-empty`, and what they make of the manifests."""

from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from engine.focus import ANY, Focus
from enginectl.base.exit_codes import UsageError
from enginectl.input.removals import Removing
from enginectl.input.roots import ManifestSources, Roots, load_roots
from enginectl.input.targets import Words, focus_on
from enginectl.wiring.cluster import LIVE
from enginectl.wiring.configuration import Wiring


class PruneOptions(Struct, frozen=True):
    """The options of pruning, as the user gave them."""

    prune: bool = False
    applyset: str = ""
    """The parent, as `[configmaps/|secrets/]NAME`."""
    allow_empty: bool = False


def check_options(options: PruneOptions, files: Sequence[Path], *, against: str = "", has_base: bool = False) -> None:
    """Raise `UsageError` if the options do not fit together."""
    if not options.prune:
        for name, given in (("--applyset", options.applyset), ("--allow-empty", options.allow_empty)):
            if given:
                raise UsageError(f"{name} is for --prune")
        return
    if has_base:
        if options.applyset or options.allow_empty:
            raise UsageError("with --base, --prune compares the files alone: leave out --applyset and --allow-empty")
        return
    if not options.applyset:
        raise UsageError("--prune needs --applyset [configmaps/|secrets/]NAME: the object that records what was applied together")
    if not files:
        raise UsageError("--prune needs -f: it removes what these files do not have any more")
    if against not in ("", LIVE):
        raise UsageError("--prune compares with the cluster: leave out --against")


def check_restrictions(options: PruneOptions, words: Words) -> None:
    """Raise `UsageError` if the manifests are restricted to some: the others would seem to have left the files."""
    if options.prune and (words.selectors or words.excluded or set(words.targets) - {ANY}):
        raise UsageError("--prune concerns all manifests: leave out --target, -l and --exclude")


def chosen_roots(wiring: Wiring, sources: ManifestSources, words: Words, options: PruneOptions) -> tuple[Roots, Focus, Removing | None]:
    """The manifests that a sync applies, the workloads in focus, and what finds the roots that it removes; None: it removes none.

    Raises `InputError` with every fault, and `UsageError`.
    """
    check_restrictions(options, words)
    chosen, focus = focus_on(load_roots(wiring, sources, allow_empty=options.prune), words)
    roots, removing = pruning(wiring, options, chosen)
    return roots, focus, removing


def pruning(wiring: Wiring, options: PruneOptions, roots: Roots, base: Roots | None = None) -> tuple[Roots, Removing | None]:
    """The roots, and what finds those that are to be removed; without --prune the roots as they are. See `members_and_removals`."""
    if not options.prune:
        return roots, None
    from enginectl.input.applysets import members_and_removals

    return members_and_removals(wiring, options.applyset, roots, base, allow_empty=options.allow_empty)
