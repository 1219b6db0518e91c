"""PartRemoval: a whole replica goes, or a whole set: pods first, then what they relied on, in the reverse of the order of its making."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime

from engine.blueprint import Desired
from engine.graph import Part, graph, part
from engine.ids import ResourceId
from engine.memo import Memo
from engine.observed import Live, Observed, Slice
from engine.plan import Wait
from engine.resource import Policy, Resource, Stance
from engine.verdict import earliest
from resources.domains.release import DomainRelease, leaving, owned
from resources.domains.users import claims
from resources.ports.configuration import Configuration
from resources.removal.teardown import depart, spares_its_own

ROOT, SET = "root", "set"
"""The keys of the parts that are no replica: the set itself, and what it has once."""


@dataclass(frozen=True, slots=True, eq=False)
class PartRemoval:
    """One part as it goes, and the domains in it."""

    part: Part
    domains: DomainRelease


def excess(observed: Observed, count: int, configuration: Configuration, now: datetime, memo: Memo) -> Iterator[PartRemoval]:
    """Replicas beyond the number asked for."""
    for key, lives in sorted(observed.slices.items()):
        if key not in (ROOT, SET) and int(key) >= count:
            why = f"replica {key} goes: {observed.root.id.name} is scaled to {count}"
            yield _departure(observed, key, lives, why, configuration, now, memo)


def _departure(
    observed: Observed, key: str, lives: Slice, why: str, configuration: Configuration, now: datetime, memo: Memo
) -> PartRemoval:
    kinds = [fabric.kind.name for fabric in configuration.fabrics]
    domains = [live for kind in kinds for live in lives.of(kind)]
    facts = (lives, why, configuration, *claims(observed, domains, configuration))

    def make() -> PartRemoval:
        going = leaving(observed, domains, configuration, why, now, (lives,))
        others = (live for live in lives.objects.values() if live.id.kind not in kinds)
        return PartRemoval(part(key, [*depart(others, why), *going.resources]), going)

    return memo.recall_until(("departure", key), facts, now, make, lambda made: made.domains.until)


def teardown(observed: Observed, policy: Policy, configuration: Configuration, now: datetime, memo: Memo) -> Desired:
    """Everything goes, the replicas first; when nothing is left, our finalizer falls."""
    root = observed.root
    why = f"{root.id.name} is being deleted"
    if spares_its_own(root):
        return Desired(
            graph([part(ROOT, [Resource(root.id, {}, f"{why}; what it owns is to stay, and is taken from it", stance=Stance.HOLD)])])
        )
    gone = [
        _departure(observed, key, lives, why, configuration, now, memo)
        for key, lives in observed.slices.items()
        if key != SET and lives.objects
    ]
    own = observed.slice(SET)
    shared = owned(observed, configuration, own)
    release = leaving(observed, shared, configuration, why, now, observed.slices.values())
    left = observed.count() + sum(live.controller is None for live in shared)
    parts = [part(ROOT, [_itself(root.id, policy, why, left)])]
    if own.objects or shared:
        rest = (live for live in own.objects.values() if live not in shared)
        parts.append(part(SET, [*_set_departing(rest, why, waits=bool(gone)), *release.resources]))
    going = (live for lives in observed.slices.values() for live in lives.of("Pod") if live.deleting_since)
    found = (*(one.domains for one in gone), release)
    return Desired(
        graph([*parts, *(one.part for one in gone)]),
        pending=(*(Wait(live.id, "is being deleted") for live in going), *(held for one in found for held in one.pending)),
        alarms=tuple(alarm for one in found for alarm in one.alarms),
        wake_at=earliest(one.until for one in found),
    )


def _itself(root: ResourceId, policy: Policy, why: str, left: int) -> Resource:
    if left:
        return Resource(root, {}, f"{why}; waits for {left} objects to be gone", stance=Stance.HOLD)
    return Resource(root, {}, why, stance=Stance.DROP, policy=policy)


def _set_departing(lives: Iterable[Live], why: str, *, waits: bool) -> Iterable[Resource]:
    if not waits:
        return depart(lives, why)
    return (Resource(live.id, {}, f"{why}; waits for the replicas to be gone", stance=Stance.HOLD) for live in lives)
