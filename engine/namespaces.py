"""Namespaces: what is held back because its namespace is missing or being deleted."""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Final

from msgspec.structs import replace

from engine.ids import NAMESPACE, ResourceId
from engine.memo import Memo
from engine.observed import NamespacePhase, Observed, World, by_root
from engine.operation import Creation, Operation
from engine.plan import Plan, Wait, without
from engine.reason import APPLY_FIRST, Reason

WORDS: Final[Mapping[NamespacePhase, tuple[str, Reason]]] = {
    NamespacePhase.MISSING: ("it does not exist", Reason.NAMESPACE_MISSING),
    NamespacePhase.TERMINATING: ("it is being deleted", Reason.NAMESPACE_TERMINATING),
}


def with_phases(world: World, closed: Mapping[str, NamespacePhase], memo: Memo) -> World:
    """The world in which nothing can be created in these namespaces: every root in them knows it. The same world if there are none."""
    if not closed:
        return world
    roots = memo.each("namespace", by_root(world.roots), (closed,), partial(_with_phase, closed))
    return replace(world, roots=roots, closed_namespaces=closed)


def _with_phase(closed: Mapping[str, NamespacePhase], observed: Observed) -> Observed:
    phase = closed.get(observed.root.id.namespace)
    return observed if phase is None else replace(observed, namespace_phase=phase)


def creates(operation: Operation) -> bool:
    """Whether the operation creates an object, in place of an old one or not."""
    return isinstance(operation, Creation)


def held_back(plan: Plan, phase: NamespacePhase | None) -> Plan:
    """The plan of a root in a namespace of that phase: what it would create, and what comes after that, is blocked.

    A root that is not created itself waits for nothing else.
    """
    if phase is None or not any(map(creates, plan.operations)):
        return plan
    why, reason = WORDS[phase]
    wait = Wait(NAMESPACE.id("", plan.root.namespace), why, blocked=True, reason=reason)
    kept = without(plan, creates)
    if any(creates(operation) and operation.id == plan.root for operation in plan.operations):
        return replace(kept, deferred=(wait,), pending=())
    return replace(kept, deferred=(wait, *plan.deferred))


def with_places(plans: Sequence[Plan], beside: Mapping[ResourceId, str]) -> tuple[Plan, ...]:
    """The plans, which say of a missing namespace where it is written if it stands beside the manifests (`Intent.beside`)."""
    return tuple(_with_place(plan, beside) if any(wait.id in beside for wait in plan.deferred) else plan for plan in plans)


def _with_place(plan: Plan, beside: Mapping[ResourceId, str]) -> Plan:
    return replace(plan, deferred=tuple(_placed(wait, beside[wait.id]) if wait.id in beside else wait for wait in plan.deferred))


def _placed(wait: Wait, place: str) -> Wait:
    return replace(wait, why=f"{wait.why} (in {place})", to_do=APPLY_FIRST) if wait.reason is Reason.NAMESPACE_MISSING else wait


def namespaces_with_creates(plans: Iterable[Plan]) -> frozenset[str]:
    """The namespaces in which the plans create objects."""
    return frozenset(plan.root.namespace for plan in plans if plan.root.namespace and any(map(creates, plan.operations)))
