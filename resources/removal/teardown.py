"""Teardown: what goes, in the order in which nothing is taken from under a pod that still runs."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass

from engine.ids import ResourceId
from engine.observed import Live
from engine.resource import PLAIN, EventGroup, Policy, Resource, Stance
from resources.base import labels

POLICIES = {
    "PodClique": Policy(finalizers=(labels.CLIQUE_FINALIZER,)),
    "PodCliqueScalingGroup": Policy(finalizers=(labels.GROUP_FINALIZER,)),
}
"""The kinds of children that bear a finalizer of ours, fabric domains apart."""

AT_ONCE = frozenset({"Pod", "HorizontalPodAutoscaler"})
"""What goes first: nobody may scale what is leaving, and everything else waits for the pods."""


RELIES_ON: Mapping[str, frozenset[str]] = {
    "Secret": frozenset({"ServiceAccount"}),
    "RoleBinding": frozenset({"Role", "ServiceAccount"}),
}
"""Who goes before whom among those without an owner in common: a token goes with its account, if we are not quicker."""


def spares_its_own(live: Live) -> bool:
    """Whether somebody has deleted it with `--cascade=orphan`, and the garbage collector has not yet taken from it what it owns."""
    return live.deleting_since is not None and "orphan" in (live.body["metadata"].get("finalizers") or ())


def depart(
    lives: Iterable[Live], why: str, *, intended: bool = True, last: Collection[str] = (), event_group: EventGroup | None = None
) -> Iterator[Resource]:
    """These objects go together: autoscalers and pods at once, everything else when the pods among them are gone.

    The cliques named in `last` go after the others, and resource claims after the cliques that share them. The cliques are what the
    event_group consists of.
    """
    party = _party(lives, last)
    pods = sum(live.id.kind == "Pod" for live in party.lives)
    for live in party.lives:
        if live.id.kind == "ResourceClaim" and live.deleting_since is not None:
            yield Resource(live.id, {}, f"{why}; its devices are being released", stance=Stance.HOLD)
        elif live.id.kind in AT_ONCE or not pods:
            yield _drop(live, why, intended, party.survivors(live), event_group if live.id.kind == "PodClique" else None)
        else:
            yield Resource(live.id, {}, f"{why}; waits for {'1 pod' if pods == 1 else f'{pods} pods'} to be gone", stance=Stance.HOLD)


@dataclass(frozen=True, slots=True)
class _Party:
    """Objects that go together."""

    lives: tuple[Live, ...]
    by_uid: Mapping[str, ResourceId]
    by_kind: Mapping[str, frozenset[ResourceId]]
    deleted_last: frozenset[ResourceId]
    shared_claims: frozenset[ResourceId]

    def survivors(self, live: Live) -> frozenset[ResourceId]:
        """Those that go only after it: its owners, and what relies on it to be gone."""
        later = {self.by_uid[owner.uid] for owner in live.owners if owner.uid in self.by_uid}
        later.update(id for kind in RELIES_ON.get(live.id.kind, ()) for id in self.by_kind.get(kind, ()))
        if live.id.kind == "PodClique":
            later |= self.shared_claims
            later |= self.deleted_last if live.id not in self.deleted_last else frozenset()
        return frozenset(later)


def _party(lives: Iterable[Live], last: Collection[str]) -> _Party:
    listed = tuple(lives)
    by_kind: dict[str, set[ResourceId]] = {}
    for live in listed:
        by_kind.setdefault(live.id.kind, set()).add(live.id)
    return _Party(
        listed,
        {live.uid: live.id for live in listed},
        {kind: frozenset(ids) for kind, ids in by_kind.items()},
        deleted_last=frozenset(id for id in by_kind.get("PodClique", ()) if id.name in last),
        shared_claims=frozenset(live.id for live in listed if live.id.kind == "ResourceClaim" and not _is_of_one_clique(live)),
    )


def _is_of_one_clique(claim: Live) -> bool:
    return claim.controller is not None and claim.controller.kind == "PodClique"


def _drop(live: Live, why: str, intended: bool, after: frozenset[ResourceId], event_group: EventGroup | None) -> Resource:
    policy = POLICIES.get(live.id.kind, PLAIN)
    return Resource(live.id, {}, why, stance=Stance.DROP, policy=policy, after=after, intended=intended, event_group=event_group)
