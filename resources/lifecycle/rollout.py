"""Rollout: how a change of the template reaches running pods: one unit at a time, the next one only after the last one is ready again.

A unit is a pod of a standalone clique, or a whole replica of a scaling group. With a `maxUnavailable` of more than 1 as many units of that
clique or group may be away at a time; the others wait for their turn. Progress is read from the cluster: a unit is in transition
while it is missing, terminating, or new and not ready. There is no surge: a unit is deleted first, then its successor is created.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from engine.observed import Live
from engine.reason import Because, Reason
from resources.lifecycle.startup import parents
from resources.model.pod_facts import PodFacts, facts_of
from resources.model.template import UpdateBudget
from resources.model.view import CliqueView, GroupView, Removals, View

CANNOT_SPARE: Final = "minAvailable allows no deletion"
"""Why ready outdated pods stay although it is their turn."""
RUNNING: Final = ("Running", "Unknown")
"""The phases of pods that run, as far as is known."""


class UpdateAllowance(StrEnum):
    """Which units of a replica of the set may be replaced in this pass."""

    NOTHING = "nothing"
    UNTRIED = "untried"
    """None: the API server has not said yet whether it accepts pods of the new template."""
    REFUSED = "refused"
    """None: the API server refuses pods of the new template."""
    BROKEN = "broken"
    """Only units that are not ready anyway."""
    MORE = "more"
    """Units that are not ready; if there are none, ready ones of the clique or group in transition, as far as its maxUnavailable goes."""
    ONE = "one"
    """Units that are not ready; if there are none, ready ones of one clique or group: one, or as many as its maxUnavailable says."""


POSTPONED: Final[Mapping[UpdateAllowance, str]] = {
    UpdateAllowance.NOTHING: "another replica is updated first",
    UpdateAllowance.UNTRIED: "the API server has not yet accepted a pod of the new template",
    UpdateAllowance.REFUSED: "the API server refuses pods of the new template",
}
"""An allowance that allows nothing -> why outdated pods stay."""
UNACCEPTED: Final = (UpdateAllowance.UNTRIED, UpdateAllowance.REFUSED)
"""Allowances with which not even cliques are deleted that the template no longer has."""


class UpdateStage(Struct, frozen=True):
    """How far one replica of the set is updated."""

    index: int
    outdated: bool
    """Something in it was created from another template, and is ours to replace."""
    in_transition: bool
    """One of its units is missing, terminating, or new and not ready."""
    scheduled: bool
    """One of its pods is scheduled."""
    healthy: bool
    """All its units are ready."""
    removes: bool = False
    """A pod is running in one of its cliques that the template no longer has."""
    replaced: frozenset[str] = frozenset()
    """The cliques of the template whose pods the update replaces; where it removes others, all: any may have taken over their work."""
    runs: bool = False
    """One of the pods that the update replaces or removes is running."""
    has_room: bool = False
    """What is in transition belongs to one clique or group, whose maxUnavailable allows more."""

    @property
    def is_affected(self) -> bool:
        """Whether the update has something to replace or to remove in the replica."""
        return self.outdated or self.removes


def stage(view: View) -> UpdateStage:
    """How far the replica of the set that `view` shows is updated."""
    replaced, removes = _replaced_cliques(view), _removes_running(view)
    return UpdateStage(
        view.index,
        outdated=bool(replaced),
        in_transition=any(map(is_in_transition, view.cliques)),
        scheduled=any(pod.scheduled for clique in view.cliques for pod in clique.pods),
        healthy=all(map(is_fully_ready, view.cliques)),
        removes=removes,
        replaced=frozenset(clique.clique.name for clique in (view.cliques if removes else replaced)),
        runs=removes or any(pod.phase in RUNNING for clique in replaced for pod in _replaced_pods(clique)),
        has_room=bool(replaced) and _has_room(view),
    )


def _removes_running(view: View) -> bool:
    """Whether a pod runs in a clique that the template no longer has: not one of a scaling group's replica that is scaled in."""
    desired = {clique.id for clique in view.cliques}
    left = {live.uid for live in view.lives.of("PodClique") if not (live.id in desired or live.deleting_since or view.is_scaled_in(live))}
    return bool(left) and any(pod.controller and pod.controller.uid in left and _runs(pod) for pod in view.lives.of("Pod"))


def _runs(pod: Live) -> bool:
    return facts_of(pod).phase in RUNNING


def _replaced_cliques(view: View) -> list[CliqueView]:
    """The cliques that the update replaces, or whose pods it replaces: of a replica of a scaling group all."""
    outdated = [clique for clique in view.cliques if needs_update(clique)]
    units = {(clique.group.name, clique.group_replica) for clique in outdated if clique.group is not None}
    if not units:
        return outdated
    return [
        clique
        for clique in view.cliques
        if (needs_update(clique) if clique.group is None else (clique.group.name, clique.group_replica) in units)
    ]


def _replaced_pods(clique: CliqueView) -> Sequence[PodFacts]:
    """The serving pods of a clique that the update replaces."""
    return clique.assignment.kept if clique.group is not None else clique.outdated_pods


def current_replica(stages: Sequence[UpdateStage], last: int | None) -> int | None:
    """The index of the replica that is being updated; None if all are updated and ready.

    `last` is the replica that the status of the set names: it stays the current one until it is updated and ready. The status may be older
    than the last pass, so without it a replica in transition comes before those of which nothing has been replaced yet.
    """
    unfinished = [stage for stage in stages if stage.outdated or stage.in_transition]
    if any(stage.index == last for stage in unfinished):
        return last
    return min(unfinished, key=lambda stage: _order(stage, last)).index if unfinished else None


def update_allowances(stages: Sequence[UpdateStage], last: int | None) -> dict[int, UpdateAllowance]:
    """Replica index -> allowance, for the one outdated replica that may be changed now; every other replica may not be changed.

    A replica in transition comes first: it may contain outdated units that are not ready and keep its new ones from becoming ready.
    """
    outdated = [stage for stage in stages if stage.outdated]
    if not outdated:
        return {}
    chosen = min(outdated, key=lambda stage: _order(stage, last))
    in_transition = [stage for stage in stages if stage.in_transition]
    if not in_transition:
        return {chosen.index: UpdateAllowance.ONE}
    return {chosen.index: UpdateAllowance.MORE if chosen.has_room and in_transition == [chosen] else UpdateAllowance.BROKEN}


def _order(stage: UpdateStage, last: int | None) -> tuple[bool, bool, bool, bool, int]:
    """Sort key: in transition, named by the status, without a scheduled pod, not ready, lowest index."""
    return (not stage.in_transition, stage.index != last, stage.scheduled, stage.healthy, stage.index)


def needs_update(clique: CliqueView) -> bool:
    """Whether the clique, or one of its serving pods, is outdated and ours to replace: not with the update strategy OnDelete."""
    return not clique.on_delete and clique.live is not None and is_outdated(clique)


def is_outdated(clique: CliqueView) -> bool:
    """Whether the clique, or one of its serving pods, was created from another template, with any update strategy."""
    return clique.outdated or bool(clique.outdated_pods)


def is_outdated_pod(clique: CliqueView, pod: PodFacts) -> bool:
    """Whether the pod was created from another template than the current one."""
    return not clique.is_current(pod)


def is_in_transition(clique: CliqueView) -> bool:
    """Whether the clique or one of its pods is missing, terminating, or new and neither ready nor completed."""
    if clique.live is None or clique.terminating or clique.assignment.new or clique.assignment.terminating:
        return True
    return any(not (pod.ready or pod.completed) and not is_outdated_pod(clique, pod) for pod in clique.assignment.kept)


def is_fully_ready(clique: CliqueView) -> bool:
    """Whether every pod index of the clique has a pod, and every pod is ready or has completed."""
    return (
        clique.live is not None
        and not clique.terminating
        and not clique.assignment.new
        and all(pod.ready or pod.completed for pod in clique.assignment.kept)
    )


def removals(view: View, allowance: UpdateAllowance, *, is_current: bool) -> Removals:
    """The pods and cliques of this replica to delete now: all outdated units that are not ready; if there are none, one that is ready.

    `postponed_because` of the result says why other outdated pods stay. `is_current` says whether this replica is the one being updated.
    """
    if allowance in POSTPONED:
        return Removals(postponed_because=POSTPONED[allowance])
    pods = {
        pod.name: _because(f"the template has changed, and the pod {'has completed' if pod.completed else 'is not ready'}")
        for clique in _standalone(view)
        for pod in clique.outdated_pods
        if not pod.ready
    }
    broken = [unit for units in _group_replicas(view) for unit in units if _is_outdated_unit(unit) and not _is_ready(unit)]
    if pods or broken:
        cliques = {clique.name: _why_replaced(unit) for unit in broken for clique in unit.cliques}
        return Removals(pods, cliques, updating=True, postponed_because="units that are not ready are replaced first")
    ready = next(_ready_units(view, allowance), None) if allowance is not UpdateAllowance.BROKEN else None
    if ready is not None:
        return replace(ready, updating=True, postponed_because=ready.postponed_because or "one unit is updated at a time")
    if allowance is not UpdateAllowance.ONE:
        return Removals(updating=is_current, postponed_because="the last one replaced is not ready yet")
    if not view.has_token:
        return Removals(updating=True, postponed_because="pods that start after others cannot be created again without their token")
    if domain := _domain_of_others(view, filter(needs_update, view.cliques)):
        return Removals(updating=True, postponed_because=f"{domain}: pods deleted now could not be created again")
    return Removals(updating=True, postponed_because=CANNOT_SPARE, postponed_by=Reason.MIN_AVAILABLE)


class GroupReplica(Struct, frozen=True, eq=False):
    """One replica of a scaling group."""

    group: GroupView
    index: int
    cliques: tuple[CliqueView, ...]


def _ready_units(view: View, allowance: UpdateAllowance) -> Iterator[Removals]:
    """The ready outdated units of each clique and group that may be deleted, in the order in which these are updated."""
    is_more = allowance is UpdateAllowance.MORE
    for clique in _standalone(view):
        pods = [pod for pod in clique.outdated_pods if pod.ready and _can_be_created_again(view, clique)]
        if pods and (not is_more or is_in_transition(clique)) and (spared := _spared_pods(clique)):
            oldest = sorted(pods, key=lambda pod: (pod.live.created_at, pod.name))[:spared]
            because = dict.fromkeys((pod.name for pod in oldest), _because("the template has changed"))
            yield Removals(pods=because, postponed_because=_limit(clique.clique.budget, clique.name))
    for units in _group_replicas(view):
        if is_more and not any(map(_is_unit_in_transition, units)):
            continue
        outdated = [unit for unit in units if _is_outdated_unit(unit) and _unit_can_be_created_again(view, unit)]
        if outdated and (spared := _spared_replicas(units)):
            cliques = {clique.name: _why_replaced(unit) for unit in outdated[:spared] for clique in unit.cliques}
            group = units[0].group
            yield Removals(cliques=cliques, postponed_because=_limit(group.group.budget, group.name))


def _limit(budget: UpdateBudget, name: str) -> str:
    """Why units stay that are next, also those of other cliques and groups; empty where the rule is that of all."""
    return f"{name} is updated now, maxUnavailable: {budget.max_unavailable} at a time" if budget.max_unavailable > 1 else ""


def _spared_pods(clique: CliqueView) -> int:
    """How many ready pods of the clique may be deleted now."""
    kept = clique.assignment.kept
    if clique.clique.budget.max_unavailable == 1:
        return int(_can_spare_one(sum(pod.ready for pod in kept), clique.replicas, clique.clique.min_available))
    not_ready = (pod for pod in kept if not (pod.ready or pod.completed))
    away = {new.index for new in clique.assignment.new} | {pod.index for pod in (*clique.assignment.terminating, *not_ready)}
    return max(0, clique.clique.budget.max_unavailable - len(away))


def _spared_replicas(units: Sequence[GroupReplica]) -> int:
    """How many ready replicas of the group may be deleted now."""
    group = units[0].group
    if group.group.budget.max_unavailable == 1:
        return int(_can_spare_one(sum(map(_is_ready, units)), group.replicas, group.group.min_available))
    away = sum(_is_unit_in_transition(unit) or not _is_ready(unit) for unit in units)
    return max(0, group.group.budget.max_unavailable - away)


def _has_room(view: View) -> bool:
    """Whether what is in transition belongs to one clique or group, whose maxUnavailable allows more than is away."""
    moving = [clique for clique in view.cliques if is_in_transition(clique)]
    parts = {clique.group.name if clique.group is not None else clique.name: clique for clique in moving}
    if len(parts) != 1:
        return False
    (clique,) = parts.values()
    if clique.group is None:
        return clique.clique.budget.max_unavailable > 1 and _spared_pods(clique) > 0
    if clique.group.group.budget.max_unavailable == 1:
        return False
    units = next((units for units in _group_replicas(view) if units[0].group is clique.group), ())
    return bool(units) and _spared_replicas(units) > 0


def _can_be_created_again(view: View, clique: CliqueView) -> bool:
    """Whether a deleted pod of the clique could be created again.

    Not while the token is missing with which it watches its parents, nor while others keep a fabric domain that it needs and that is being
    deleted.
    """
    return (view.has_token or not parents(view, clique)) and not _domain_of_others(view, [clique])


def _domain_of_others(view: View, cliques: Iterable[CliqueView]) -> str:
    """A domain of these cliques that is being deleted and that others use, in words; empty if there is none."""
    for domain in (domain for clique in cliques for domain in view.domains_of(clique)):
        if domain.held_by and domain.held_by.others:
            return f"{domain.id.kind} {domain.id.name} is being deleted and is still used by {domain.held_by.others}"
    return ""


def _can_spare_one(ready: int, replicas: int, minimum: int) -> bool:
    """Whether one ready unit may be deleted: `minimum` ready ones remain or, if `minimum` is all of them, all the others are ready."""
    return ready - 1 >= min(minimum, replicas - 1)


def _standalone(view: View) -> Iterator[CliqueView]:
    return (clique for clique in view.cliques if clique.group is None and not clique.terminating and not clique.on_delete)


def _group_replicas(view: View) -> Iterator[Sequence[GroupReplica]]:
    """The replicas of each scaling group that is not being deleted, by index. Groups without replicas are left out."""
    members: dict[str, dict[int, list[CliqueView]]] = {}
    for clique in view.cliques:
        if clique.group is not None and not clique.group.terminating:
            members.setdefault(clique.group.name, {}).setdefault(clique.group_replica, []).append(clique)
    for group in view.groups:
        if replicas := members.get(group.name):
            yield [GroupReplica(group, index, tuple(cliques)) for index, cliques in sorted(replicas.items())]


def _is_outdated_unit(unit: GroupReplica) -> bool:
    """Whether one of the cliques of the replica needs an update."""
    return any(map(needs_update, unit.cliques))


def _is_unit_in_transition(unit: GroupReplica) -> bool:
    return any(map(is_in_transition, unit.cliques))


def _unit_can_be_created_again(view: View, unit: GroupReplica) -> bool:
    return all(_can_be_created_again(view, clique) for clique in unit.cliques)


def _is_ready(unit: GroupReplica) -> bool:
    """Whether each clique of the replica exists and has its minAvailable of ready pods, not counting terminating ones."""
    return all(
        clique.live is not None
        and not clique.terminating
        and sum(pod.ready for pod in clique.assignment.kept) >= clique.clique.min_available
        for clique in unit.cliques
    )


def _why_replaced(unit: GroupReplica) -> Because:
    return _because(f"replica {unit.index} of {unit.group.name} is replaced: the template has changed")


def _because(text: str) -> Because:
    return Because(Reason.TEMPLATE_CHANGED, text)
