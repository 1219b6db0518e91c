"""Leftovers: what stands in a replica and is not, or no longer, asked for there: why, and what goes together."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from engine.ids import ResourceId
from engine.observed import Live
from engine.resource import EventGroup, Resource
from resources.base import labels
from resources.model.view import GroupView, View
from resources.removal.teardown import POLICIES, depart, spares_its_own


@dataclass(frozen=True, slots=True)
class DeletionGroup:
    """Why some objects go, together; whether somebody asked for it, and as what it is told."""

    why: str
    intended: bool = True
    event_group: EventGroup | None = None


def leftovers(view: View, wanted: Collection[ResourceId]) -> Iterator[Resource]:
    """Everything of our making in the replica that is not wanted, as what it is to become; fabric domains apart."""
    bunches: dict[DeletionGroup, list[Live]] = {}
    cliques = {live.uid: live for live in view.lives.of("PodClique")}
    sparing = {live.uid for kind in POLICIES for live in view.lives.of(kind) if spares_its_own(live)}
    domains = {fabric.kind.name for fabric in view.configuration.fabrics}
    for live in view.lives.objects.values():
        spared = live.controller is not None and live.controller.uid in sparing
        if live.id not in wanted and live.id.kind not in domains and not spared:
            bunch = _bunch(view, live, cliques)
            if bunch is not None:
                bunches.setdefault(bunch, []).append(live)
    for bunch, lives in bunches.items():
        yield from depart(lives, bunch.why, intended=bunch.intended, last=view.moves.deleted_last, event_group=bunch.event_group)


def _bunch(view: View, live: Live, cliques: dict[str, Live]) -> DeletionGroup | None:
    """The bunch that an unwanted object belongs to; None for what nothing here can explain."""
    match live.id.kind:
        case "Pod":
            owner = live.controller
            clique = cliques.get(owner.uid) if owner else None
            return _of_clique(view, clique) if clique and _is_leaving(view, clique) else None
        case "PodClique":
            return _of_clique(view, live)
        case "PodCliqueScalingGroup":
            return (
                _deleted(live)
                if live.deleting_since
                else DeletionGroup(f"the template has no scaling group {live.id.name}", intended=False)
            )
        case "PodGang":
            return _of_gang(view, live)
        case "ResourceClaim":
            return _of_claim(view, live, cliques)
        case "HorizontalPodAutoscaler":
            targets = {clique.name for clique in view.cliques} | {group.name for group in view.groups}
            known = live.id.name in targets
            return DeletionGroup(f"no autoscaling is asked for {live.id.name}", intended=known)
    return None


def _is_leaving(view: View, clique: Live) -> bool:
    return not any(clique.id == one.id and view.stays(one) for one in view.cliques)


def _of_clique(view: View, clique: Live) -> DeletionGroup:
    group = _group(view, clique)
    if group is not None and group.live is not None and group.going:
        return _deleted(group.live)
    if clique.deleting_since is not None:
        return _deleted(clique)
    if clique.id.name in view.moves.cliques:
        event_group = _as_replica(view) if view.moves.recycled else _as_group_replica(view, group, _group_replica(clique))
        return DeletionGroup(view.moves.cliques[clique.id.name], event_group=event_group)
    if group is not None and (index := _group_replica(clique)) is not None and index >= group.replicas:
        return _scaled_in(view, group, index)
    return DeletionGroup(f"the template has no clique {clique.id.name}", intended=False)


def _of_claim(view: View, claim: Live, cliques: dict[str, Live]) -> DeletionGroup:
    """A claim goes with the clique, or with the replica of a group, whose pods use it."""
    owner = claim.controller
    clique = cliques.get(owner.uid) if owner else None
    if clique is not None:
        return _of_clique(view, clique) if _is_leaving(view, clique) else DeletionGroup("no pod has the seat that it is for")
    group = _group(view, claim)
    if group is not None and group.live is not None and group.going:
        return _deleted(group.live)
    if group is not None and (index := _group_replica(claim)) is not None and index >= group.replicas:
        return _scaled_in(view, group, index)
    return DeletionGroup(f"nothing asks for the claim {claim.id.name}", intended=False)


def _of_gang(view: View, gang: Live) -> DeletionGroup:
    for group in view.groups:
        number = gang.id.name.removeprefix(f"{group.name}-")
        if number.isascii() and number.isdigit():
            index = int(number) + group.group.min_available
            return _deleted(group.live) if group.live is not None and group.going else _scaled_in(view, group, index)
    return DeletionGroup(f"the template has no gang {gang.id.name}", intended=False)


def _scaled_in(view: View, group: GroupView, index: int) -> DeletionGroup:
    return DeletionGroup(
        f"replica {index} of {group.name} goes: it is scaled to {group.replicas}", event_group=_as_group_replica(view, group, index)
    )


def _as_replica(view: View) -> EventGroup:
    what = f"PodCliqueSet replica {view.index}"
    return _event_group(view, "PodCliqueSetReplicaDelete", f"{what} deleted", f"Error deleting {what}")


def _as_group_replica(view: View, group: GroupView | None, index: int | None) -> EventGroup | None:
    if group is None or index is None:
        return None
    what = f"PodCliqueScalingGroup {group.name} replicaIndex: {index}"
    return _event_group(view, "PodCliqueScalingGroupReplicaDelete", f"Deleted {what}", f"Error deleting {what}")


def _event_group(view: View, reason: str, done: str, failed: str) -> EventGroup:
    """What cliques go as is told on the set."""
    return EventGroup(view.template.id, view.template.identity, reason, done, failed)


def _deleted(live: Live) -> DeletionGroup:
    return DeletionGroup(f"{live.id.kind} {live.id.name} has been deleted; it is made again")


def _group(view: View, clique: Live) -> GroupView | None:
    name = clique.labels.get(labels.SCALING_GROUP)
    return next((group for group in view.groups if group.name == name), None)


def _group_replica(clique: Live) -> int | None:
    told = clique.labels.get(labels.GROUP_REPLICA_INDEX, "")
    return int(told) if told.isascii() and told.isdigit() else None
