"""ApplySets: `--prune --applyset NAME`: roots that have left the files of a command are removed."""

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from engine.ids import ResourceId
from engine.observed import Live
from engine.proposal import proposed_root
from engine.report.printable import clipped, printable
from engine.runtime.provider import Provider
from enginectl.base.exit_codes import UsageError
from enginectl.input.manifest_files import NAME
from enginectl.input.removals import RemovalScope, Removing, roots_in, widened
from enginectl.input.roots import Roots
from enginectl.wiring.configuration import Wiring, default_namespace
from enginectl.wiring.scope import Selection
from resources.base import applyset
from resources.base.applyset import recorded_extent
from resources.blueprints.pruning import Pruning, left_out_of_base, pruned, remaining_extent


def members_and_removals(
    wiring: Wiring, parent_name: str, roots: Roots, base: Roots | None = None, *, allow_empty: bool = False
) -> tuple[Roots, Removing]:
    """The roots as members of the ApplySet, and what finds the members that are to be removed.

    With a base there is no ApplySet: its roots are removed that are not among the others.
    """
    if base is not None:
        return roots, PruneBase(base, roots)
    parent = parent_of(parent_name, wiring.options.namespace or default_namespace(wiring))
    set_id = applyset.applyset_id(parent)
    members = replace(roots, bodies=tuple(applyset.with_membership(body, set_id) for body in roots.bodies))
    return members, Prune(parent, roots, allow_empty)


def parent_of(text: str, namespace: str) -> ResourceId:
    """The parent that `[configmaps/|secrets/]NAME` means. Raises `UsageError`."""
    word, _, name = text.rpartition("/")
    words = {spelling.lower(): kind for kind in applyset.PARENTS for spelling in (kind.name, kind.plural)}
    words |= dict.fromkeys(("", "cm"), applyset.PARENTS[0])
    kind = words.get(word.lower())
    if kind is None:
        raise UsageError(f"--applyset {printable(text)}: the parent of an ApplySet is one of configmaps/NAME and secrets/NAME")
    if not NAME.fullmatch(name) or len(name) > 253:
        raise UsageError(f"--applyset {clipped(text, 80)}: not a valid name: lowercase letters, digits, - and . only")
    return kind.id(namespace, name)


class Prune(Struct, frozen=True, eq=False):
    """The `Removing` of --prune."""

    parent: ResourceId
    roots: Roots
    """The roots in the files, as the user wrote them."""
    allow_empty: bool

    async def find(self, wiring: Wiring, provider: Provider, selection: Selection) -> RemovalScope:
        """The members of the ApplySet that are in none of the files."""
        existing = await provider.get(self.parent)
        recorded = recorded_extent(existing.body) if existing is not None else None
        kinds = {group_kind.partition(".")[0] for group_kind in (recorded or applyset.NOWHERE).group_kinds}
        namespaces = {self.parent.namespace, *(recorded or applyset.NOWHERE).namespaces, *self.roots.namespaces}
        managed = wiring.configuration.namespaces
        # The parent may be anywhere; its members may not.
        wide = widened(selection, namespaces - ({self.parent.namespace} - {*managed} if managed else set()), kinds)
        observed = (await roots_in(wiring, provider, wide, kinds | self.roots.kinds)).roots
        manifests = tuple((proposed_root(body).id, body) for body in self.roots.bodies)
        judged = Pruning(self.parent, existing, manifests, _within(observed, namespaces), self.allow_empty)
        return RemovalScope(wide, pruned(judged), applyset.record_of(self.parent, existing, remaining_extent(judged)))


class PruneBase(Struct, frozen=True, eq=False):
    """The `Removing` of --prune with a base: what is in the base only is removed."""

    base: Roots
    roots: Roots

    async def find(self, wiring: Wiring, provider: Provider, selection: Selection) -> RemovalScope:
        """The roots of the base, as they exist, that are in none of the files."""
        named = {proposed_root(body).id for body in self.roots.bodies}
        left_out = {proposed_root(body).id for body in self.base.bodies} - named
        observed = (await roots_in(wiring, provider, selection)).roots
        return RemovalScope(selection, left_out_of_base([root for root in observed if root.id in left_out]))


def _within(roots: Sequence[Live], namespaces: set[str]) -> tuple[Live, ...]:
    """The roots in these namespaces, and those that are in none."""
    return tuple(root for root in roots if not root.id.namespace or root.id.namespace in namespaces)
