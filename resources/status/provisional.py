"""Provisional statuses: those of objects that are still coming up. They soon change by themselves, so they need not be written at once."""

from collections.abc import Sequence

from engine.conditions import is_true
from engine.resource import Body
from resources.policies.availability import BREACHED


def is_provisional(old: Body, new: Body, desired: int, counts: Sequence[str]) -> bool:
    """Whether the new status is that of an object that is still coming up.

    The last of the counts is below the desired number, none of them has fallen since the old status was written, and no breach begins: a
    loss is never provisional.
    """
    has_fallen = any(new[count] < (old.get(count) or 0) for count in counts)
    return new[counts[-1]] < desired and not has_fallen and not _breach_begins(old, new)


def _breach_begins(old: Body, new: Body) -> bool:
    """Whether a breach begins whose time is that of the write. The first conditions of an object bear the time of its creation."""
    known = old.get("conditions") or ()
    return bool(known) and is_true(new.get("conditions") or (), BREACHED) and not is_true(known, BREACHED)
