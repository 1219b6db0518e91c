"""Scaled parts: what the cliques and scaling groups of a set ask for beyond its specification, because they were scaled by themselves;
and which pods they have lost.
"""

from collections import Counter
from collections.abc import Mapping, Set
from math import inf

from msgspec import Struct

from engine.blueprint import NOT_SCALED, Asked, ScaledOut
from engine.conditions import is_true
from engine.ids import ResourceId
from engine.observed import Live, Observed, Slice
from engine.paths import get
from resources.base import kinds, labels, names
from resources.base.fields import GROUPS, cliques_of, count, mapping, mappings, members_of
from resources.blueprints.asked import shares_of
from resources.children.podgang import MOST_PODS
from resources.lifecycle.availability import INITIALIZED
from resources.ports.configuration import SizeLimits


class _Numbers(Struct, frozen=True):
    """The numbers of a live clique or scaling group."""

    id: str
    """Its name."""
    holder: str
    """The scaling group of a clique; empty if it has none."""
    index: int
    """The index of the group's replica that the clique belongs to."""
    replicas: int
    existed: int
    """How many pods, or replicas of the group, have existed at a time, as far as it is recorded."""


class _ScaledParts(Struct, frozen=True):
    """What was changed in one replica of a set after it was made."""

    cliques: tuple[_Numbers, ...]
    groups: tuple[_Numbers, ...]


def scaled(observed: Observed, limits: SizeLimits) -> ScaledOut:
    """What the live cliques and scaling groups of a set ask for beyond its specification, as far as the limits of a set and what a PodGang
    can list allow it."""
    changed = ((key, part.index("scaled parts", _scaled_parts)) for key, part in observed.slices.items())
    parts = [(key, part) for key, part in changed if part is not None]
    if not parts:
        return NOT_SCALED
    body = observed.proposal or observed.root.body
    pods = {str(clique.get("name")): count(mapping(clique.get("spec")).get("replicas")) for clique in cliques_of(body)}
    claims = {str(clique.get("name")): shares_of(clique, observed) for clique in cliques_of(body)}
    groups = {str(group.get("name")): group for group in mappings(get(body, GROUPS, ()))}
    pods_beyond = others_beyond = claims_beyond = never_created = 0
    is_growing = False
    for key, part in parts:
        prefix, specified = f"{observed.root.id.name}-{key}-", dict[str, int]()
        for each in part.groups:
            group = groups.get(each.id.removeprefix(prefix), {})
            number = specified[each.id] = count(group.get("replicas", 1))
            wanted, own = min(each.replicas, limits.cliques), [pods.get(name, 0) for name in members_of(group)]
            more = max(0, wanted - number)
            pods_beyond, others_beyond = pods_beyond + more * sum(own), others_beyond + more * (1 + len(own))
            of_cliques = sum(claims[name].for_replicas(pods[name]) for name in members_of(group) if name in claims)
            claims_beyond += more * (shares_of(group, observed).per_replica + of_cliques)
            is_growing |= wanted > max(number, each.existed)
        is_listed = sum(min(each.replicas, limits.pods) for each in part.cliques if not each.holder) <= MOST_PODS
        for each in part.cliques:
            wanted = min(each.replicas, limits.pods)
            if wanted > MOST_PODS or not (is_listed or each.holder):
                never_created += wanted
                continue
            name = each.id.removeprefix(f"{each.holder}-{each.index}-" if each.holder else prefix)
            more = max(0, wanted - pods.get(name, 0))
            pods_beyond += more
            claims_beyond += more * claims[name].per_replica if name in claims else 0
            is_specified = each.index < specified.get(each.holder, inf)
            is_growing |= wanted > max(pods.get(name, 0) if is_specified else 0, each.existed)
    existing = sum(len(part.of(kinds.POD.name)) for part in observed.slices.values())
    if existing >= limits.pods:
        return NOT_SCALED
    shares = (*claims.values(), *(shares_of(group, observed) for group in groups.values()))
    largest = max((each.for_replicas(1) for each in shares), default=0)
    claims_beyond = min(claims_beyond, largest * (limits.pods + 2 * limits.cliques))
    pods_beyond, others_beyond = min(pods_beyond, limits.pods), min(others_beyond, 2 * limits.cliques)
    return ScaledOut(Asked(pods_beyond + others_beyond + claims_beyond, light=pods_beyond, never_created=never_created), is_growing)


def lost(observed: Observed) -> Mapping[ResourceId, int]:
    """PodClique -> how many of its pods have existed and are gone, as far as it is recorded; cliques that have lost none are absent."""
    return {id: number for part in observed.slices.values() for id, number in part.index("lost pods", _lost_pods).items()}


def _lost_pods(part: Slice) -> Mapping[ResourceId, int]:
    pods, initialized = _pods_of_cliques(part), _initialized(part)
    cliques = [live for live in part.of(kinds.PODCLIQUE.name) if live.deleting_since is None]
    existed = {live: min(_replicas(live, "spec"), _pods_existed(live, pods[live.id.name], initialized)) for live in cliques}
    return {live.id: number - pods[live.id.name] for live, number in existed.items() if number > pods[live.id.name]}


def _scaled_parts(part: Slice) -> _ScaledParts | None:
    """The cliques and scaling groups that were changed, and all cliques of such groups; None if there are none.

    Others have the numbers that they were made with, and are not read.
    """
    groups = [live for live in part.of(kinds.SCALING_GROUP.name) if live.generation > 1 and live.deleting_since is None]
    changed = {live.id.name for live in groups}
    cliques = [
        live
        for live in part.of(kinds.PODCLIQUE.name)
        if (live.generation > 1 or live.labels.get(labels.SCALING_GROUP) in changed) and live.deleting_since is None
    ]
    if not cliques and not groups:
        return None
    pods = _pods_of_cliques(part)
    members = {
        (live.labels.get(labels.SCALING_GROUP), live.labels.get(labels.GROUP_REPLICA_INDEX)) for live in part.of(kinds.PODCLIQUE.name)
    }
    replicas = Counter(group for group, _ in members)
    initialized = _initialized(part)
    return _ScaledParts(
        tuple(_numbers(live, _pods_existed(live, pods[live.id.name], initialized)) for live in cliques),
        tuple(_numbers(live, max(replicas[live.id.name], _replicas(live, "status") if _is_observed(live) else 0)) for live in groups),
    )


def _pods_of_cliques(part: Slice) -> Counter[str]:
    return Counter(live.labels.get(labels.PODCLIQUE, "") for live in part.of(kinds.POD.name))


def _initialized(part: Slice) -> Set[str]:
    """The gangs that have had all their pods."""
    gangs = part.of(kinds.PODGANG.name)
    return {live.id.name for live in gangs if is_true(get(live.body, ("status", "conditions"), ()), INITIALIZED)}


def _pods_existed(clique: Live, pods: int, initialized: Set[str]) -> int:
    """How many pods a clique has had. It had all of them when its generation was observed, or its scaled gang was `initialized`."""
    is_scaled_gang = labels.BASE_PODGANG in clique.labels
    if _is_observed(clique) or (clique.generation == 1 and is_scaled_gang and clique.labels.get(labels.PODGANG) in initialized):
        return _replicas(clique, "spec")
    return max(pods, _replicas(clique, "status"))


def _is_observed(live: Live) -> bool:
    """Whether everything that a clique or a scaling group asks for now has existed once."""
    return bool(get(live.body, ("status", "observedGeneration")) == live.generation)


def _replicas(live: Live, field: str) -> int:
    return count(get(live.body, (field, "replicas"), 0))


def _numbers(live: Live, existed: int) -> _Numbers:
    index = names.index_in(live.labels.get(labels.GROUP_REPLICA_INDEX, "")) or 0
    return _Numbers(live.id.name, live.labels.get(labels.SCALING_GROUP, ""), index, _replicas(live, "spec"), existed)
