"""One writer: an object that several roots write in one pass is written for one of them; the others see the result in the next pass.

Each write is bound to the revision that it was planned for, so a second one would be refused. What the first one makes of the object may
change what the second root has to do: the last one that leaves a shared domain deletes it.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from msgspec.structs import replace

from engine.ids import ResourceId
from engine.operation import Operation
from engine.plan import Plan, Wait, noteworthy, without
from engine.verb import Verb

RANKS: Final[Mapping[Verb, int]] = {Verb.STATUS: 2, Verb.DELETE: 1, Verb.REPLACE: 1, Verb.RELEASE: 1}
"""Who writes first: the root that uses the object, then the one that removes it, then the one that reports on it. Other verbs: 0."""


def with_one_writer(plans: Sequence[Plan]) -> Sequence[Plan]:
    """The plans; of an object that several of them write, creates apart, only one of them does, and the others wait. Else the same object.

    Plans with objections do not count: they are not carried out.
    """
    writers = _writers(noteworthy(plans))
    if not any(len(roots) > 1 for roots in writers.values()):
        return plans
    firsts = {id: min(roots, key=lambda root: (roots[root], root)) for id, roots in writers.items() if len(roots) > 1}
    return tuple(_waiting(plan, firsts) if not plan.objections else plan for plan in plans)


def _writers(plans: Iterable[Plan]) -> dict[ResourceId, dict[ResourceId, int]]:
    """Object -> the roots whose plans write it, each with the rank of its first write."""
    writers: dict[ResourceId, dict[ResourceId, int]] = {}
    for plan in plans:
        for operation in plan.operations if not plan.objections else ():
            if operation.verb is not Verb.CREATE:
                roots = writers.setdefault(operation.id, {})
                rank = RANKS.get(operation.verb, 0)
                roots[plan.root] = min(rank, roots.get(plan.root, rank))
    return writers


def _waiting(plan: Plan, firsts: Mapping[ResourceId, ResourceId]) -> Plan:
    """The plan without the operations on objects that another root writes first, and without what comes after them."""

    def is_later(operation: Operation) -> bool:
        return operation.verb is not Verb.CREATE and firsts.get(operation.id, plan.root) != plan.root

    if not any(map(is_later, plan.operations)):
        return plan
    waits = [
        Wait(operation.id, f"{operation.why}; waits for {firsts[operation.id]}, for which it is written first")
        for operation in plan.operations
        if is_later(operation) and operation.verb is not Verb.STATUS
    ]
    remaining = without(plan, is_later)
    return replace(remaining, deferred=(*plan.deferred, *waits))
