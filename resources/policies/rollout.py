"""Rollout: how an edit of the template reaches what runs: one unit at a time, and never the next before the last is ready.

A unit is a pod of a clique that stands alone, or a whole replica of a scaling group. What is under way is read off the cluster: whoever is
absent, or new and not ready. There is no surge: a unit goes, then its successor comes.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from resources.model.pod_facts import PodFacts
from resources.model.view import CliqueView, GroupView, Removals, View
from resources.policies.startup import parents


class UpdateAllowance(StrEnum):
    """What a replica of the set is allowed in this pass."""

    NOTHING = "nothing"
    BROKEN = "broken"
    """Replace what does not serve anyway."""
    ONE = "one"
    """Take one healthy unit away, if nothing is broken."""


@dataclass(frozen=True, slots=True)
class UpdateStage:
    """How far one replica of the set has come."""

    index: int
    stale: bool
    """Something in it is from another template."""
    away: bool
    """A unit of it is absent, leaving, or new and not ready."""
    scheduled: bool
    """Any of its pods is scheduled."""
    healthy: bool
    """All its units are ready."""


def stage(view: View) -> UpdateStage:
    """How far a replica has come."""
    return UpdateStage(
        view.index,
        stale=any(map(is_stale, view.cliques)),
        away=any(_is_away(view, clique) for clique in view.cliques),
        scheduled=any(pod.scheduled for clique in view.cliques for pod in clique.pods),
        healthy=all(is_whole(clique) for clique in view.cliques),
    )


def leaves(stages: Sequence[UpdateStage], current: int | None) -> dict[int, UpdateAllowance]:
    """Which replica may move, and how far; those not named may not. `current` is the one that was chosen last, as a tie-break."""
    stale = [one for one in stages if one.stale]
    if not stale:
        return {}
    chosen = min(stale, key=lambda one: (not one.away, one.index != current, one.scheduled, one.healthy, one.index))
    settled = not any(one.away for one in stages)
    return {chosen.index: UpdateAllowance.ONE if settled else UpdateAllowance.BROKEN}


def is_stale(clique: CliqueView) -> bool:
    """Whether the clique, or a pod that serves in it, is from another template, and not for its user to replace."""
    return not clique.on_delete and clique.live is not None and has_old(clique)


def has_old(clique: CliqueView) -> bool:
    """Whether the clique, or a pod that serves in it, is from another template, whoever is to replace it."""
    return clique.outdated or any(is_old(clique, pod) for pod in clique.assignment.kept)


def is_old(clique: CliqueView, pod: PodFacts) -> bool:
    """Whether a pod was made from another template than the one of today."""
    return not clique.is_current(pod)


def _is_away(view: View, clique: CliqueView) -> bool:
    """A clique with a free seat, a pod on its way out, or a new pod that is not ready; a missing one."""
    if clique.live is None or clique.going or clique.assignment.fresh or clique.assignment.going:
        return True
    return any(not pod.ready and not is_old(clique, pod) for pod in clique.assignment.kept)


def is_whole(clique: CliqueView) -> bool:
    """Whether every seat of the clique has its pod, and each of these is ready."""
    return clique.live is not None and not clique.going and not clique.assignment.fresh and all(pod.ready for pod in clique.assignment.kept)


def moves(view: View, leave: UpdateAllowance) -> Removals:
    """What must go in this replica now: all that is old and broken; if there is nothing of the kind, one that is old and healthy."""
    if leave is UpdateAllowance.NOTHING:
        return Removals(patience="another replica is updated first")
    pods = {pod.name: "the template has changed, and it does not serve" for clique in _alone(view) for pod in _old(clique) if not pod.ready}
    broken = [unit for unit in _old_group_replicas(view) if not _serves(unit)]
    if pods or broken:
        cliques = {clique.name: _recycled(unit) for unit in broken for clique in unit.cliques}
        return Removals(pods, cliques, updating=True, patience="what is broken goes first")
    if leave is UpdateAllowance.BROKEN:
        return Removals(updating=True, patience="the last one replaced is not ready yet")
    healthy = next(_healthy(view), None)
    if healthy is None and not view.has_token:
        return Removals(updating=True, patience="those that start after others could not be made again without their token")
    if healthy is None:
        return Removals(updating=True, patience="minAvailable allows to take none away")
    return replace(healthy, updating=True, patience="one at a time")


@dataclass(frozen=True, slots=True, eq=False)
class GroupReplica:
    """One replica of a scaling group."""

    group: GroupView
    index: int
    cliques: tuple[CliqueView, ...]


def _healthy(view: View) -> Iterator[Removals]:
    """The healthy old units that may be taken, each a decision of its own, in the order in which they are taken."""
    for clique in _alone(view):
        old = [pod for pod in _old(clique) if pod.ready and _can_come_again(view, clique)]
        if old and _has_slack(sum(pod.ready for pod in clique.assignment.kept), clique.replicas, clique.clique.min_available):
            oldest = min(old, key=lambda pod: (pod.live.created_at, pod.name))
            yield Removals(pods={oldest.name: "the template has changed"})
    for unit in _old_group_replicas(view):
        if not all(_can_come_again(view, clique) for clique in unit.cliques):
            continue
        serving = sum(_serves(_replica(view, unit.group, index)) for index in range(unit.group.replicas))
        if _has_slack(serving, unit.group.replicas, unit.group.group.min_available):
            yield Removals(cliques={clique.name: _recycled(unit) for clique in unit.cliques})


def _can_come_again(view: View, clique: CliqueView) -> bool:
    """Whether a pod that is taken from the clique could be made again: not if it had to wait for others without a token to see them."""
    return view.has_token or not parents(view, clique)


def _has_slack(ready: int, replicas: int, minimum: int) -> bool:
    """Whether one may go: the minimum stays, or, where there is no slack, all of them are there but for this one."""
    return ready - 1 >= min(minimum, replicas - 1)


def _alone(view: View) -> Iterator[CliqueView]:
    return (clique for clique in view.cliques if clique.group is None and not clique.going and not clique.on_delete)


def _old(clique: CliqueView) -> list[PodFacts]:
    return [pod for pod in clique.assignment.kept if is_old(clique, pod)]


def _old_group_replicas(view: View) -> Iterator[GroupReplica]:
    for group in view.groups:
        if not group.going:
            units = (_replica(view, group, index) for index in range(group.replicas))
            yield from (unit for unit in units if any(map(is_stale, unit.cliques)))


def _replica(view: View, group: GroupView, index: int) -> GroupReplica:
    return GroupReplica(group, index, tuple(view.members(group, index)))


def _serves(unit: GroupReplica) -> bool:
    """Whether every clique of it has its minimum ready."""
    return all(
        clique.live is not None and not clique.going and sum(pod.ready for pod in clique.assignment.kept) >= clique.clique.min_available
        for clique in unit.cliques
    )


def _recycled(unit: GroupReplica) -> str:
    return f"replica {unit.index} of {unit.group.name} is replaced: the template has changed"
