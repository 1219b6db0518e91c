"""Memory budget: growth that the memory of the process has no room for waits, the newest first; what exists is managed as ever."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from msgspec.structs import replace

from engine.blueprint import Blueprint, C
from engine.conditions import completed_generation
from engine.ids import ResourceId
from engine.memo import Memo
from engine.observed import MemoryAllowance, Observed, World, by_root
from engine.operation import Create, Operation
from engine.plan import Alarm, Plan, Wait, without

BYTES_PER_OBJECT: Final = 5_632
"""Resident memory of a process that watches, plans and creates objects, for each of them, most of which are pods.

Measured on a real API server in a container of 1 GiB: two sets of 99,000 pods, 5.0 KiB for each object while they are created. Settled
fleets take less: `benchmarks.growth` keeps 52,000 objects in 222 MiB.
"""
PROGRAM_BYTES: Final = 128 << 20
"""What a process takes without any object, and what is kept free."""
REASON: Final = "EngineMemoryReached"
"""The reason of the event about a root whose growth waits."""
TO_DO: Final = "raise the memory limit of the engine, or divide the namespaces into more shards"


def objects_within(memory: int) -> int:
    """For how many objects a process with that memory limit, in bytes, has room."""
    return max(0, memory - PROGRAM_BYTES) // BYTES_PER_OBJECT


def with_allowances(world: World, blueprints: Sequence[Blueprint[C]], most: int, memo: Memo) -> World:
    """The world in which each root knows how many objects may be created for it, if all objects together are to be at most `most`.

    The same world if everything that is asked for fits. Old roots have precedence over new ones. A root whose specification has been
    carried out completely since it was edited last only replaces what is lost, and is not limited.
    """
    by_kind, roots = {blueprint.kind.name: blueprint for blueprint in blueprints}, by_root(world.roots)
    sizes = memo.each("sizes", roots, (), lambda observed: _size(by_kind[observed.root.id.kind], observed))
    left = most - sum(existing for existing, _ in sizes)
    if sum(missing for _, missing in sizes) <= left:
        return world
    lacking = [(observed, missing) for observed, (_, missing) in zip(roots, sizes, strict=True) if missing]
    growing = sorted((each for each in lacking if not _is_complete(each[0])), key=lambda each: _age(each[0]))
    left -= sum(number for observed, number in lacking if _is_complete(observed))
    allowances = dict(_allowances(growing, left, most))
    return replace(world, roots=memo.each("allowances", roots, (allowances,), lambda observed: _with_allowance(observed, allowances)))


def _size(blueprint: Blueprint[C], observed: Observed) -> tuple[int, int]:
    """How many objects the root has, and how many it asks for that do not exist yet."""
    existing = observed.count()
    if observed.root.deleting_since is not None:
        return existing, 0
    return existing, max(0, blueprint.asked(observed.proposal or observed.root.body) - existing)


def _is_complete(observed: Observed) -> bool:
    """Whether everything that the root specifies now has existed once."""
    return completed_generation(observed.root.body) == observed.root.generation


def _age(observed: Observed) -> tuple[str, ResourceId]:
    """Sorts old roots before new ones."""
    return str(observed.root.body["metadata"].get("creationTimestamp", "")), observed.root.id


def _allowances(growing: Iterable[tuple[Observed, int]], left: int, most: int) -> Iterable[tuple[ResourceId, MemoryAllowance]]:
    """The roots that cannot have all that they ask for, with what they can have: one of which nothing exists is not begun.

    `left`: for how many objects there is room.
    """
    for observed, number in growing:
        allowed = min(number, max(0, left)) if observed.count() or number <= left else 0
        left -= allowed
        if allowed < number:
            yield observed.root.id, MemoryAllowance(allowed, most)


def _with_allowance(observed: Observed, allowances: Mapping[ResourceId, MemoryAllowance]) -> Observed:
    allowance = allowances.get(observed.root.id)
    return observed if allowance is None else replace(observed, allowance=allowance)


def is_waiting(observed: Observed) -> bool:
    """Whether nothing of the root exists and nothing may be created: then it need not be computed what it would be."""
    return observed.allowance is not None and not observed.allowance.objects and not observed.count()


def within_allowance(plan: Plan, allowance: MemoryAllowance) -> Plan:
    """The plan without what would be created beyond the allowance, and why."""
    created: set[str] = set()

    def is_beyond(operation: Operation) -> bool:
        if not isinstance(operation, Create) or len(created) >= allowance.objects:
            return isinstance(operation, Create)
        created.add(operation.key)
        return False

    why = f"not all of its objects are created: the memory of the engine is enough for {allowance.most} objects"
    wait = Wait(plan.root, why, blocked=True, to_do=TO_DO)
    alarm = Alarm(REASON, f"{why}; {TO_DO}", blocking=True)
    return replace(without(plan, is_beyond), deferred=(wait, *plan.deferred), alarms=(*plan.alarms, alarm))
