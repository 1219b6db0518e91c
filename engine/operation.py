"""Operation: one API call with its reason and its preconditions."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from engine.ids import Owner, OwnerRef, ResourceId
from engine.resource import Body, EventGroup
from engine.verb import Verb


class Cause(StrEnum):
    """Why a difference exists."""

    INTENT = "intent"
    """What is intended for has changed."""
    DRIFT = "drift"
    """The world has moved away from what was intended for."""


@dataclass(frozen=True, slots=True)
class Change:
    """A line of a diff: a field, what it is, what it shall be. `None` stands for absent."""

    path: tuple[str, ...]
    old: Any
    new: Any
    cause: Cause


@dataclass(frozen=True, slots=True)
class Unknown:
    """The uid of an owner that is made by the same plan; bound when that create has answered."""

    id: ResourceId


@dataclass(frozen=True, slots=True)
class BoundOwner:
    """An owner with its uid, or with the promise of one."""

    owner: Owner
    uid: str | Unknown


@dataclass(frozen=True, slots=True)
class Expect:
    """Preconditions: the incarnation (and, for patches, the revision) that the plan has judged."""

    uid: str = ""
    revision: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class Operation:
    """One API call.

    `body` is, by verb: create and replace: the manifest without owner references; patch and status: a JSON merge patch;
    release: `{"finalizers": [...], "of": [...]}`, those to take off, and all that were seen; delete: empty.
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
    """Keys of the operations of this plan that must be done first."""
    intended: bool = True
    controller: OwnerRef | None = None
    """Who controls the object that is there already."""
    event_group: EventGroup | None = None
    """What the object goes as a part of."""
    urgent: bool = False
    """For a status: it tells the beginning of something, whose moment is that of the write."""

    @property
    def key(self) -> str:
        """Its name within a plan: verb and identity."""
        return operation_key(self.verb, self.id)


def parent_of(operation: Operation) -> tuple[str, str] | None:
    """Kind and name of the object that the operation is made for: the controller of its object, or the first owner of a new one."""
    if operation.controller is not None:
        return operation.controller.kind, operation.controller.name
    first = next((bound.owner.id for bound in operation.owners), None)
    return (first.kind, first.name) if first is not None else None


def operation_key(verb: Verb, id: ResourceId) -> str:
    """The name of an operation within a plan."""
    return f"{verb} {id.group}/{id}"
