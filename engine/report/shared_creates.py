"""Shared creates: an object that several roots would create together is reported once, and the others say that they join it."""

from collections.abc import Iterable

from msgspec.structs import replace

from engine.ids import ResourceId
from engine.operation import is_shared
from engine.plan import Plan
from engine.verb import Verb


def reported_once(plans: Iterable[Plan]) -> list[Plan]:
    """The plans, with the creation of a shared object only in the first one that has it, and a note in the others (N28).

    Whichever root creates the object when the plans are applied, the others find it and add themselves as owners.
    """
    creators: dict[ResourceId, ResourceId] = {}
    return [_without_known_creates(plan, creators) for plan in plans]


def _without_known_creates(plan: Plan, creators: dict[ResourceId, ResourceId]) -> Plan:
    """The plan without the creates of objects in `creators` (object -> the root that creates it), which gets those of this plan."""
    shared = [operation for operation in plan.operations if operation.verb is Verb.CREATE and is_shared(operation)]
    joins = [operation for operation in shared if creators.setdefault(operation.id, plan.root) != plan.root]
    if not joins:
        return plan
    keys = frozenset(operation.key for operation in joins)
    left = (operation for operation in plan.operations if operation.key not in keys)
    notes = (f"joins {operation.id.kind} {operation.id.name}, which {_name(creators[operation.id])} creates" for operation in joins)
    operations = tuple(replace(each, after=each.after - keys) if each.after & keys else each for each in left)
    return replace(plan, operations=operations, notes=(*plan.notes, *notes))


def _name(root: ResourceId) -> str:
    return f"{root.kind} {root.name}"
