"""Guard: objections against finished plans. It never changes a plan's operations; each objection says what a user can do."""

from collections.abc import Collection, Iterable, Sequence, Set

from msgspec import Struct
from msgspec.structs import replace

from engine.blueprint import Blueprint, C, root_of
from engine.ids import ResourceId
from engine.memo import as_tuple
from engine.observed import Live, Observed, World
from engine.operation import Delete, Operation, Replace
from engine.plan import Objection, Plan, noteworthy


class Limits(Struct, frozen=True):
    """How many unintended deletes a pass may make; `None`: ten, or a tenth of the observed objects if that is more."""

    max_deletes: int | None = None

    def budget(self, observed: int) -> int:
        """How many unintended deletes are allowed when `observed` objects exist."""
        return self.max_deletes if self.max_deletes is not None else max(10, observed // 10)


def is_unintended(operation: Operation) -> bool:
    """Whether the operation deletes or replaces an object although no user asked for that."""
    return isinstance(operation, Delete | Replace) and not operation.intended


def within_budget(
    plans: Sequence[Plan], roots: Iterable[Observed], limits: Limits, judged: Collection[ResourceId] = ()
) -> tuple[Plan, ...]:
    """The plans; if together they exceed the budget of these roots, each plan with an unintended delete gets an objection.

    Plans of the roots in `judged` have been judged by an earlier pass, and do not count.
    """
    due = [plan for plan in noteworthy(plans) if plan.root not in judged]
    unintended = sum(is_unintended(operation) for plan in due for operation in plan.operations)
    if not unintended:
        return as_tuple(plans)
    allowed = limits.budget(sum(observed.count() for observed in roots))
    if unintended <= allowed:
        return as_tuple(plans)
    objection = Objection(
        "delete-budget",
        f"{unintended} unintended deletes, {allowed} allowed: check them, then allow them with --max-deletes {unintended}",
    )
    refused = {plan.root for plan in due if any(map(is_unintended, plan.operations))}
    return tuple(replace(plan, objections=(*plan.objections, objection)) if plan.root in refused else plan for plan in plans)


def refuse_unowned_cluster(world: World, blueprints: Sequence[Blueprint[C]], configuration: C) -> tuple[Objection, ...]:
    """An objection if there are children but no root: probably the wrong cluster or a missing CRD, not a request to delete everything.

    Children count if no observed root has the kind that their labels name. Children that are being deleted, or that the garbage collector
    is about to delete, and what they own, do not count; neither does any child of a kind of root that could not be listed. If any workload
    was found, of whatever kind, the cluster is the right one: what a deleted graph has left behind does not keep sets from being managed.
    """
    if not world.orphans or any(observed.root.id.namespace for observed in world.roots):
        return ()
    unlisted = world.incomplete.keys() & {blueprint.kind.name for blueprint in blueprints}
    root_kinds = unlisted | {observed.root.id.kind for observed in world.roots}
    remaining = _not_deleted(world.orphans, _kinds_of_owners(world, blueprints, configuration))
    children = [child for child in remaining if _has_no_root(root_of(blueprints, child), root_kinds)]
    if not children:
        return ()
    existing = "1 child object exists" if len(children) == 1 else f"{len(children)} child objects exist"
    return (
        Objection(
            "no-roots",
            f"no root was found, but {existing} (e.g. {children[0].id}): nothing is changed; check the cluster, the namespace and that the "
            "CRDs are installed, or delete what is left of roots that were deleted with --cascade=orphan",
        ),
    )


def _has_no_root(root: ResourceId | None, root_kinds: Set[str]) -> bool:
    """Whether no observed kind of root could own the child; if its labels name no root, any kind could."""
    return root.kind not in root_kinds if root is not None else not root_kinds


def _kinds_of_owners(world: World, blueprints: Sequence[Blueprint[C]], configuration: C) -> frozenset[str]:
    """The kinds of children, no roots, whose objects are all known: what has an owner of such a kind that is not observed has lost it."""
    children = {kind for blueprint in blueprints for kind in blueprint.children(configuration)}
    unknown = {*world.incomplete, *world.unserved}
    roots = {blueprint.kind for blueprint in blueprints}
    return frozenset(kind.name for kind in children - roots if not kind.ambiguous and kind.key not in unknown)


def _not_deleted(lives: Sequence[Live], kinds: Set[str]) -> Sequence[Live]:
    """The objects that are not being deleted, do not outlive a controller of these kinds, and none of whose owners is such an object."""
    uids = {live.uid for live in lives}

    def is_deleted(live: Live) -> bool:
        owner = live.controller
        return live.deleting_since is not None or (owner is not None and owner.kind in kinds and owner.uid not in uids)

    remaining = [live for live in lives if not is_deleted(live)]
    deleted_uids = uids.difference(live.uid for live in remaining)
    while deleted_uids:
        owned = [live for live in remaining if any(owner.uid in deleted_uids for owner in live.owners)]
        deleted_uids = {live.uid for live in owned}
        remaining = [live for live in remaining if live.uid not in deleted_uids]
    return remaining
