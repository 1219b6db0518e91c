"""Removal: roots that a command removes although the cluster has them. It begins with one delete; the deletion plan of the root follows."""

from collections.abc import Iterator, Mapping, Sequence, Set

from msgspec import Struct
from msgspec.structs import replace

from engine.ids import ResourceId
from engine.observed import Observed, World
from engine.operation import Cause, Expect, Operation
from engine.plan import Objection, Plan, Wait
from engine.reason import Reason
from engine.revised import as_tuple
from engine.verb import Verb


class Removal(Struct, frozen=True):
    """That one root is to be removed, and why."""

    uid: str
    """The uid of the root that was judged. One of the same name that is made later stays."""
    why: str
    after_manifests: bool = False
    """Whether it is only deleted once every manifest of the intent is applied."""

    @property
    def reason(self) -> Reason:
        """Pruned if it has left the manifests, else the deletion itself was asked for."""
        return Reason.PRUNED if self.after_manifests else Reason.SET_DELETED


class RootRemovals(Struct, frozen=True, eq=False):
    """What a command removes, and why it may not."""

    roots: Mapping[ResourceId, Removal]
    objections: tuple[Objection, ...] = ()
    """With objections nothing at all is changed."""
    notes: tuple[str, ...] = ()
    """About roots that stay."""


NO_REMOVALS = RootRemovals({})


def is_removed(observed: Observed, removals: Mapping[ResourceId, Removal]) -> bool:
    """Whether the root is one of those that are to be removed."""
    removal = removals.get(observed.root.id)
    return removal is not None and removal.uid == observed.root.uid


def to_delete(world: World, removals: Mapping[ResourceId, Removal]) -> Set[ResourceId]:
    """The roots that are to be removed and are not being deleted yet, and the roots that are nested in them: they get no ordinary plan."""
    if not removals:
        return frozenset()
    removed = [each.root for each in world.roots if is_removed(each, removals) and each.root.deleting_since is None]
    ids, uids = {root.id for root in removed}, {root.uid for root in removed}
    nested = (each.root.id for each in world.roots if each.root.controller is not None and each.root.controller.uid in uids)
    proposed = (each.root.id for each in world.roots if each.proposer is not None and each.proposer.uid in uids)
    return ids.union(nested, proposed)


def with_removals(plans: Sequence[Plan], world: World, removals: Mapping[ResourceId, Removal]) -> tuple[Plan, ...]:
    """The plans, with the delete of each root that is to be removed, and with what those that are being deleted still wait for."""
    if not removals:
        return as_tuple(plans)
    observed = {each.root.id: each for each in world.roots}
    first_unapplied = next(unapplied(plans, observed), None)
    return tuple(
        _removing(plan, observed[plan.root], removals[plan.root], first_unapplied)
        if plan.root in observed and is_removed(observed[plan.root], removals)
        else plan
        for plan in plans
    )


def unapplied(plans: Sequence[Plan], observed: Mapping[ResourceId, Observed]) -> Iterator[ResourceId]:
    """The roots whose manifests are not applied: they are to be written, cannot be written, or are being deleted."""
    for plan in plans:
        each = observed.get(plan.root)
        if each is None or each.proposal is None or each.proposer is not None:
            continue
        is_written = any(operation.id == plan.root and operation.verb is not Verb.STATUS for operation in plan.operations)
        is_deferred = any(wait.id == plan.root for wait in plan.deferred)
        if is_written or is_deferred or plan.problems or plan.error or not each.root.uid or each.root.deleting_since is not None:
            yield plan.root


def _removing(plan: Plan, observed: Observed, removal: Removal, unapplied: ResourceId | None) -> Plan:
    """The plan of a root that is to be removed. `unapplied`: a root whose manifest is not applied, if there is one."""
    root = observed.root
    if root.deleting_since is not None:
        return _waiting(plan, observed)
    if removal.after_manifests and unapplied is not None:
        return replace(plan, deferred=(Wait(root.id, f"{removal.why}; it is deleted once all manifests are applied, {unapplied} is not"),))
    operation = Operation(
        Verb.DELETE, root.id, removal.why, Cause.INTENT, expect=Expect(root.uid), controller=root.controller, reason=removal.reason
    )
    return replace(plan, operations=(operation,))


def _waiting(plan: Plan, observed: Observed) -> Plan:
    """The deletion plan of a root; if nothing is left in it, with the finalizers of others that the root waits for."""
    if plan.operations or plan.deferred or plan.pending or plan.problems or plan.error:
        return plan
    finalizers = observed.root.body["metadata"].get("finalizers") or ()
    why = f"is being deleted; waits for the removal of finalizer {', '.join(map(str, finalizers))}" if finalizers else "is being deleted"
    return replace(plan, pending=(Wait(observed.root.id, why),))
