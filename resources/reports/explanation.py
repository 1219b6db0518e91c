"""Explanation: what there is to say of one object: what it is, who wants it and why, and how it stands."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from engine.blueprint import Blueprint
from engine.ids import ResourceId
from engine.memo import Memo
from engine.observed import Live, Observed, World
from engine.operation import Operation
from engine.plan import Plan, Wait
from engine.resource import Stance


@dataclass(frozen=True, slots=True)
class DesiredBy:
    """A root that has an object in its desired graph."""

    root: ResourceId
    part: str
    why: str
    stance: Stance


@dataclass(frozen=True, slots=True, eq=False)
class Explanation:
    """One object at one moment."""

    id: ResourceId
    live: Live | None
    roots: tuple[ResourceId, ...]
    """The roots whose own it is; several where they share it, none for a stranger."""
    wanted: tuple[DesiredBy, ...]
    operations: tuple[Operation, ...]
    """What is due."""
    deferred: tuple[Wait, ...]
    pending: tuple[Wait, ...]
    orphan: bool
    """Whether it bears our labels and its root is gone."""
    problems: tuple[str, ...]
    """Why nothing is known of what its roots want."""

    @property
    def is_known(self) -> bool:
        """Whether there is such an object, or is to be."""
        return self.live is not None or bool(self.wanted)


def account(
    world: World,
    plans: Mapping[ResourceId, Plan],
    blueprints: Mapping[str, Blueprint],
    id: ResourceId,
    configuration: Any,
    now: datetime,
    other: Live | None = None,
) -> Explanation:
    """What is to be said of the object of that identity. `other` is it, where it lies beyond what roots look at."""
    near = [observed for observed in world.roots if observed.root.id.namespace in ("", id.namespace)]
    own = [observed for observed in near if _has(observed, id)]
    orphan = next((live for live in world.orphans if live.id == id), None)
    told = [plans[observed.root.id] for observed in near if observed.root.id in plans]
    return Explanation(
        id,
        next((live for observed in own if (live := _live(observed, id))), orphan or world.references.objects.get(id) or other),
        tuple(observed.root.id for observed in own),
        tuple(_wanting(near, plans, blueprints, id, configuration, now)),
        tuple(operation for plan in told for operation in plan.operations if operation.id == id),
        tuple(held for plan in told for held in plan.deferred if held.id == id),
        tuple(held for plan in told for held in plan.pending if held.id == id),
        orphan is not None,
        tuple(problem for observed in own for problem in plans[observed.root.id].problems if observed.root.id in plans),
    )


def _has(observed: Observed, id: ResourceId) -> bool:
    if _live(observed, id) is not None:
        return True
    shared = observed.references.objects.get(id)
    return shared is not None and bool(observed.root.uid) and any(owner.uid == observed.root.uid for owner in shared.owners)


def _live(observed: Observed, id: ResourceId) -> Live | None:
    if observed.root.id == id:
        return observed.root
    return observed.find(id)


def _wanting(
    near: Sequence[Observed],
    plans: Mapping[ResourceId, Plan],
    blueprints: Mapping[str, Blueprint],
    id: ResourceId,
    configuration: Any,
    now: datetime,
) -> Iterator[DesiredBy]:
    """Every root that has it in its graph; one that cannot be understood wants nothing that anybody could tell."""
    for observed in near:
        plan, blueprint = plans.get(observed.root.id), blueprints[observed.root.id.kind]
        if plan is None or plan.problems:
            continue
        resource = blueprint.desire(observed, now, configuration, Memo()).graph.resources.get(id)
        if resource is not None:
            part = "" if id == observed.root.id else blueprint.part_of(observed.root.id, id)
            yield DesiredBy(observed.root.id, part, resource.why, resource.stance)
