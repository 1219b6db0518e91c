"""Obsolete objects: the live objects of a replica that are not desired: why they are deleted, and which are deleted together."""

from collections.abc import Collection, Iterable, Iterator, Mapping

from msgspec import Struct

from engine.ids import ResourceId
from engine.observed import Live
from engine.plan import Wait
from engine.reason import Because, Reason
from engine.resource import PLAIN, Drop, EventGroup, Hold, Policy
from resources.base import labels
from resources.model.gang_scheduling import is_gang_object, is_needed_by_pods
from resources.model.view import GroupView, View, group_replica

POLICIES = {
    "PodClique": Policy(finalizers=(labels.CLIQUE_FINALIZER,)),
    "PodCliqueScalingGroup": Policy(finalizers=(labels.GROUP_FINALIZER,)),
}
"""The policies of children with a finalizer of ours, except fabric domains."""

DELETED_FIRST = frozenset({"Pod", "HorizontalPodAutoscaler"})
"""Autoscalers must not scale what is being deleted; all other objects wait for the pods."""

DELETED_BEFORE: Mapping[str, frozenset[str]] = {
    "Secret": frozenset({"ServiceAccount"}),
    "RoleBinding": frozenset({"Role", "ServiceAccount"}),
}
"""Kind -> kinds that are deleted after it although they do not own it. The API server deletes the token Secret with its ServiceAccount."""


def orphans_its_children(live: Live) -> bool:
    """Whether the object was deleted with `--cascade=orphan` and the garbage collector still has to release its children."""
    return live.deleting_since is not None and "orphan" in (live.body["metadata"].get("finalizers") or ())


def delete_in_order(
    lives: Iterable[Live], because: Because, *, intended: bool = True, last: Collection[str] = (), event_group: EventGroup | None = None
) -> Iterator[Drop | Hold]:
    """One resource for each of these objects: DROP if it can be deleted now, HOLD while it has to wait for pods among them to be gone.

    `because` and `intended` apply to all of them. The cliques named in `last` are deleted after the other cliques, and resource claims
    after the cliques that share them. `event_group` is recorded once, in place of an event for each clique.
    """
    batch = _batch(lives, last)
    pods = sum(live.id.kind == "Pod" for live in batch.lives)
    for live in batch.lives:
        if live.id.kind == "ResourceClaim" and live.deleting_since is not None:
            yield Hold(live.id, f"{because.text}; its devices are being released")
        elif live.id.kind in DELETED_FIRST or not pods:
            yield _drop(live, because, intended, batch.deleted_after(live), event_group if live.id.kind == "PodClique" else None)
        else:
            counted = "1 pod" if pods == 1 else f"{pods} pods"
            yield Hold(live.id, f"{because.text}; waits for {counted} to be gone")


def pending_deletions(lives: Iterable[Live]) -> Iterator[Wait]:
    """One entry for each pod among these objects that is being deleted: the others wait for it."""
    return (Wait(live.id, "is being deleted") for live in lives if live.id.kind == "Pod" and live.deleting_since is not None)


class _Batch(Struct, frozen=True):
    """Objects that are deleted together, with the indices that their order needs."""

    lives: tuple[Live, ...]
    by_uid: Mapping[str, ResourceId]
    by_kind: Mapping[str, frozenset[ResourceId]]
    last: frozenset[ResourceId]
    """The cliques that are deleted after all others."""
    shared_claims: frozenset[ResourceId]
    """The claims that no clique owns: cliques share them."""

    def deleted_after(self, live: Live) -> frozenset[ResourceId]:
        """The objects that are deleted after this one: its owners, and those that need it to be gone first."""
        later = {self.by_uid[owner.uid] for owner in live.owners if owner.uid in self.by_uid}
        later.update(id for kind in DELETED_BEFORE.get(live.id.kind, ()) for id in self.by_kind.get(kind, ()))
        if live.id.kind == "PodClique":
            later |= self.shared_claims
            later |= self.last if live.id not in self.last else frozenset()
        return frozenset(later)


def _batch(lives: Iterable[Live], last: Collection[str]) -> _Batch:
    listed = tuple(lives)
    by_kind: dict[str, set[ResourceId]] = {}
    for live in listed:
        by_kind.setdefault(live.id.kind, set()).add(live.id)
    return _Batch(
        listed,
        {live.uid: live.id for live in listed},
        {kind: frozenset(ids) for kind, ids in by_kind.items()},
        last=frozenset(id for id in by_kind.get("PodClique", ()) if id.name in last),
        shared_claims=frozenset(live.id for live in listed if live.id.kind == "ResourceClaim" and not _is_of_one_clique(live)),
    )


def _is_of_one_clique(claim: Live) -> bool:
    return claim.controller is not None and claim.controller.kind == "PodClique"


def _drop(live: Live, because: Because, intended: bool, after: frozenset[ResourceId], event_group: EventGroup | None) -> Drop:
    return Drop(
        live.id,
        because.text,
        policy=POLICIES.get(live.id.kind, PLAIN),
        after=after,
        intended=intended,
        event_group=event_group,
        reason=because.reason,
    )


class DeletionGroup(Struct, frozen=True):
    """Why some objects are deleted together."""

    because: Because
    intended: bool = True
    """Whether a user intended the deletion; unintended ones count against the delete budget."""
    event_group: EventGroup | None = None
    """The replica that the objects are deleted with, if the deletion is reported as one event."""


def obsolete_objects(view: View, desired: Collection[ResourceId], kept_because: str = "") -> Iterator[Drop | Hold]:
    """One resource, DROP or HOLD, for each object of the replica that is not desired. Fabric domains are released elsewhere.

    `kept_because`: why what the template no longer has stays; empty if it is deleted.
    """
    groups: dict[DeletionGroup, list[Live]] = {}
    cliques = {live.uid: live for live in view.lives.of("PodClique")}
    orphaning = {live.uid for kind in POLICIES for live in view.lives.of(kind) if orphans_its_children(live)}
    domain_kinds = {fabric.kind.name for fabric in view.configuration.fabrics}
    for live in view.lives.objects.values():
        is_orphaned = live.controller is not None and live.controller.uid in orphaning
        if live.id not in desired and live.id.kind not in domain_kinds and not is_orphaned:
            if _has_gang(view, live) and is_needed_by_pods(live, view.lives, view.configuration):
                why = f"the set has another scheduler now; pods of {live.id.name} still need it"
                yield Hold(live.id, why)
                continue
            group = _deletion_group(view, live, cliques)
            if group is not None:
                groups.setdefault(group, []).append(live)
    for group, lives in groups.items():
        if kept_because and not group.intended:
            yield from (Hold(live.id, f"{group.because.text}; it stays: {kept_because}") for live in lives)
            continue
        yield from delete_in_order(
            lives, group.because, intended=group.intended, last=view.removals.deleted_last, event_group=group.event_group
        )


def _deletion_group(view: View, live: Live, cliques: Mapping[str, Live]) -> DeletionGroup | None:
    """The deletion group of an undesired object; None if nothing in the view explains it. `cliques` are the live cliques by uid."""
    if is_gang_object(live.id, view.configuration):
        return _of_scheduler_gang(view, live)
    match live.id.kind:
        case "Pod":
            owner = live.controller
            clique = cliques.get(owner.uid) if owner else None
            return _of_clique(view, clique) if clique and _is_removed(view, clique) else None
        case "PodClique":
            return _of_clique(view, live)
        case "PodCliqueScalingGroup":
            if live.deleting_since:
                return _deleted_by_user(live)
            return _unexpected(f"the template has no scaling group {live.id.name}")
        case "PodGang":
            return _of_gang(view, live)
        case "ResourceClaim":
            return _of_claim(view, live, cliques)
        case "HorizontalPodAutoscaler":
            targets = {clique.name for clique in view.cliques} | {group.name for group in view.groups}
            why = f"the template has no autoscaling for {live.id.name}"
            return DeletionGroup(Because(Reason.TEMPLATE_CHANGED, why)) if live.id.name in targets else _unexpected(why)
    return None


def _is_removed(view: View, clique: Live) -> bool:
    """Whether the live clique should not exist now."""
    return not any(clique.id == candidate.id and view.keeps(candidate) for candidate in view.cliques)


def _of_clique(view: View, clique: Live) -> DeletionGroup:
    group = view.group_of(clique)
    if group is not None and group.live is not None and group.terminating:
        return _deleted_by_user(group.live)
    if clique.deleting_since is not None:
        return _deleted_by_user(clique)
    if clique.id.name in view.removals.cliques:
        is_whole = view.removals.recycled
        event_group = _event_of_replica(view) if is_whole else _event_of_group_replica(view, group, group_replica(clique))
        return DeletionGroup(view.removals.cliques[clique.id.name], event_group=event_group)
    if group is not None and (index := group_replica(clique)) is not None and index >= group.replicas:
        return _scaled_in(view, group, index)
    return _unexpected(f"the template has no clique {clique.id.name}")


def _of_claim(view: View, claim: Live, cliques: Mapping[str, Live]) -> DeletionGroup:
    """A claim is deleted with its clique or scaling group, with a removed replica of that group, or when no pod has its index any more."""
    owner = claim.controller
    clique = cliques.get(owner.uid) if owner else None
    if clique is not None:
        no_index = DeletionGroup(Because(Reason.SCALED_IN, "no pod has its index any more"))
        return _of_clique(view, clique) if _is_removed(view, clique) else no_index
    group = view.group_of(claim)
    if group is not None and group.live is not None and group.terminating:
        return _deleted_by_user(group.live)
    if group is not None and (index := group_replica(claim)) is not None and index >= group.replicas:
        return _scaled_in(view, group, index)
    return _unexpected(f"the template has no claim {claim.id.name}")


def _of_gang(view: View, gang: Live) -> DeletionGroup:
    """A scaled gang is deleted with its replica of the scaling group: gang 0 is that of the first replica beyond minAvailable."""
    for group in view.groups:
        number = gang.id.name.removeprefix(f"{group.name}-")
        if number.isascii() and number.isdigit():
            if group.live is not None and group.terminating:
                return _deleted_by_user(group.live)
            return _scaled_in(view, group, int(number) + group.group.min_available)
    return _unexpected(f"the template has no gang {gang.id.name}")


def _of_scheduler_gang(view: View, live: Live) -> DeletionGroup:
    """The scheduler's object for a gang is deleted with the gang, or when the set has another scheduler."""
    if _has_gang(view, live):
        return _unexpected(f"the scheduler of {view.root} needs no {live.id.kind} {live.id.name}")
    return _of_gang(view, live)


def _has_gang(view: View, live: Live) -> bool:
    """Whether the replica has a gang of that name."""
    return any(gang.id.name == live.id.name for gang in view.gangs)


def _scaled_in(view: View, group: GroupView, index: int) -> DeletionGroup:
    why = f"replica {index} of {group.name} is removed: {group.name} is scaled to {group.replicas}"
    return DeletionGroup(Because(Reason.SCALED_IN, why), event_group=_event_of_group_replica(view, group, index))


def _event_of_replica(view: View) -> EventGroup:
    name = f"PodCliqueSet replica {view.index}"
    return _event_of_set(view, "PodCliqueSetReplicaDelete", f"{name} deleted", f"Error deleting {name}")


def _event_of_group_replica(view: View, group: GroupView | None, index: int | None) -> EventGroup | None:
    if group is None or index is None:
        return None
    name = f"PodCliqueScalingGroup {group.name} replicaIndex: {index}"
    return _event_of_set(view, "PodCliqueScalingGroupReplicaDelete", f"Deleted {name}", f"Error deleting {name}")


def _event_of_set(view: View, reason: str, done: str, failed: str) -> EventGroup:
    return EventGroup(view.template.id, view.template.identity, reason, done, failed)


def _deleted_by_user(live: Live) -> DeletionGroup:
    """The objects below a clique or scaling group that is terminating and still desired."""
    return DeletionGroup(Because(Reason.USER_DELETED, f"{live.id.kind} {live.id.name} was deleted and is created again"))


def _unexpected(why: str) -> DeletionGroup:
    return DeletionGroup(Because(Reason.ORPHANED, why), intended=False)
