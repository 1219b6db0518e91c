"""Operation: one API call with its reason and its preconditions."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from engine.ids import Owner, OwnerRef, ResourceId
from engine.resource import Body, Occasion


class Verb(StrEnum):
    """What an operation does to its object."""

    CREATE = "create"
    PATCH = "patch"
    REPLACE = "replace"
    RELEASE = "release"
    DELETE = "delete"
    STATUS = "status"


class Cause(StrEnum):
    """Why a difference exists."""

    INTENT = "intent"
    """What is asked for has changed."""
    DRIFT = "drift"
    """The world has moved away from what was asked for."""


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
class Reference:
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
    references: tuple[Reference, ...] = ()
    changes: tuple[Change, ...] = ()
    expect: Expect = Expect()
    after: frozenset[str] = frozenset()
    """Keys of the operations of this plan that must be done first."""
    asked: bool = True
    controller: OwnerRef | None = None
    """Who controls the object that is there already."""
    occasion: Occasion | None = None
    """What the object goes as a part of."""
    prompt: bool = False
    """For a status: it tells the beginning of something, whose moment is that of the write."""

    @property
    def key(self) -> str:
        """Its name within a plan: verb and identity."""
        return operation_key(self.verb, self.id)


def operation_key(verb: Verb, id: ResourceId) -> str:
    """The name of an operation within a plan."""
    return f"{verb} {id.group}/{id}"
