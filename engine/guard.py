"""Guard: what speaks against a finished plan. It never changes one; it says no, and what to do."""

from collections.abc import Sequence, Set
from dataclasses import dataclass, replace

from engine.blueprint import Blueprint, root_of
from engine.ids import ResourceId
from engine.observed import Live, World
from engine.operation import Operation
from engine.plan import Objection, Plan
from engine.verb import Verb


@dataclass(frozen=True, slots=True)
class Limits:
    """How much a pass may take away unasked; `None`: ten objects or a tenth of what is observed, whichever is more."""

    max_deletes: int | None = None

    def budget(self, observed: int) -> int:
        """How many unasked deletes are allowed where so many objects are seen."""
        return self.max_deletes if self.max_deletes is not None else max(10, observed // 10)


def is_unintended(operation: Operation) -> bool:
    """Whether it takes something away that nobody intended to take away."""
    return operation.verb in (Verb.DELETE, Verb.REPLACE) and not operation.intended


def within_budget(plans: Sequence[Plan], world: World, limits: Limits) -> tuple[Plan, ...]:
    """The plans; all that take away something unasked are objected to when together they exceed the budget."""
    unasked = sum(is_unintended(operation) for plan in plans for operation in plan.operations)
    allowed = limits.budget(sum(observed.count() for observed in world.roots))
    if unasked <= allowed:
        return tuple(plans)
    objection = Objection(
        "delete-budget",
        f"{unasked} deletes that nobody intended for, {allowed} allowed: look at them, then allow them with --max-deletes {unasked}",
    )
    return tuple(
        replace(plan, objections=(*plan.objections, objection)) if any(map(is_unintended, plan.operations)) else plan for plan in plans
    )


def refuse_unowned_cluster(world: World, blueprints: Sequence[Blueprint]) -> tuple[Objection, ...]:
    """No root in sight while children exist: more likely a wrong place or a missing CRD than a wish to be rid of all.

    Roots of another kind than those that the children name could not own them. What somebody has deleted, and what that owns, is on
    its way out: it does not speak of a mistake. Roots that could not be seen may well be there.
    """
    unseen = world.incomplete.keys() & {blueprint.kind.name for blueprint in blueprints}
    kinds = unseen | {observed.root.id.kind for observed in world.roots}
    children = [child for child in _staying(world.orphans) if _is_lost(root_of(blueprints, child), kinds)]
    if not children:
        return ()
    return (
        Objection(
            "no-roots",
            f"no root is seen, but {len(children)} of their objects are (the first: {children[0].id}): nothing is touched; "
            "check the cluster, the namespace and that the CRDs are installed",
        ),
    )


def _is_lost(root: ResourceId | None, kinds: Set[str]) -> bool:
    """Whether none of the kinds of roots that are in sight could be its own; any could if it does not say."""
    return root.kind not in kinds if root is not None else not kinds


def _staying(lives: Sequence[Live]) -> Sequence[Live]:
    """Those that neither are being deleted nor belong to something that is."""
    staying = [live for live in lives if live.deleting_since is None]
    going = {live.uid for live in lives if live.deleting_since is not None}
    while going:
        leaving = [live for live in staying if any(owner.uid in going for owner in live.owners)]
        going = {live.uid for live in leaving}
        staying = [live for live in staying if live.uid not in going]
    return staying
