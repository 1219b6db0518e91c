"""Order: the order in which objects are deleted, so that no pod loses what it uses: autoscalers and pods first, then everything else."""

from collections.abc import Collection, Iterable, Iterator, Mapping

from msgspec import Struct

from engine.ids import ResourceId
from engine.observed import Live
from engine.plan import Wait
from engine.reason import Because
from engine.resource import PLAIN, EventGroup, Policy, Resource, Stance
from resources.base import labels

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
) -> Iterator[Resource]:
    """One resource for each of these objects: DROP if it can be deleted now, HOLD while it has to wait for pods among them to be gone.

    `because` and `intended` apply to all of them. The cliques named in `last` are deleted after the other cliques, and resource claims
    after the cliques that share them. `event_group` is recorded once, in place of an event for each clique.
    """
    batch = _batch(lives, last)
    pods = sum(live.id.kind == "Pod" for live in batch.lives)
    for live in batch.lives:
        if live.id.kind == "ResourceClaim" and live.deleting_since is not None:
            yield Resource(live.id, {}, f"{because.text}; its devices are being released", stance=Stance.HOLD)
        elif live.id.kind in DELETED_FIRST or not pods:
            yield _drop(live, because, intended, batch.deleted_after(live), event_group if live.id.kind == "PodClique" else None)
        else:
            counted = "1 pod" if pods == 1 else f"{pods} pods"
            yield Resource(live.id, {}, f"{because.text}; waits for {counted} to be gone", stance=Stance.HOLD)


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


def _drop(live: Live, because: Because, intended: bool, after: frozenset[ResourceId], event_group: EventGroup | None) -> Resource:
    return Resource(
        live.id,
        {},
        because.text,
        stance=Stance.DROP,
        policy=POLICIES.get(live.id.kind, PLAIN),
        after=after,
        intended=intended,
        event_group=event_group,
        reason=because.reason,
    )
