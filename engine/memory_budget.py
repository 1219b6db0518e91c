"""Memory budget: growth that the memory of the process has no room for waits, the newest first; what exists is managed as ever."""

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from datetime import datetime
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from engine.blueprint import Asked, Blueprint, C, Desired
from engine.graph import Graph, Part, Resources, edges_of
from engine.health import TYPES, Obstacle
from engine.ids import ResourceId
from engine.memo import Memo
from engine.observed import Live, MemoryAllowance, Observed, World, by_root
from engine.operation import Create
from engine.plan import Alarm, Plan, Wait, without
from engine.resource import Hold, Want
from engine.root_status import obstructed

BYTES_PER_LIGHT: Final = 9_216
BYTES_PER_OTHER: Final = 12_288
"""Resident memory of a process that watches, plans and creates objects, for each of a light kind (a pod) and each other one.

Measured until all pods are ready, at the most: 124 KiB for a replica of ten pods with its PodClique, PodGang and Service where a set has
3,000 of them, 48 KiB for one of two (`benchmarks.memory`).
"""
PROGRAM_BYTES: Final = 144 << 20
"""What a process takes without any object, the last objects that it keeps parsed, and what is kept free."""
REASON: Final = "EngineMemoryReached"
"""The reason of the event about a root whose growth waits, and of its conditions."""
TO_DO: Final = "raise the memory limit of the engine, or divide the namespaces into more shards"


def bytes_for_objects(memory: int) -> int:
    """How much of that memory limit of a process, in bytes, is left for objects."""
    return max(0, memory - PROGRAM_BYTES)


def with_allowances(world: World, blueprints: Sequence[Blueprint[C]], configuration: C, most: int, memo: Memo) -> World:
    """The world in which each root knows what may be created for it, if all objects together are to take at most `most` bytes.

    The same world if everything that is asked for fits. What has existed and is gone is created first, then old roots have precedence over
    new ones. A root whose specification has been carried out completely since it was edited last only replaces what is lost, and is not
    limited, unless parts of it are scaled out.
    """
    by_kind, roots = {blueprint.kind.name: blueprint for blueprint in blueprints}, by_root(world.roots)
    sizes = memo.each("sizes", roots, (configuration,), lambda observed: _size(by_kind[observed.root.id.kind], observed, configuration))
    left = most - sum(size.existing for size in sizes)
    if sum(size.missing for size in sizes) <= left:
        return world
    lacking = [(observed, size) for observed, size in zip(roots, sizes, strict=True) if size.missing]
    left -= sum(size.missing for _, size in lacking if not size.is_growing)
    growing = [_Growing(each, size, by_kind[each.root.id.kind].lost(each)) for each, size in lacking if size.is_growing]
    allowances = dict(_allowances(sorted(growing, key=lambda each: _age(each.observed)), left, most))
    return replace(world, roots=memo.each("allowances", roots, (allowances,), lambda observed: _with_allowance(observed, allowances)))


class _Size(Struct, frozen=True):
    """How many bytes the objects of a root take."""

    existing: int
    missing: int
    """Those that it asks for and that do not exist yet."""
    of_light: int
    """Each one of a light kind."""
    is_growing: bool = False
    """Whether some of what is missing has never existed."""


def _size(blueprint: Blueprint[C], observed: Observed, configuration: C) -> _Size:
    """How much memory the objects of a root take. Existing ones are taken to be as large as those that it asks for."""
    asked = blueprint.asked(observed, configuration)
    of_light = BYTES_PER_LIGHT + (-(-asked.bytes // asked.light) if asked.light else 0)
    light = sum(len(slice.of(kind)) for slice in observed.slices.values() for kind in blueprint.light_kinds)
    existing = light * of_light + (observed.count() - light) * BYTES_PER_OTHER
    if observed.root.deleting_since is not None:
        return _Size(existing, 0, of_light)
    scaled = blueprint.scaled(observed, configuration)
    missing = max(0, _bytes(asked, of_light) + _bytes(scaled.beyond, of_light) - existing)
    return _Size(existing, missing, of_light, scaled.is_growing or not blueprint.is_complete(observed))


def _bytes(asked: Asked, of_light: int) -> int:
    return asked.light * of_light + (asked.objects - asked.light) * BYTES_PER_OTHER


def _age(observed: Observed) -> tuple[str, ResourceId]:
    """Sorts old roots before new ones. One that does not exist yet is as old as the root that proposes it."""
    body = (observed.root if observed.root.uid else observed.proposer or observed.root).body
    return str(body["metadata"].get("creationTimestamp", "")), observed.root.id


class _Growing(Struct, frozen=True):
    """A root some of whose objects have never existed."""

    observed: Observed
    size: _Size
    lost: Mapping[ResourceId, int]
    """Owner -> how many of its objects of light kinds have existed and are gone."""

    @property
    def bytes_lost(self) -> int:
        """What these take."""
        return min(self.size.missing, sum(self.lost.values()) * self.size.of_light)


def _allowances(growing: Sequence[_Growing], left: int, most: int) -> Iterable[tuple[ResourceId, MemoryAllowance]]:
    """The roots that cannot have all that they ask for, with what they can have: one of which nothing exists is not begun.

    `left`: how many bytes more all of them may take. What some have lost has precedence over what others grow by.
    """
    left -= sum(each.bytes_lost for each in growing)
    for each in growing:
        missing = each.size.missing - each.bytes_lost
        allowed = min(missing, max(0, left)) if each.observed.count() or missing <= left else 0
        left -= allowed
        if allowed < missing:
            yield each.observed.root.id, MemoryAllowance(each.bytes_lost + allowed, most, each.size.of_light, each.lost)


def _with_allowance(observed: Observed, allowances: Mapping[ResourceId, MemoryAllowance]) -> Observed:
    allowance = allowances.get(observed.root.id)
    return observed if allowance is None else replace(observed, allowance=allowance)


def is_waiting(observed: Observed) -> bool:
    """Whether nothing of the root exists and nothing may be created: then it need not be computed what it would be, if it is large."""
    return observed.allowance is not None and not observed.allowance.bytes and not observed.count()


def waiting_plan(observed: Observed, allowance: MemoryAllowance, now: datetime) -> Plan:
    """The plan of a root of which nothing exists and nothing may be created: its status says so."""
    wait, alarm = _shortage(observed, allowance)
    status = obstructed(observed.root, Obstacle(alarm.reason, alarm.text), now) if observed.root.uid else None
    operations = (status,) if status is not None else ()
    return Plan(observed.root.id, operations, deferred=(wait,), alarms=(alarm,), health_types=TYPES)


def with_shortage(desired: Desired, observed: Observed, allowance: MemoryAllowance) -> Desired:
    """What is desired, and that not all of it can be created."""
    wait, alarm = _shortage(observed, allowance)
    return replace(desired, deferred=(wait, *desired.deferred), alarms=(*desired.alarms, alarm))


def _shortage(observed: Observed, allowance: MemoryAllowance) -> tuple[Wait, Alarm]:
    available = f"the engine has {allowance.most >> 20} MiB of memory for objects"
    why = f"not all of its objects are created: {available}, and together they need more"
    return Wait(observed.root.id, why, blocked=True, to_do=TO_DO), Alarm(REASON, f"{why}; {TO_DO}", blocking=True)


def within_allowance(plan: Plan, graph: Graph, observed: Observed, allowance: MemoryAllowance, light_kinds: Set[str]) -> Plan:
    """The plan without what would be created beyond the allowance. `graph`: the desired objects."""
    affordable = _affordable(graph, observed, allowance, light_kinds)
    return without(plan, lambda operation: isinstance(operation, Create) and operation.id not in affordable)


def _affordable(graph: Graph, observed: Observed, allowance: MemoryAllowance, light_kinds: Set[str]) -> Set[ResourceId]:
    """The missing objects for which there is room, first those that were lost, then units as a whole: also what is created in a later pass
    has its room now.
    """
    lacking = [part for part in graph.parts if not part.ids.keys() <= observed.slice(part.key).objects.keys()]
    lost = {id for part in lacking for id in _lost(graph, part, observed.slice(part.key).objects, allowance.lost, light_kinds)}
    left, affordable = allowance.bytes - len(lost) * allowance.of_light, set(lost)
    for part in lacking:
        for unit in _missing_units(graph.resources_of(part), observed, observed.slice(part.key).objects):
            size = sum(allowance.of_light if id.kind in light_kinds else BYTES_PER_OTHER for id in unit - lost)
            if size <= left:
                left -= size
                affordable.update(unit)
    return affordable


def _lost(
    graph: Graph, part: Part, lives: Mapping[ResourceId, Live], lost: Mapping[ResourceId, int], light_kinds: Set[str]
) -> Iterator[ResourceId]:
    """The objects of a part that are created in place of those that were lost. `lost`: owner -> how many of its objects are."""
    left = {owner: number for owner, number in lost.items() if owner in lives}
    for id, resource in graph.resources_of(part).items() if left else ():
        if isinstance(resource, Want) and id.kind in light_kinds and id not in lives:
            owner = next((owner.id for owner in resource.owners if left.get(owner.id)), None)
            if owner is not None:
                left[owner] -= 1
                yield id


def _missing_units(resources: Resources, observed: Observed, lives: Mapping[ResourceId, Live]) -> Iterator[Set[ResourceId]]:
    """The objects of a part that do not exist, in creation order; together those that come after one another, e.g. a gang and its pods.

    What existing objects come after has been lost, and is a unit by itself.
    """
    edges = {id: edges_of(resource) for id, resource in resources.items() if isinstance(resource, Want | Hold)}
    missing = [id for id in edges if id not in lives and id != observed.root.id and observed.elsewhere(id) is None]
    lost = frozenset(need for id in edges.keys() - missing for need in edges[id])
    connected: dict[ResourceId, set[ResourceId]] = {id: set() for id in missing}
    for id in missing:
        for need in edges[id] & connected.keys() - lost if id not in lost else ():
            connected[id].add(need)
            connected[need].add(id)
    known = set[ResourceId]()
    for id in missing:
        if id not in known:
            unit = _reached_from(id, connected)
            known |= unit
            yield unit


def _reached_from(start: ResourceId, connected: Mapping[ResourceId, Set[ResourceId]]) -> Set[ResourceId]:
    """What one gets to from there, the start included."""
    reached, following = {start}, [start]
    while following:
        new = connected[following.pop()] - reached
        reached |= new
        following.extend(new)
    return reached
