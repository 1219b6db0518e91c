"""Explanation: the roots that desire an object and why, and which operations are due, deferred or pending for it."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime

from msgspec import Struct

from engine.blueprint import Blueprint
from engine.ids import ResourceId
from engine.memo import Memo
from engine.observed import Live, Observed, World
from engine.operation import Operation
from engine.plan import Plan, Wait, blocked_by
from engine.report.model import error_text
from engine.resource import Stance
from resources.ports.configuration import Configuration
from resources.reports.summary import parent_of


class DesiredBy(Struct, frozen=True):
    """A root that has an object in its desired graph."""

    root: ResourceId
    part: str
    """The key of the part that the object belongs to; empty for the root itself."""
    why: str
    """The reason for the stance."""
    stance: Stance
    parent: ResourceId | None = None
    """The root that `root` is a part of; None if a user has made it. If the object is `root` itself: the root that proposes it now."""


class Explanation(Struct, frozen=True, eq=False):
    """What is known about one object at one moment."""

    id: ResourceId
    live: Live | None
    roots: tuple[ResourceId, ...]
    """The roots that own it; several where they share it, none for a foreign object."""
    desired_by: tuple[DesiredBy, ...]
    operations: tuple[Operation, ...]
    """The operations that are due for it."""
    deferred: tuple[Wait, ...]
    pending: tuple[Wait, ...]
    orphan: bool
    """Whether it has our labels and its root is gone."""
    problems: tuple[str, ...]
    """The faults and internal errors of the roots that own it, and why these are left alone. Because of them it is not known what those
    roots desire."""

    @property
    def is_known(self) -> bool:
        """Whether the object exists or is desired."""
        return self.live is not None or bool(self.desired_by)


def explain(
    world: World,
    plans: Mapping[ResourceId, Plan],
    blueprints: Mapping[str, Blueprint[Configuration]],
    id: ResourceId,
    configuration: Configuration,
    now: datetime,
    other: Live | None = None,
) -> Explanation:
    """The explanation of the object with that id. `other` is its live object, used if the world does not contain it.

    Roots without a plan count as owners and contribute nothing else.
    """
    candidates = [observed for observed in world.roots if observed.root.id.namespace in ("", id.namespace)]
    owners = [observed for observed in candidates if _owns(observed, id)]
    orphan = next((live for live in world.orphans if live.id == id), None)
    live = next((live for observed in owners if (live := _live(observed, id))), orphan or world.references.objects.get(id) or other)
    # That of a root that does not exist is about the orphans whose labels name it.
    candidate_plans = [plan for root, plan in plans.items() if root.namespace in ("", id.namespace)]
    owner_plans = [plans[observed.root.id] for observed in owners if observed.root.id in plans]
    return Explanation(
        id,
        live,
        tuple(observed.root.id for observed in owners),
        tuple(_desired_by(candidates, plans, blueprints, id, configuration, now)),
        tuple(operation for plan in candidate_plans for operation in plan.operations if operation.id == id),
        tuple(wait for plan in candidate_plans for wait in (*blocked_by(plan), *plan.later) if wait.id == id),
        tuple(wait for plan in candidate_plans for wait in plan.pending if wait.id == id),
        orphan is not None,
        tuple(problem for plan in owner_plans for problem in _unknown_because(plan)),
    )


def _unknown_because(plan: Plan) -> Iterator[str]:
    """Why it is not known what a root desires: its faults, an internal error, and objections before anything was planned."""
    yield from plan.problems
    if plan.error is not None:
        yield error_text(plan.error)
    if not plan.operations:
        yield from (objection.message for objection in plan.objections)


def _owns(observed: Observed, id: ResourceId) -> bool:
    """Whether the object is the root, one of its objects, a root nested in it, or a shared object that has the root as an owner."""
    if _live(observed, id) is not None or id in observed.nested:
        return True
    shared = observed.references.objects.get(id)
    return shared is not None and bool(observed.root.uid) and any(owner.uid == observed.root.uid for owner in shared.owners)


def _live(observed: Observed, id: ResourceId) -> Live | None:
    """The root or its object of that id; None if it does not exist. A root that is only proposed does not."""
    if observed.root.id == id:
        return observed.root if observed.root.uid else None
    return observed.find(id)


def _desired_by(
    candidates: Sequence[Observed],
    plans: Mapping[ResourceId, Plan],
    blueprints: Mapping[str, Blueprint[Configuration]],
    id: ResourceId,
    configuration: Configuration,
    now: datetime,
) -> Iterator[DesiredBy]:
    """The roots that have the object in their desired graph. Roots without a plan, with problems or with an internal error have none."""
    for observed in candidates:
        plan, blueprint = plans.get(observed.root.id), blueprints[observed.root.id.kind]
        if plan is None or plan.problems or plan.error:
            continue
        resource = blueprint.desire(observed, now, configuration, Memo()).graph.resources.get(id)
        if resource is not None:
            part = "" if id == observed.root.id else blueprint.part_of(observed.root.id, id)
            parent = plan.parent if id == observed.root.id else parent_of(observed, plan)
            yield DesiredBy(observed.root.id, part, resource.why, resource.stance, parent)
