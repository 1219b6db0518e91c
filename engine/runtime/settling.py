"""Settling: whether a root comes to rest if we wait for it, or needs a user or operator."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Final

from engine.intent import Intent, is_removed
from engine.observed import Live, Observed, World
from engine.plan import Plan, Wait
from engine.reason import Reason
from engine.runtime.passes import Pass

RELEASED_WITHIN: Final = timedelta(minutes=2)
"""How long after its deletion an object is waited for that finalizers of others keep, whether its root exists or not."""


def is_removing(current: Pass[object], intent: Intent) -> bool:
    """Whether a root that the intent removes is being deleted and still exists."""
    roots = current.world.roots
    return any(is_removed(observed, intent.removals) and observed.root.deleting_since is not None for observed in roots)


def with_observed(current: Pass[object]) -> Iterator[tuple[Plan, Observed | None]]:
    """Each plan with the observation of its root that it was made from; None for orphans whose root does not exist."""
    by_root = {observed.root.id: observed for observed in current.world.roots}
    return ((plan, by_root.get(plan.root)) for plan in current.planned.plans)


def may_settle(plan: Plan, observed: Observed | None, current: Pass[object]) -> bool:
    """Whether the root settles if we wait: it waits for something, and nothing needs a user or operator.

    Waiting is useless where an operation was rejected, a guard objects, the root is invalid, a name is taken, or something is blocked.
    """
    if plan.operations or plan.objections or plan.problems or plan.error or any(alarm.blocking for alarm in plan.alarms):
        return False
    if observed is not None and any(is_name_conflict(wait, observed) for wait in plan.deferred):
        return False
    waits = _with_existing(plan, observed, current.world)
    return bool(plan.pending) or any(_ends_by_itself(wait, existing, current.now) for wait, existing in waits)


def is_name_conflict(wait: Wait, observed: Observed) -> bool:
    """Whether the object is deferred because a foreign object has its name and is not being deleted."""
    foreign = observed.foreign.get(wait.id)
    return foreign is not None and foreign.deleting_since is None


def _with_existing(plan: Plan, observed: Observed | None, world: World) -> Iterator[tuple[Wait, Live | None]]:
    """What is deferred, each with the object of that id, of the root or with its name; without a root one that no root owns."""
    if observed is None:
        orphans = {live.id: live for live in world.rootless()} if plan.deferred else {}
        yield from ((wait, orphans.get(wait.id)) for wait in plan.deferred)
        return
    for wait in plan.deferred:
        yield wait, observed.find(wait.id) or observed.foreign.get(wait.id) or observed.references.objects.get(wait.id)


def _ends_by_itself(wait: Wait, existing: Live | None, now: datetime) -> bool:
    """Whether the object is deferred until a known time, or until an object of its name has been deleted.

    One that finalizers of others keep may be released by their controllers, soon after it was deleted.
    """
    since = existing.deleting_since if existing is not None else None
    if wait.blocked:
        return wait.reason is Reason.KEPT and since is not None and now - since < RELEASED_WITHIN
    return wait.until is not None or since is not None
