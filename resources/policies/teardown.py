"""Teardown: what goes, in the order in which nothing is taken from under a pod that still runs."""

from collections.abc import Collection, Iterable, Iterator, Sequence

from engine.ids import ResourceId
from engine.observed import Live
from engine.resource import Occasion, Policy, Resource, Stance
from resources import labels

FINALIZERS = {"PodClique": (labels.CLIQUE_FINALIZER,), "PodCliqueScalingGroup": (labels.GROUP_FINALIZER,)}

AT_ONCE = frozenset({"Pod", "HorizontalPodAutoscaler"})
"""What goes first: nobody may scale what is leaving, and everything else waits for the pods."""


def depart(
    lives: Iterable[Live], why: str, *, asked: bool = True, last: Collection[str] = (), occasion: Occasion | None = None
) -> Iterator[Resource]:
    """These objects go together: autoscalers and pods at once, everything else when the pods among them are gone.

    The cliques named in `last` go after the others, and resource claims after the cliques that share them. The cliques are what the
    occasion consists of.
    """
    listed = list(lives)
    witnesses = frozenset(live.id for live in listed if live.id.kind == "PodClique" and live.id.name in last)
    claims = frozenset(live.id for live in listed if live.id.kind == "ResourceClaim" and not _is_of_one_clique(live))
    pods = sum(live.id.kind == "Pod" for live in listed)
    for live in listed:
        if live.id.kind == "ResourceClaim" and live.deleting_since is not None:
            yield Resource(live.id, {}, f"{why}; its devices are being released", stance=Stance.HOLD)
        elif live.id.kind in AT_ONCE or not pods:
            survivors = claims | (witnesses if live.id not in witnesses else frozenset()) if live.id.kind == "PodClique" else frozenset()
            after = _owners(live, listed) | survivors
            yield _drop(live, why, asked, after, occasion if live.id.kind == "PodClique" else None)
        else:
            yield Resource(live.id, {}, f"{why}; waits for {'1 pod' if pods == 1 else f'{pods} pods'} to be gone", stance=Stance.HOLD)


def _is_of_one_clique(claim: Live) -> bool:
    return claim.controller is not None and claim.controller.kind == "PodClique"


def _owners(live: Live, lives: Sequence[Live]) -> frozenset[ResourceId]:
    """Its owners among those that go as well: they were there before it and go after it."""
    uids = {owner.uid for owner in live.owners}
    return frozenset(one.id for one in lives if one.uid in uids)


def _drop(live: Live, why: str, asked: bool, after: frozenset[ResourceId], occasion: Occasion | None) -> Resource:
    policy = Policy(finalizers=FINALIZERS.get(live.id.kind, ()))
    return Resource(live.id, {}, why, stance=Stance.DROP, policy=policy, after=after, asked=asked, occasion=occasion)
