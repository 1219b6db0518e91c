"""ForeignObjects: objects that no listing shows and that have a name which a root needs: foreign ones, or our own without our labels."""

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from types import MappingProxyType
from typing import NamedTuple

import anyio

from engine.blueprint import Blueprint, C
from engine.errors import ClusterError, Unauthorized
from engine.ids import ResourceId
from engine.memo import differences
from engine.observed import EMPTY, Live, Observed, World, by_root
from engine.operation import Create, Delete, Operation, Replace, Result
from engine.plan import Plan
from engine.runtime.provider import TRANSIENT, Provider, TakenNames
from engine.runtime.rejections import is_name_conflict

MAX_LOOK_UPS = 1000
"""How many objects with a taken name one pass reads."""
CONCURRENCY = 8
"""How many objects are read at a time."""


class Candidate(NamedTuple):
    """A name to look up for a root."""

    root: ResourceId
    id: ResourceId
    needed: bool
    """Whether the root is to have an object of this name: then the existing one matters, also if others have made it."""


def unlisted(
    blueprints: Sequence[Blueprint[C]], world: World, plans: Iterable[Plan], configuration: C, *, also_new: bool = True
) -> Iterator[Candidate]:
    """What a pass looks up that knows no earlier one: the objects that the plans create, now or later, and those that others mention.

    Not the roots themselves, which are listed whatever their labels are. `also_new`: also for roots that have no object at all.
    """
    by_root = {observed.root.id: observed for observed in world.roots}
    by_kind = {blueprint.kind.name: blueprint for blueprint in blueprints}
    for plan in plans:
        observed = by_root.get(plan.root)
        if observed is None or not (also_new or any(slice.objects for slice in observed.slices.values())):
            continue
        blueprint = by_kind[plan.root.kind]
        needed = [operation.id for operation in plan.operations if isinstance(operation, Create) and operation.id != plan.root]
        if observed.root.uid:
            needed += [wait.id for wait in plan.deferred if not _is_known(blueprint, observed, wait.id)]
        yield from (Candidate(plan.root, id, needed=True) for id in needed)
        if needed:
            mentioned = (id for id in blueprint.mentioned(observed, configuration) if not _is_known(blueprint, observed, id))
            yield from (Candidate(plan.root, id, needed=False) for id in mentioned)


def disappeared(previous: World, world: World, deleted: Set[str]) -> Iterator[Candidate]:
    """What a pass looks up that knows the observed world of the one before: the objects of a root that are not listed any more.

    Those that were being deleted, and `deleted` ones (the uids that we have deleted ourselves), are gone. Of the others, which are few, a
    list by label does not show whether they were deleted at once or have lost their labels.
    """
    for before, now in _changed(previous, world):
        if before.root.uid != now.root.uid:
            continue
        for key, slice in before.slices.items():
            if (remaining := now.slices.get(key, EMPTY)) is slice:
                continue
            for id, live in slice.objects.items():
                if id not in remaining.objects and live.deleting_since is None and live.uid not in deleted:
                    if id not in now.foreign and world.incomplete.keys().isdisjoint(id.keys()):
                        yield Candidate(now.root.id, id, needed=False)


def _is_known(blueprint: Blueprint[C], observed: Observed, id: ResourceId) -> bool:
    """Whether the pass knows the object, or cannot know it."""
    keys, own = id.keys(), observed.slice(blueprint.part_of(observed.root.id, id)).objects
    reference = observed.references.objects.get(id)
    return (
        id == observed.root.id
        or id in own
        or id in observed.foreign
        or (observed.elsewhere(id) is not None and not (reference is not None and _is_controlled(reference, observed.root, own)))
        or not observed.incomplete.isdisjoint(keys)
        or not observed.unserved.isdisjoint(keys)
    )


def _is_controlled(live: Live, root: Live, own: Mapping[ResourceId, Live]) -> bool:
    """Whether an object that is listed for another reason is the root's own, and has lost the labels by which it is listed as such."""
    owner = live.controller
    return owner is not None and (owner.uid == root.uid or any(each.uid == owner.uid for each in own.values()))


def _changed(previous: World, world: World) -> Iterator[tuple[Observed, Observed]]:
    """The roots of which something has changed, before and now; not those that came or went."""
    before, now = by_root(previous.roots), by_root(world.roots)
    for id in differences(before, now):
        old, new = before.get(id), now.get(id)
        if old is not None and new is not None and old is not new:
            yield old, new


class NameSearch(NamedTuple):
    """The result of looking names up."""

    is_new: bool
    """Whether an object exists that was not known."""
    unread: Mapping[str, ClusterError]
    """Kind name -> why it is not known which of its objects exist."""


class ForeignObjects:
    """Remembers objects that no list by label shows: those that were looked up, and those that creates have run into."""

    def __init__(self) -> None:
        self._known: dict[ResourceId, dict[ResourceId, Live]] = {}
        self._deleted: set[str] = set()
        """The uids of the objects that were deleted or replaced before the last observation, and after the one before it."""
        self._deleted_since: set[str] = set()
        """Those that were since."""
        self._deleting: set[str] = set()
        """Those whose deletion or replacement is being sent: a watch may report it before the call is answered."""

    @property
    def known(self) -> Mapping[ResourceId, Sequence[Live]]:
        """Root -> the foreign objects that have its names. Roots without any are absent."""
        return {root: tuple(objects.values()) for root, objects in self._known.items()}

    @property
    def deleted(self) -> Set[str]:
        """The uids of the objects that are gone since the observation before because we deleted or replaced them, among others."""
        return self._deleted.union(self._deleted_since, self._deleting)

    def note_call(self, operation: Operation) -> None:
        """Remember what is being deleted."""
        if isinstance(operation, Delete | Replace):
            self._deleting.add(operation.expect.uid)

    def note_deleted(self, result: Result) -> None:
        """Remember what was deleted."""
        if isinstance(result.operation, Delete | Replace):
            self._deleting.discard(result.operation.expect.uid)
            self._deleted_since.add(result.operation.expect.uid)

    def note_observed(self) -> None:
        """Forget what was deleted before the observation that has just been compared with the one before it."""
        self._deleted, self._deleted_since = self._deleted_since, set()

    def note(self, plans: Sequence[Plan], results: Sequence[Result]) -> None:
        """Remember the objects of those results that are name conflicts."""
        roots = {id(operation): plan.root for plan in plans for operation in plan.operations}
        for result in results:
            if is_name_conflict(result) and result.existing is not None:
                self._known.setdefault(roots[id(result.operation)], {})[result.operation.id] = result.existing

    async def look_up(self, provider: Provider, candidates: Iterable[Candidate]) -> NameSearch:
        """Find out which of the candidates exist, and remember those.

        One that exists has only lost its labels, or is foreign. Of those that the root does not need, only what has a controller is
        remembered. Raises `Unauthorized` and errors that are transient.
        """
        wanted = {(root, id): needed for root, id, needed in sorted(candidates) if id not in self._known.get(root, ())}
        names = await provider.taken({id for _, id in wanted}) if wanted else TakenNames()
        taken = sorted((root, id) for root, id in wanted if id in names.ids)[:MAX_LOOK_UPS]
        existing = await _read(provider, [id for _, id in taken])
        is_new = False
        for root, id in taken:
            live = existing.get(id)
            if live is not None and (wanted[root, id] or live.controller is not None):
                self._known.setdefault(root, {})[id] = live
                is_new = True
        return NameSearch(is_new, names.unread)

    async def refresh(self, provider: Provider) -> None:
        """Read the objects again and forget those that no longer exist. One that must not be read is kept as last known.

        Raises `Unauthorized` and errors that are transient.
        """
        if not self._known:
            return
        known = {id: live for objects in self._known.values() for id, live in objects.items()}
        current = await _read(provider, sorted(known), otherwise=known)
        refreshed = {root: {id: current[id] for id in objects if id in current} for root, objects in self._known.items()}
        self._known = {root: objects for root, objects in refreshed.items() if objects}

    def forget_listed(self, world: World) -> None:
        """Forget what needs no read: objects that a listing shows as the root's own, the root itself, and all objects of deleted roots.

        A root that is missing because its kind could not be listed completely counts as existing.
        """
        if not self._known:
            return
        by_root = {observed.root.id: observed for observed in world.roots}
        remaining: dict[ResourceId, dict[ResourceId, Live]] = {}
        for root, objects in self._known.items():
            observed = by_root.get(root)
            if observed is not None:
                objects = {id: live for id, live in objects.items() if id != root and observed.find(id) is None}
            elif root.kind not in world.incomplete:
                continue
            if objects:
                remaining[root] = objects
        self._known = remaining


async def _read(
    provider: Provider, ids: Sequence[ResourceId], otherwise: Mapping[ResourceId, Live] = MappingProxyType({})
) -> dict[ResourceId, Live]:
    """Those of the objects that exist; of one that must not be read what `otherwise` has.

    Raises `Unauthorized` and errors that are transient.
    """
    read: dict[ResourceId, Live] = {}
    if not ids:
        return read
    errors: list[ClusterError] = []
    limit = anyio.CapacityLimiter(CONCURRENCY)

    async def get(id: ResourceId) -> None:
        async with limit:
            try:
                live = await provider.get(id)
            except (*TRANSIENT, Unauthorized) as error:
                errors.append(error)
                return
            except ClusterError:
                live = otherwise.get(id)
        if live is not None:
            read[id] = live

    async with anyio.create_task_group() as tasks:
        for id in ids:
            tasks.start_soon(get, id)
    for error in errors:
        raise error
    return read
