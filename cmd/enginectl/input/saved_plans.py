"""Saved plans: files of `diff --out` and `delete --out`, checked as untrusted input, and what they say about roots and scope."""

from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from engine.approval.document import read
from engine.approval.saved_plan import SavedPlan
from engine.errors import InputError
from engine.focus import Focus
from engine.ids import ResourceId
from engine.intent import Removal, RootRemovals
from engine.report.printable import clipped, printable
from engine.runtime.provider import Provider
from enginectl.base.exit_codes import UsageError
from enginectl.base.files import read_bytes
from enginectl.base.options import Options
from enginectl.input.applysets import Prune
from enginectl.input.manifest_files import flatten
from enginectl.input.pod_findings import malformed
from enginectl.input.removals import RemovalScope, Removing, roots_in
from enginectl.input.roots import ManifestSources, Roots, select_roots
from enginectl.input.targets import Words
from enginectl.wiring.configuration import DEFAULT_NAMESPACE, Wiring
from enginectl.wiring.scope import ROOTS, Selection
from providers.documents import Document
from resources.base.applyset import PARENTS
from resources.blueprints.pruning import removal_objections

MAX_BYTES = 512 << 20
"""The largest saved plan that is read: one for ten thousand pods is smaller."""


def require_alone(sources: ManifestSources, words: Words, shared: Options, **others: bool) -> None:
    """Raise `UsageError` if an option says what a saved plan has decided. `others`: the name of an option, and whether it is given."""
    given: dict[str, object] = {"filename": sources.files, "kustomize": sources.kustomizations}
    given |= {"target": words.targets, "selector": words.selectors, "exclude": words.excluded}
    given |= {**others, "namespace": shared.namespace, "all_namespaces": shared.all_namespaces}
    for name, value in given.items():
        if value:
            raise UsageError(f"--plan applies what was approved: it excludes --{name.replace('_', '-')}")


def load_plan(file: Path) -> SavedPlan:
    """The plan in a file; `-` is standard input. Raises `InputError` if it is none, and `UsageError` if it cannot be read."""
    data = read_bytes(file, MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise InputError(f"{printable(str(file))}: more than {MAX_BYTES} bytes, the limit of a saved plan")
    try:
        return read(data)
    except InputError as error:
        raise InputError(f"{printable(str(file))}: {error}") from None


def approved_roots(plan: SavedPlan, file: Path) -> tuple[Roots, Focus, Removing | None]:
    """The manifests of a plan, checked like those of `-f`; the workloads in focus; what finds the roots that are removed, if any are.

    Raises `InputError` with every fault.
    """
    manifests = [manifest for body in plan.approval.manifests for manifest in flatten(Document(body, f"{file} (saved plan)", {}), body, ())]
    roots = select_roots(manifests, ROOTS, malformed, namespace=DEFAULT_NAMESPACE)
    replicas: dict[ResourceId, dict[str, int]] = {}
    for scaler in plan.approval.scalers:
        replicas.setdefault(scaler.root, {})[scaler.part] = scaler.asked
    roots = replace(roots, replicas=replicas)
    return roots, plan.scope.focus, removing_of(plan, roots)


def removing_of(plan: SavedPlan, roots: Roots) -> Removing | None:
    """What finds the roots that a plan removes; None if it is not about removals. `roots`: those of its manifests.

    The members of an ApplySet are found anew: where they are recorded may have changed. Raises `InputError` if its parent cannot be one.
    """
    if (parent := plan.scope.applyset) is not None:
        if (parent.group, parent.kind) not in {(kind.group, kind.name) for kind in PARENTS}:
            raise InputError(f"not a saved plan: {clipped(str(parent), 200)} cannot be the parent of an ApplySet")
        return Prune(parent, roots, plan.scope.allow_empty)
    return ApprovedRemovals(plan.approval.removals) if plan.approval.removals else None


def selection_of(plan: SavedPlan) -> Selection:
    """What was read for the plan, and is read when it is applied."""
    return Selection(plan.scope.namespaces, tuple(kind for kind in ROOTS if kind.name in plan.scope.kinds))


class ApprovedRemovals(Struct, frozen=True, eq=False):
    """The `Removing` of a saved plan: what it removes, whether or not it still exists."""

    roots: Mapping[ResourceId, Removal]

    async def find(self, wiring: Wiring, provider: Provider, selection: Selection) -> RemovalScope:
        """The roots of the plan, with the objections to removing them now."""
        existing = (await roots_in(wiring, provider, selection, {id.kind for id in self.roots})).roots
        same = [live for live in existing if live.id in self.roots and live.uid == self.roots[live.id].uid]
        return RemovalScope(selection, RootRemovals(self.roots, tuple(removal_objections(same))))
