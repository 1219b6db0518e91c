"""Operation: one API call with its reason and preconditions, its trial before it is relied on, and its result."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from msgspec import Struct, field

from engine.ids import Owner, OwnerRef, ResourceId
from engine.observed import Live
from engine.reason import Reason
from engine.resource import Body, EventGroup
from engine.verb import Verb


class Cause(StrEnum):
    """Why a difference exists."""

    INTENT = "intent"
    """The desired state has changed."""
    DRIFT = "drift"
    """Somebody has changed the live state."""
    STATUS = "status"
    """What we report has changed: only statuses have it."""


class Change(Struct, frozen=True):
    """One changed field with its old and new value; `None` means absent."""

    path: tuple[str, ...]
    old: Any
    new: Any
    cause: Cause
    order: bool = False
    """Whether entries of a list have changed places: the values are then their keys or, without keys, the entries."""


class Unknown(Struct, frozen=True):
    """The uid of an owner that the same plan creates; it is known once that create has returned."""

    id: ResourceId


class BoundOwner(Struct, frozen=True):
    """An owner with its uid, or with the placeholder of one."""

    owner: Owner
    uid: str | Unknown


def owner_reference(owner: BoundOwner, uids: Mapping[ResourceId, str] | None = None) -> dict[str, object]:
    """An entry of `metadata.ownerReferences`. Raises `KeyError` if the uid is neither known nor in `uids`."""
    uid = owner.uid if isinstance(owner.uid, str) else (uids or {})[owner.uid.id]
    entry: dict[str, object] = {
        "apiVersion": owner.owner.api_version,
        "kind": owner.owner.id.kind,
        "name": owner.owner.id.name,
        "uid": uid,
    }
    return entry | {"controller": True, "blockOwnerDeletion": True} if owner.owner.controller else entry


class Expect(Struct, frozen=True):
    """Preconditions: the uid (and, if not empty, the revision) of the object that the operation was planned for."""

    uid: str = ""
    revision: str = ""


class Operation(Struct, frozen=True, eq=False):
    """One API call.

    `body` depends on the verb. Create and replace: the manifest without owner references. Patch and status: a JSON merge patch.
    Release: `{"finalizers": […], "of": […]}`, those to remove and all that were observed. Delete: empty.
    A status may contain `NOW`.
    """

    verb: Verb
    id: ResourceId
    why: str
    cause: Cause
    body: Body = field(default_factory=dict)
    owners: tuple[BoundOwner, ...] = ()
    changes: tuple[Change, ...] = ()
    expect: Expect = Expect()
    after: frozenset[str] = frozenset()
    """Keys of the operations of this plan that must succeed first."""
    intended: bool = True
    """Whether a user asked for it; unintended deletes count against the budget."""
    controller: OwnerRef | None = None
    """The controller of the live object."""
    event_group: EventGroup | None = None
    """The unit that the object is deleted with."""
    target: Body | None = None
    """Patch: the manifest that the object is made to match. None for other verbs."""
    urgent: bool = False
    """Whether a status must be written without delay: it reports the beginning of something, and its time is that of the write."""
    provisional: bool = False
    """Whether a status is that of an object which is still coming up, and will soon change by itself."""
    reason: Reason = Reason.UNSPECIFIED
    """Why, as one word; `why` is the sentence about it."""
    seal: str = ""
    """The label of the object that is a hash of its content (`Policy.seal`): it follows other changes and tells a reader nothing."""

    @property
    def key(self) -> str:
        """The name of the operation within its plan: verb and identity."""
        return operation_key(self.verb, self.id)


def parent_of(operation: Operation) -> tuple[str, str] | None:
    """Kind and name of the object's controller or, for a new object, of its first owner; None without owners."""
    if operation.controller is not None:
        return operation.controller.kind, operation.controller.name
    first = next((bound.owner.id for bound in operation.owners), None)
    return (first.kind, first.name) if first is not None else None


def is_shared(operation: Operation) -> bool:
    """Whether the object has owners of which none controls it: roots share it, whichever of them creates it."""
    return bool(operation.owners) and not any(bound.owner.controller for bound in operation.owners)


def operation_key(verb: Verb, id: ResourceId) -> str:
    """The name of an operation within a plan."""
    return f"{verb} {id.group}/{id}"


class Trial(Struct, frozen=True, eq=False):
    """A create that a plan relies on."""

    key: str
    """Equal for creates of the same content."""
    about: str
    """What it stands for, for people, e.g. `clique worker`."""
    create: Operation
    """The object, under a name that no other object has."""


class Outcome(StrEnum):
    """How an operation ended."""

    DONE = "done"
    CONFLICT = "conflict"
    """The object changed after it was observed: observe it again."""
    FAILED = "failed"
    SKIPPED = "skipped"
    """An operation that had to come first did not succeed."""


class Result(Struct, frozen=True, eq=False):
    """The outcome of an operation."""

    operation: Operation
    outcome: Outcome
    existing: Live | None = None
    """For a create in conflict: the object that has the name."""
    error: Exception | None = None
    uid: str = ""
    """The uid of the object that the server returned; empty if it returned none."""
