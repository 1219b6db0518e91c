"""Teardown: what a replica or a set that goes leaves to delete: of a set its replicas, then its shared objects, then its finalizer."""

from collections.abc import Iterable, Iterator
from datetime import datetime

from msgspec import Struct

from engine.blueprint import Desired
from engine.graph import Part, graph, part
from engine.ids import ResourceId
from engine.memo import Memo
from engine.observed import Live, Observed, Slice
from engine.plan import Wait
from engine.reason import Because, Reason, earliest
from engine.resource import Drop, Hold, Policy
from resources.domains.release import DomainRelease, claims_on, owned_domains, release_domains
from resources.model.view import ROOT, SET
from resources.ports.configuration import Configuration
from resources.removal.obsolete import delete_in_order, orphans_its_children, pending_deletions


class PartRemoval(Struct, frozen=True, eq=False):
    """A replica that is being deleted."""

    part: Part
    release: DomainRelease
    """The release of its fabric domains."""
    pending: tuple[Wait, ...]
    """Its pods that are being deleted."""


def excess_replicas(observed: Observed, count: int, configuration: Configuration, now: datetime, memo: Memo) -> Iterator[PartRemoval]:
    """The removals of the replicas whose index is `count` or greater."""
    for key, lives in sorted(observed.slices.items()):
        if key not in (ROOT, SET) and int(key) >= count:
            why = f"replica {key} is removed: {observed.root.id.name} is scaled to {count}"
            yield remove_part(observed, key, lives, Because(Reason.SCALED_IN, why), configuration, now, memo)


def remove_part(
    observed: Observed, key: str, lives: Slice, because: Because, configuration: Configuration, now: datetime, memo: Memo
) -> PartRemoval:
    """The removal of all objects of one part."""
    kinds = [fabric.kind.name for fabric in configuration.fabrics]
    domains = [live for kind in kinds for live in lives.of(kind)]
    facts = (lives, because.text, configuration, *claims_on(observed, domains, configuration))

    def make() -> PartRemoval:
        release = release_domains(observed, domains, configuration, because, now, (lives,))
        others = (live for live in lives.objects.values() if live.id.kind not in kinds)
        return PartRemoval(
            part(key, [*delete_in_order(others, because), *release.resources]), release, tuple(pending_deletions(lives.objects.values()))
        )

    return memo.recall_until(("removal", key), facts, now, make, lambda removal: removal.release.until)


def teardown(observed: Observed, policy: Policy, configuration: Configuration, now: datetime, memo: Memo) -> Desired:
    """The removal of everything that the set owns. `policy` names the finalizer that is released from the set at the end.

    With `--cascade=orphan` nothing is removed: the garbage collector releases what the set owns.
    """
    root = observed.root
    why = f"{root.id.name} is being deleted"
    if orphans_its_children(root):
        return _orphaned(observed, why)
    because = Because(Reason.SET_DELETED, why)
    replicas = [
        remove_part(observed, key, lives, because, configuration, now, memo)
        for key, lives in observed.slices.items()
        if key != SET and lives.objects
    ]
    own = observed.slice(SET)
    domains = owned_domains(observed, configuration, own)
    release = release_domains(observed, domains, configuration, because, now, observed.slices.values())
    remaining = observed.count() + sum(live.controller is None for live in domains)
    parts = [part(ROOT, [_root(root.id, policy, why, remaining)])]
    if own.objects or domains:
        others = (live for live in own.objects.values() if live not in domains)
        parts.append(part(SET, [*_shared_objects(others, because, has_replicas=bool(replicas)), *release.resources]))
    terminating = pending_deletions(live for lives in observed.slices.values() for live in lives.of("Pod"))
    releases = (*(removal.release for removal in replicas), release)
    return Desired(
        graph([*parts, *(removal.part for removal in replicas)]),
        pending=(*terminating, *(wait for each in releases for wait in each.pending)),
        alarms=tuple(alarm for each in releases for alarm in each.alarms),
        wake_at=earliest(each.until for each in releases),
    )


def _orphaned(observed: Observed, why: str) -> Desired:
    """The root and everything that it still owns stay as they are: the garbage collector takes the references to the root away."""
    why = f"{why} with --cascade=orphan; waits for the garbage collector to release what it owns"
    held = {key: [Hold(id, why) for id in lives.objects] for key, lives in observed.slices.items()}
    root = Hold(observed.root.id, why)
    return Desired(graph([part(ROOT, [root, *held.pop(ROOT, ())]), *(part(key, resources) for key, resources in held.items())]))


def _root(root: ResourceId, policy: Policy, why: str, remaining: int) -> Drop | Hold:
    if remaining:
        objects = "1 object" if remaining == 1 else f"{remaining} objects"
        return Hold(root, f"{why}; waits for {objects} to be gone")
    return Drop(root, why, policy=policy, reason=Reason.SET_DELETED)


def _shared_objects(lives: Iterable[Live], because: Because, *, has_replicas: bool) -> Iterable[Drop | Hold]:
    if not has_replicas:
        return delete_in_order(lives, because)
    return (Hold(live.id, f"{because.text}; waits for the replicas to be gone") for live in lives)
