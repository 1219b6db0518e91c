"""Deletion: what is deleted of a replica or of a set, and in which order: nothing is deleted while a pod still uses it.

If a set is being deleted, its replicas are deleted first, then its shared objects, then its finalizer is removed.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Final

from msgspec import Struct

from engine.blueprint import Desired
from engine.graph import Part, graph, part
from engine.ids import ResourceId
from engine.memo import Memo
from engine.observed import Live, Observed, Slice
from engine.plan import Wait
from engine.reason import Because, Reason, earliest
from engine.resource import PLAIN, Drop, EventGroup, Hold, Policy
from engine.resource_plan import keepers
from resources.base import kinds
from resources.base.labels import GROUP_PROTECTION
from resources.children import podclique
from resources.children.child_kind import OTHER, ChildKind, ChildRows, ChildTable, DeletionGroup, KindName
from resources.domains.release import DomainRelease, claims_on, owned_domains, release_domains
from resources.model.growth_limit import KEPT
from resources.model.view import ROOT, SET, View
from resources.ports.configuration import Configuration

LEVELS: Final = 2
"""How many levels of a replica control others: scaling groups and cliques."""


class PartRemoval(Struct, frozen=True, eq=False):
    """A replica that is being deleted."""

    part: Part
    release: DomainRelease
    """The release of its fabric domains."""
    pending: tuple[Wait, ...]
    """Its pods that are being deleted."""


def excess_replicas(
    observed: Observed, count: int, wanted: int, table: ChildTable, configuration: Configuration, now: datetime, memo: Memo
) -> Iterator[PartRemoval]:
    """The removals of the replicas whose index is `count` or greater; those that are wanted, and that a limit leaves out, stay."""
    for key in sorted([key for key in observed.slices if key not in (ROOT, SET) and int(key) >= count]):
        if int(key) < wanted:
            yield _kept_replica(key, observed.slices[key], table.by_kind(configuration), memo)
            continue
        why = f"replica {key} is removed: {observed.root.id.name} is scaled to {count}"
        yield remove_part(observed, key, observed.slices[key], Because(Reason.SCALED_IN, why), table, configuration, now, memo)


def _kept_replica(key: str, lives: Slice, rows: ChildRows, memo: Memo) -> PartRemoval:
    """A replica that a limit leaves out, as it is; what another writer deletes of it goes, after what it controls."""

    def make() -> PartRemoval:
        leaving = {live.uid for live in lives.objects.values() if live.deleting_since is not None}
        for _ in range(LEVELS):
            leaving |= {live.uid for live in lives.objects.values() if live.controller is not None and live.controller.uid in leaving}
        kept = [Hold(live.id, KEPT) for live in lives.objects.values() if live.uid not in leaving]
        gone = [live for live in lives.objects.values() if live.uid in leaving]
        why = Because(Reason.USER_DELETED, "it, or what controls it, was deleted, and a limit of the set leaves out its replica")
        return PartRemoval(part(key, [*kept, *delete_in_order(gone, why, rows)]), DomainRelease(), tuple(pending_deletions(gone)))

    return memo.recall(("kept", key), (lives, rows), make)


def remove_part(
    observed: Observed,
    key: str,
    lives: Slice,
    because: Because,
    table: ChildTable,
    configuration: Configuration,
    now: datetime,
    memo: Memo,
) -> PartRemoval:
    """The removal of all objects of one part."""
    domain_kinds = [fabric.kind.name for fabric in configuration.fabrics]
    domains = [live for kind in domain_kinds for live in lives.of(kind)]
    facts = (lives, because.text, configuration, *claims_on(observed, domains, configuration))

    def make() -> PartRemoval:
        release = release_domains(observed, domains, configuration, because, now, (lives,))
        others = (live for live in lives.objects.values() if live.id.kind not in domain_kinds)
        deleted = delete_in_order(others, because, table.by_kind(configuration))
        return PartRemoval(part(key, [*deleted, *release.resources]), release, tuple(pending_deletions(lives.objects.values())))

    return memo.recall_until(("removal", key), facts, now, make, lambda removal: removal.release.until)


def teardown(observed: Observed, policy: Policy, table: ChildTable, configuration: Configuration, now: datetime, memo: Memo) -> Desired:
    """The removal of everything that the set owns. `policy` names the finalizer that is released from the set at the end.

    With `--cascade=orphan` nothing is removed: the garbage collector releases what the set owns.
    """
    root = observed.root
    why = f"{root.id.name} is being deleted"
    if orphans_its_children(root):
        return _orphaned(observed, why)
    because = Because(Reason.SET_DELETED, why)
    replicas = [
        remove_part(observed, key, lives, because, table, configuration, now, memo)
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
        shared = _shared_objects(others, because, table.by_kind(configuration), has_replicas=bool(replicas))
        parts.append(part(SET, [*shared, *release.resources]))
    terminating = pending_deletions(live for lives in observed.slices.values() for live in lives.of(kinds.POD.name))
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


def _shared_objects(lives: Iterable[Live], because: Because, rows: ChildRows, *, has_replicas: bool) -> Iterable[Drop | Hold]:
    if not has_replicas:
        return delete_in_order(lives, because, rows)
    return (Hold(live.id, f"{because.text}; waits for the replicas to be gone") for live in lives)


def obsolete_objects(view: View, desired: Collection[ResourceId], table: ChildTable, kept_because: str = "") -> Iterator[Drop | Hold]:
    """One resource, DROP or HOLD, for each object of the replica that is not desired, unless its kind leaves it alone.

    `kept_because`: why what the template no longer has stays; empty if it is deleted.
    """
    undesired = [live for live in view.lives.objects.values() if live.id not in desired]
    if not undesired:
        return
    rows = table.by_kind(view.configuration)
    groups: dict[DeletionGroup, list[Live]] = {}
    orphaning = {live.uid for kind in table.policies for live in view.lives.of(kind) if orphans_its_children(live)}
    for live in undesired:
        if live.controller is not None and live.controller.uid in orphaning:
            continue
        obsolete = rows.get(_kind(live), OTHER).obsolete(view, live)
        if obsolete is not None and _is_kept(view, live):
            yield Hold(live.id, KEPT)
        elif isinstance(obsolete, str):
            yield Hold(live.id, obsolete)
        elif obsolete is not None:
            groups.setdefault(obsolete, []).append(live)
    for group, lives in groups.items():
        if kept_because and not group.intended:
            yield from (Hold(live.id, f"{group.because.text}; it stays: {kept_because}") for live in lives)
            continue
        yield from delete_in_order(
            lives, group.because, rows, intended=group.intended, last=view.removals.deleted_last, event_group=group.event_group
        )


def _is_kept(view: View, live: Live) -> bool:
    """Whether an object belongs to a replica of a scaling group that a limit leaves out; what another writer deletes goes nevertheless."""
    clique = podclique.clique_of(view, live) or live
    return view.is_beyond_limits(clique) and live.deleting_since is None and clique.deleting_since is None


def delete_in_order(
    lives: Iterable[Live],
    because: Because,
    rows: ChildRows,
    *,
    intended: bool = True,
    last: Collection[str] = (),
    event_group: EventGroup | None = None,
) -> Iterator[Drop | Hold]:
    """One resource for each of these objects: DROP if it can be deleted now, HOLD while it has to wait for pods among them to be gone.

    `because` and `intended` apply to all of them. The cliques named in `last` are deleted after the other cliques. `event_group` is
    recorded once, in place of an event for each clique.
    """
    listed = tuple(lives)
    batch, kept = _batch(listed, rows, last), _kept_cliques(listed, rows)
    pods = sum(live.id.kind == kinds.POD.name for live in listed)
    for live in listed:
        row = rows.get(_kind(live), OTHER)
        if live.deleting_since is not None and keepers(live, PLAIN) == (GROUP_PROTECTION,):
            yield Hold(live.id, f"{because.text}; it goes once Kubernetes has seen that its pods are gone")
        elif row.while_deleting and live.deleting_since is not None:
            yield Hold(live.id, f"{because.text}; {row.while_deleting}")
        elif live.uid in kept:
            yield Hold(live.id, f"{because.text}; waits for {kept[live.uid].name} to be gone")
        elif not row.waits_for_pods or not pods:
            yield Drop(
                live.id,
                because.text,
                policy=row.policy,
                after=batch.deleted_after(live),
                intended=intended,
                event_group=event_group if row.in_event_group else None,
                reason=because.reason,
            )
        else:
            counted = "1 pod" if pods == 1 else f"{pods} pods"
            yield Hold(live.id, f"{because.text}; waits for {counted} to be gone")


def _kept_cliques(lives: Iterable[Live], rows: ChildRows) -> Mapping[str, ResourceId]:
    """The uid of an owner -> one of its cliques that finalizers of others keep: without its owner, no set would know it any more."""
    cliques = (live for live in lives if live.id.kind == kinds.PODCLIQUE.name and live.controller is not None)
    return {live.controller.uid: live.id for live in cliques if live.controller and keepers(live, rows.get(_kind(live), OTHER).policy)}


def pending_deletions(lives: Iterable[Live]) -> Iterator[Wait]:
    """One entry for each pod among these objects that is being deleted: the others wait for it. Plans say which ones finalizers keep."""
    deleting = (live for live in lives if live.id.kind == kinds.POD.name and live.deleting_since is not None)
    return (Wait(live.id, "is being deleted") for live in deleting if not keepers(live, PLAIN))


def orphans_its_children(live: Live) -> bool:
    """Whether the object was deleted with `--cascade=orphan` and the garbage collector still has to release its children."""
    return live.deleting_since is not None and "orphan" in live.finalizers


class _Batch(Struct, frozen=True):
    """Objects that are deleted together, with the indices that their order needs."""

    by_uid: Mapping[str, ResourceId]
    later: Mapping[KindName, frozenset[ResourceId]]
    """Kind -> the objects that are deleted after those of that kind although they do not own them."""
    last: frozenset[ResourceId]
    """The cliques that are deleted after all others."""

    def deleted_after(self, live: Live) -> frozenset[ResourceId]:
        """The objects that are deleted after this one: its owners, and those that need it to be gone first."""
        owners = (self.by_uid[owner.uid] for owner in live.owners if owner.uid in self.by_uid)
        is_before_last = live.id.kind == kinds.PODCLIQUE.name and live.id not in self.last
        return self.later[_kind(live)].union(owners, self.last if is_before_last else ())


def _batch(lives: Iterable[Live], rows: ChildRows, last: Collection[str]) -> _Batch:
    by_kind: dict[KindName, list[Live]] = {}
    for live in lives:
        by_kind.setdefault(_kind(live), []).append(live)
    return _Batch(
        {live.uid: live.id for of_kind in by_kind.values() for live in of_kind},
        {kind: frozenset(_later(kind, rows.get(kind, OTHER), by_kind)) for kind in by_kind},
        frozenset(live.id for live in by_kind.get((kinds.PODCLIQUE.group, kinds.PODCLIQUE.name), ()) if live.id.name in last),
    )


def _later(kind: KindName, row: ChildKind, by_kind: Mapping[KindName, Sequence[Live]]) -> Iterator[ResourceId]:
    """The objects that are deleted after those of a kind, except those that one of these owns."""
    for later in row.deleted_before:
        for live in by_kind.get((later.group, later.name), ()):
            if live.controller is None or live.controller.kind != kind[1]:
                yield live.id


def _kind(live: Live) -> KindName:
    return live.id.group, live.id.kind
