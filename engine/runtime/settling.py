"""Settling: whether a root comes to rest if we wait for it, or needs a user or operator."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Final

from engine.intent import Intent, is_removed
from engine.observed import Observed
from engine.plan import Plan, Wait
from engine.reason import Reason
from engine.runtime.passes import Pass

RELEASED_WITHIN: Final = timedelta(minutes=2)
"""How long after its deletion an object is waited for that finalizers of others keep."""


def is_removing(current: Pass[object], intent: Intent) -> bool:
    """Whether a root that the intent removes is being deleted and still exists."""
    roots = current.world.roots
    return any(is_removed(observed, intent.removals) and observed.root.deleting_since is not None for observed in roots)


def with_observed(current: Pass[object]) -> Iterator[tuple[Plan, Observed | None]]:
    """Each plan with the observation of its root that it was made from; None for orphans whose root does not exist."""
    by_root = {observed.root.id: observed for observed in current.world.roots}
    return ((plan, by_root.get(plan.root)) for plan in current.planned.plans)


def may_settle(plan: Plan, observed: Observed | None, now: datetime) -> bool:
    """Whether the root settles if we wait: it waits for something, and nothing needs a user or operator.

    Waiting is useless where an operation was rejected, a guard objects, the root is invalid, a name is taken, or something is blocked.
    """
    if plan.operations or plan.objections or plan.problems or plan.error or any(alarm.blocking for alarm in plan.alarms):
        return False
    if observed is None:
        return bool(plan.pending)
    if any(is_name_conflict(wait, observed) for wait in plan.deferred):
        return False
    return bool(plan.pending) or any(_ends_by_itself(wait, observed, now) for wait in plan.deferred)


def is_name_conflict(wait: Wait, observed: Observed) -> bool:
    """Whether the object is deferred because a foreign object has its name and is not being deleted."""
    foreign = observed.foreign.get(wait.id)
    return foreign is not None and foreign.deleting_since is None


def _ends_by_itself(wait: Wait, observed: Observed, now: datetime) -> bool:
    """Whether the object is deferred until a known time, or until an object of its name has been deleted.

    One that finalizers of others keep may be released by their controllers, soon after it was deleted.
    """
    existing = observed.find(wait.id) or observed.foreign.get(wait.id) or observed.references.objects.get(wait.id)
    since = existing.deleting_since if existing is not None else None
    if wait.blocked:
        return wait.reason is Reason.KEPT and since is not None and now - since < RELEASED_WITHIN
    return wait.until is not None or since is not None
