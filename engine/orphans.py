"""Orphans: objects that are being deleted, whose root no longer exists, and that only our finalizer still holds."""

from collections.abc import Iterator, Sequence, Set

from msgspec.structs import replace

from engine.blueprint import Blueprint, C, incomplete_kinds
from engine.ids import ResourceId
from engine.memo import as_tuple
from engine.observed import Live, World
from engine.operation import Cause, Delete, Expect, Operation, Release
from engine.plan import Plan
from engine.reason import Reason
from engine.resource import Policy

WHY = "is being deleted, and its root no longer exists"


def with_orphans(plans: Sequence[Plan], blueprints: Sequence[Blueprint[C]], world: World, configuration: C) -> tuple[Plan, ...]:
    """The plans with the operations on orphans: the objects that they own are deleted, then our finalizers are released.

    The operations are in the plan of the root that an orphan's labels name; if there is none, in a new plan. Operations on objects
    that the root's own plan writes are left out. While a kind that a blueprint depends on could not be listed completely, its
    orphans stay.
    """
    if all(live.deleting_since is None for live in world.rootless()):
        return as_tuple(plans)
    complete = [blueprint for blueprint in blueprints if not incomplete_kinds(blueprint, world.incomplete, configuration)]
    cleanups = _cleanups(complete, world, configuration)
    if not cleanups:
        return as_tuple(plans)
    released_last = {kind for blueprint in blueprints for kind, policy in blueprint.policies(configuration).items() if policy.release_last}
    extended = [_extended(plan, cleanups.pop(plan.root), released_last) if plan.root in cleanups else plan for plan in plans]
    return (*extended, *(Plan(root, operations) for root, operations in sorted(cleanups.items())))


def _extended(plan: Plan, cleanup: Sequence[Operation], released_last: Set[str]) -> Plan:
    """The plan with the cleanup. A shared object (one without a controller) that the plan defers is left out: its root releases it."""
    deferred = {wait.id for wait in plan.deferred if wait.id.kind in released_last}
    written = {operation.id for operation in plan.operations}
    due = [operation for operation in cleanup if operation.id not in written]
    due = [operation for operation in due if operation.controller is not None or operation.id not in deferred]
    return replace(plan, operations=(*plan.operations, *due))


def _cleanups(blueprints: Sequence[Blueprint[C]], world: World, configuration: C) -> dict[ResourceId, tuple[Operation, ...]]:
    """The operations on orphans by the root that their labels name."""
    lives = list(world.rootless())
    orphans = [live for live in lives if live.deleting_since is not None]
    if not orphans:
        return {}
    owned: dict[str, list[Live]] = {}
    for live in lives:
        for owner in live.owners:
            owned.setdefault(owner.uid, []).append(live)
    cleanups: dict[ResourceId, tuple[Operation, ...]] = {}
    for blueprint in blueprints:
        policies, reads = blueprint.policies(configuration), blueprint.reads(configuration)
        used = blueprint.in_use(orphans, world, configuration)
        kinds = _kinds_by_root(blueprint, lives)
        for live in orphans:
            root, policy = blueprint.root_of(live), policies.get(live.id.kind)
            if root is None or policy is None:
                continue
            users = reads.get(live.id.kind, frozenset())
            in_use = policy.release_last and (live.uid in used or not users.isdisjoint(kinds[root]))
            if operations := tuple(_cleanup(live, policy, owned.get(live.uid, ()), in_use=in_use)):
                cleanups[root] = (*cleanups.get(root, ()), *operations)
    return cleanups


def _kinds_by_root(blueprint: Blueprint[C], lives: Sequence[Live]) -> dict[ResourceId, set[str]]:
    """Root that labels name -> the kinds of the objects with these labels."""
    kinds: dict[ResourceId, set[str]] = {}
    for live in lives:
        root = blueprint.root_of(live)
        if root is not None:
            kinds.setdefault(root, set()).add(live.id.kind)
    return kinds


def _cleanup(orphan: Live, policy: Policy, owned: Sequence[Live], *, in_use: bool) -> Iterator[Operation]:
    """The operations on one orphan: deletes of the objects that it owns, or the release of our finalizers when nothing needs them."""
    for live in owned:
        if live.deleting_since is None:
            why = f"its owner {orphan.id} {WHY}"
            yield Delete(live.id, why, Cause.INTENT, expect=Expect(live.uid), controller=live.controller, reason=Reason.ORPHANED)
    finalizers = orphan.body["metadata"].get("finalizers") or ()
    own = [finalizer for finalizer in policy.finalizers if finalizer in finalizers]
    # An object that is released last waits for those that use it or may use it, and for the finalizers of others.
    is_too_early = bool(owned) or in_use or (policy.release_last and len(own) < len(finalizers))
    if own and not is_too_early:
        yield Release(
            orphan.id,
            f"it {WHY}",
            Cause.INTENT,
            expect=Expect(orphan.uid),
            finalizers=tuple(own),
            existing=tuple(finalizers),
            controller=orphan.controller,
            reason=Reason.ORPHANED,
        )
