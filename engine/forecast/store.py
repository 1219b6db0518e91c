"""ForecastStore: the objects of a cluster in memory. Every call succeeds and has the effects that it has in an API server."""

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any, Final

from engine import ownership
from engine.ids import ResourceId
from engine.observed import Live, live, timestamp
from engine.operation import Create, Creation, Delete, Operation, Patch, Release, Replace, Scale, WriteStatus, owner_reference
from engine.paths import merge_patch, stamp
from engine.resource import Body

SYNTHETIC: Final = "forecast-"
"""The beginning of the uids of objects that exist in a forecast only. They are never shown."""

FIRST_REVISION: Final = 10**15
"""Revisions in a forecast are above those of the real objects, and above those of an earlier forecast at whose end it begins."""


class ForecastStore:
    """The objects by id, and what has happened to them since `take_changes` was called last."""

    def __init__(self, lives: Iterable[Live], now: datetime, is_graceful: Callable[[Live], bool]) -> None:
        """`is_graceful`: whether an object is marked when it is deleted, and removed later by its own agent."""
        self.lives: dict[ResourceId, Live] = {}
        self.now = now
        self._is_graceful = is_graceful
        self._revision = FIRST_REVISION
        """The last one that was given; above those of objects that an earlier forecast has made."""
        self._dependents: dict[str, set[ResourceId]] = {}
        """Uid of an owner -> the objects that refer to it."""
        self._changed: dict[ResourceId, None] = {}
        self._gone: dict[str, None] = {}
        self._before: dict[ResourceId, Live | None] = {}
        for each in lives:
            self._keep(each)
            if (number := each.uid.removeprefix(SYNTHETIC)) != each.uid and number.isdecimal() and each.revision.isdecimal():
                self._revision = max(self._revision, int(number), int(each.revision))
        self._before = {}

    def find(self, id: ResourceId) -> Live | None:
        """The object with this id, if it exists."""
        return self.lives.get(id)

    def dependents(self, uid: str) -> tuple[ResourceId, ...]:
        """The objects that refer to an owner of this uid, sorted."""
        return tuple(sorted(self._dependents.get(uid, ())))

    def take_changes(self) -> tuple[tuple[ResourceId, ...], tuple[str, ...]]:
        """The ids of the objects that were created, changed or removed since the last call, and the uids of those that were removed."""
        changes = tuple(self._changed), tuple(self._gone)
        self._changed, self._gone = {}, {}
        return changes

    def take_differences(self) -> list[tuple[Live | None, Live | None]]:
        """The objects that were created, changed or removed since the last call, before and after; None where one does not exist."""
        differences = [(before, self.lives.get(id)) for id, before in self._before.items()]
        self._before = {}
        return differences

    def execute(self, operation: Operation) -> None:
        """Make the call of an operation. One whose object is not there any more has no effect."""
        if isinstance(operation, Create):
            return self._create(operation)
        existing = self.lives.get(operation.id)
        if existing is None:
            return
        match operation:
            case Replace():
                self._remove(existing)
                self._create(operation)
            case Patch():
                self.patch(operation.id, operation.patch, is_recorded=ownership.is_recorded(existing.body))
            case WriteStatus() | Scale():
                self.patch(operation.id, operation.patch)
            case Release():
                released = operation.finalizers
                finalizers = existing.finalizers
                self.patch(operation.id, {"metadata": {"finalizers": [each for each in finalizers if each not in released]}})
            case Delete():
                self.delete(operation.id)

    def _create(self, operation: Creation) -> None:
        if operation.id in self.lives:
            return  # Another root that shares the object has created it.
        uids = {bound.owner.id: owner.uid for bound in operation.owners if (owner := self.lives.get(bound.owner.id)) is not None}
        references = [owner_reference(bound, uids) for bound in operation.owners]
        metadata = {**operation.manifest["metadata"], **({"ownerReferences": references} if references else {})}
        self.create({**operation.manifest, "metadata": metadata})

    def create(self, body: Body) -> Live:
        """Store a new object with what the server adds to it."""
        self._revision += 1
        added = {
            "uid": f"{SYNTHETIC}{self._revision}",
            "resourceVersion": str(self._revision),
            "generation": 1,
            "creationTimestamp": timestamp(self.now),
        }
        created = live(stamp({**body, "metadata": {**body["metadata"], **added}}, timestamp(self.now)))
        self._keep(created)
        return created

    def patch(self, id: ResourceId, patch: Mapping[str, Any], *, is_recorded: bool = False) -> None:
        """Change an object by a merge patch. One that is being deleted is removed with its last finalizer.

        `is_recorded`: the fields are recorded as ours. For an object without such records everything counts as ours.
        """
        existing = self.lives[id]
        patched = merge_patch(existing.body, stamp(patch, timestamp(self.now)))
        self._revision += 1
        generation = (
            existing.generation + 1 if "spec" in patch and patched.get("spec") != existing.body.get("spec") else existing.generation
        )
        patched["metadata"] = {**patched["metadata"], "resourceVersion": str(self._revision), "generation": generation}
        if is_recorded:
            patched = ownership.with_owned(patched, patch, timestamp(self.now))
        changed = live(patched)
        if changed.deleting_since is not None and not patched["metadata"].get("finalizers") and not self._is_graceful(existing):
            self._remove(existing)
        else:
            self._keep(changed)

    def delete(self, id: ResourceId) -> None:
        """Delete an object: it goes at once, unless it has finalizers or terminates gracefully."""
        existing = self.lives[id]
        if existing.deleting_since is not None:
            return
        if existing.finalizers or self._is_graceful(existing):
            self.patch(id, {"metadata": {"deletionTimestamp": timestamp(self.now)}})
        else:
            self._remove(existing)

    def remove(self, id: ResourceId) -> None:
        """Remove an object, finalizers or not."""
        if (existing := self.lives.get(id)) is not None:
            self._remove(existing)

    def _keep(self, new: Live) -> None:
        old = self.lives.get(new.id)
        if old is not None and old.owners != new.owners:
            self._forget_owners(old)
        if old is None or old.owners != new.owners:
            for owner in new.owners:
                self._dependents.setdefault(owner.uid, set()).add(new.id)
        self._before.setdefault(new.id, old)
        self.lives[new.id] = new
        self._changed[new.id] = None

    def _remove(self, existing: Live) -> None:
        self._forget_owners(existing)
        self._before.setdefault(existing.id, existing)
        del self.lives[existing.id]
        self._changed[existing.id] = None
        self._gone[existing.uid] = None

    def _forget_owners(self, existing: Live) -> None:
        for owner in existing.owners:
            self._dependents[owner.uid].discard(existing.id)
