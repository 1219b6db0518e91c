"""Operation order: the operations of a plan in an order that respects every edge, and one writer at a time for a shared object."""

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from functools import cached_property
from typing import Final

from msgspec.structs import replace

from engine.answer import FailedCall
from engine.graph import Graph, Part, Resources, edges_of
from engine.ids import ResourceId
from engine.operation import Operation, operation_key
from engine.plan import Plan, Wait, noteworthy, without
from engine.verb import Verb

REMOVES = (Verb.DELETE, Verb.RELEASE)
"""The verbs of operations that come before all others, dependents first."""

WRITES = (Verb.CREATE, Verb.REPLACE, Verb.PATCH, Verb.SCALE)
"""The verbs of operations that operations on dependents come after."""
FailedCalls = Callable[[], Mapping[ResourceId, Iterable[FailedCall]]]
"""Returns the failed calls of each root, as far as they are known. Called only where several roots write one object."""
RANKS: Final[Mapping[Verb, int]] = {Verb.STATUS: 2, Verb.DELETE: 1, Verb.REPLACE: 1, Verb.RELEASE: 1}
"""Who writes first: the root that uses the object, then the one that removes it, then the one that reports on it. Other verbs: 0."""


class PartContents:
    """The resources of a graph while a plan is made, those of each part computed at most once, and only if they are asked for."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self._resources: dict[str, Resources] = {}

    def of(self, part: Part) -> Resources:
        """The resources of a part."""
        known = self._resources.get(part.key)
        if known is None:
            known = self._resources[part.key] = self.graph.resources_of(part)
        return known

    @cached_property
    def part_of(self) -> Mapping[ResourceId, Part]:
        """Resource -> its part, in creation order."""
        return {id: part for part in self.graph.parts for id in part.ids}

    def edges_of(self, id: ResourceId) -> frozenset[ResourceId]:
        """The resources that this one comes after; none if the graph does not have it."""
        part = self.part_of.get(id)
        return edges_of(self.of(part)[id]) if part is not None else frozenset()


def ordered(operations: Sequence[Operation], contents: PartContents) -> tuple[Operation, ...]:
    """The operations with their edges: first what is removed, in the reverse of the graph's order, then the rest in the graph's order."""
    if not operations:
        return ()
    keys: dict[ResourceId, dict[Verb, str]] = {}
    for operation in operations:
        keys.setdefault(operation.id, {})[operation.verb] = operation.key
    dependents = _removed_dependents(operations, contents)
    with_edges = [_with_edges(operation, contents, keys, dependents) for operation in operations]
    position = {id: number for number, id in enumerate(contents.part_of)}
    written = [operation for operation in with_edges if operation.verb not in REMOVES]
    removed = [operation for operation in with_edges if operation.verb in REMOVES]
    written.sort(key=lambda operation: (position[operation.id], operation.id))
    removed.sort(key=lambda operation: (-position.get(operation.id, -1), operation.id, operation.verb is Verb.RELEASE))
    return (*removed, *written)


def _removed_dependents(operations: Sequence[Operation], contents: PartContents) -> dict[ResourceId, list[ResourceId]]:
    """Resource -> the resources that depend on it and are removed, which must be gone first."""
    dependents: dict[ResourceId, list[ResourceId]] = {}
    for operation in operations:
        for need in contents.edges_of(operation.id) if operation.verb in REMOVES else ():
            dependents.setdefault(need, []).append(operation.id)
    return dependents


def _with_edges(
    operation: Operation,
    contents: PartContents,
    keys: Mapping[ResourceId, Mapping[Verb, str]],
    dependents: Mapping[ResourceId, Sequence[ResourceId]],
) -> Operation:
    """The operation with the keys of those it comes after."""
    if operation.verb in REMOVES:
        after = {key for id in dependents.get(operation.id, ()) for verb, key in keys[id].items() if verb in REMOVES}
        if operation.verb is Verb.RELEASE:
            after.update(key for verb, key in keys[operation.id].items() if verb is Verb.DELETE)
        return replace(operation, after=frozenset(after))
    if operation.verb is Verb.STATUS:
        return operation
    needs = contents.edges_of(operation.id)
    after = {key for need in needs if need in keys for verb, key in keys[need].items() if verb in WRITES}
    return replace(operation, after=frozenset(after)) if after else operation


def with_one_writer(plans: Sequence[Plan], failed_calls: FailedCalls = dict) -> Sequence[Plan]:
    """The plans; of an object that several of them write, creates apart, only one of them does, and the others wait. Else the same object.

    Plans with objections do not count: they are not carried out. A root whose write failed, or what it comes after, gives way to the
    others: it may fail again and again.
    """
    writers = _writers(noteworthy(plans))
    contended = {id: operations for id, operations in writers.items() if len(operations) > 1}
    if not contended:
        return plans
    by_root, calls = {plan.root: plan for plan in plans}, failed_calls()
    failing = {root: _failing(by_root[root], calls.get(root, ())) for root in {root for roots in contended.values() for root in roots}}

    def precedence(root: ResourceId, first: Operation) -> tuple[bool, int, ResourceId]:
        return first.key in failing[root], RANKS.get(first.verb, 0), root

    firsts = {id: min(operations, key=lambda root: precedence(root, operations[root])) for id, operations in contended.items()}
    return tuple(_waiting(plan, firsts) if not plan.objections else plan for plan in plans)


def _writers(plans: Iterable[Plan]) -> dict[ResourceId, dict[ResourceId, Operation]]:
    """Object -> the roots whose plans write it, each with its first write by rank."""
    writers: dict[ResourceId, dict[ResourceId, Operation]] = {}
    for plan in plans:
        for operation in plan.operations if not plan.objections else ():
            if operation.verb is not Verb.CREATE:
                roots = writers.setdefault(operation.id, {})
                known = roots.get(plan.root, operation)
                roots[plan.root] = min(known, operation, key=lambda each: RANKS.get(each.verb, 0))
    return writers


def _failing(plan: Plan, failed_calls: Iterable[FailedCall]) -> Set[str]:
    """The keys of the operations of a plan that failed when they were last tried, and of those that come after one of them."""
    failing = {operation_key(call.verb, call.id) for call in failed_calls if call.error is not None}
    for operation in plan.operations if failing else ():
        if not failing.isdisjoint(operation.after):
            failing.add(operation.key)
    return failing


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
