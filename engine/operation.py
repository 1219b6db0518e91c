"""Operation: one API call, a type for each verb, with its reason and preconditions, its trial before it is relied on, and its result."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, ClassVar

from msgspec import Struct

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
    """Another writer has changed the live state."""
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


class _Call(Struct, frozen=True, eq=False):
    """What every operation has. What a verb does not have is empty."""

    verb: ClassVar[Verb]

    id: ResourceId
    why: str
    cause: Cause
    reason: Reason = Reason.UNSPECIFIED
    """Why, as one word; `why` is the sentence about it."""
    after: frozenset[str] = frozenset()
    """Keys of the operations of this plan that must succeed first."""
    expect: Expect = Expect()

    @property
    def key(self) -> str:
        """The name of the operation within its plan: verb and identity."""
        return operation_key(self.verb, self.id)

    @property
    def owners(self) -> tuple[BoundOwner, ...]:
        """The owners that the desired state gives the object."""
        return ()

    @property
    def controller(self) -> OwnerRef | None:
        """The controller of the live object."""
        return None

    @property
    def changes(self) -> tuple[Change, ...]:
        """The changed fields of an existing object."""
        return ()

    @property
    def intended(self) -> bool:
        """Whether a user asked for it; unintended deletes count against the budget."""
        return True

    @property
    def seal(self) -> str:
        """The label of the object that is a hash of its content (`Policy.seal`): it follows other changes and tells a reader nothing."""
        return ""


class Create(_Call, frozen=True, eq=False, kw_only=True):
    """Create the object."""

    verb: ClassVar[Verb] = Verb.CREATE
    manifest: Body
    """Without owner references."""
    owners: tuple[BoundOwner, ...] = ()
    seal: str = ""


class Replace(_Call, frozen=True, eq=False, kw_only=True):
    """Delete the object and create it anew: the server does not allow the changes in place."""

    verb: ClassVar[Verb] = Verb.REPLACE
    manifest: Body
    """Without owner references."""
    owners: tuple[BoundOwner, ...] = ()
    changes: tuple[Change, ...] = ()
    seal: str = ""


class Patch(_Call, frozen=True, eq=False, kw_only=True):
    """Change fields of the object."""

    verb: ClassVar[Verb] = Verb.PATCH
    patch: Body
    """A JSON merge patch."""
    changes: tuple[Change, ...] = ()
    controller: OwnerRef | None = None
    target: Body | None = None
    """The manifest that the object is made to match; None if only an owner reference is removed."""
    seal: str = ""


class Scale(_Call, frozen=True, eq=False, kw_only=True):
    """Set the number of replicas in the object's scale subresource."""

    verb: ClassVar[Verb] = Verb.SCALE
    replicas: int
    changes: tuple[Change, ...] = ()
    controller: OwnerRef | None = None

    @property
    def patch(self) -> Body:
        """The JSON merge patch."""
        return {"spec": {"replicas": self.replicas}}


class WriteStatus(_Call, frozen=True, eq=False, kw_only=True):
    """Patch the object's status subresource."""

    verb: ClassVar[Verb] = Verb.STATUS
    patch: Body
    """A JSON merge patch, which may contain `NOW`."""
    changes: tuple[Change, ...] = ()
    controller: OwnerRef | None = None
    urgent: bool = False
    """Whether it must be written without delay: it reports the beginning of something, and its time is that of the write."""
    provisional: bool = False
    """Whether it is the status of an object which is still coming up, and will soon change by itself."""


class Release(_Call, frozen=True, eq=False, kw_only=True):
    """Remove finalizers of ours."""

    verb: ClassVar[Verb] = Verb.RELEASE
    finalizers: tuple[str, ...]
    """Those to remove."""
    existing: tuple[str, ...]
    """All that were observed, in their order."""
    owners: tuple[BoundOwner, ...] = ()
    controller: OwnerRef | None = None
    intended: bool = True
    event_group: EventGroup | None = None
    """The unit that the object is deleted with."""


class Delete(_Call, frozen=True, eq=False, kw_only=True):
    """Delete the object."""

    verb: ClassVar[Verb] = Verb.DELETE
    owners: tuple[BoundOwner, ...] = ()
    controller: OwnerRef | None = None
    intended: bool = True
    event_group: EventGroup | None = None
    """The unit that the object is deleted with."""


Operation = Create | Replace | Patch | Scale | WriteStatus | Release | Delete
"""One API call."""
Creation = Create | Replace
"""Operations that make a new object, with another uid."""


def body_of(operation: Operation) -> Body:
    """What the call sends, besides owner references and preconditions; of a release the finalizers that it concerns."""
    match operation:
        case Create() | Replace():
            return operation.manifest
        case Patch() | Scale() | WriteStatus():
            return operation.patch
        case Release():
            return {"finalizers": list(operation.finalizers), "of": list(operation.existing)}
        case Delete():
            return {}


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
    create: Create
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
    owner_uid: str = ""
    """The uid of the first of the operation's `owners`, which its plan may have created; empty if it has none."""
    sent: tuple[float, float] | None = None
    """When its last call was sent, and when that was answered, in seconds of a monotonic clock; None: none was sent."""
