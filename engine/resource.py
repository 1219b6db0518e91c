"""Resource: what we want of one object."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from engine.ids import Owner, ResourceId

Body = Mapping[str, Any]
Path = tuple[str, ...]


class Stance(StrEnum):
    """What should become of an object."""

    WANT = "want"
    """Make it so."""
    HOLD = "hold"
    """UpdateAllowance it as it is, there or not; `why` says what it waits for."""
    DROP = "drop"
    """It must go."""


@dataclass(frozen=True, slots=True)
class Policy:
    """How differences of one object are treated. Paths are tuples of keys, e.g. `("spec", "replicas")`."""

    seeded: tuple[Path, ...] = ()
    """Sent on create, then left to whoever scales it: never compared."""
    immutable: tuple[Path, ...] = ()
    """The server refuses to change these: a difference means replace."""
    exact: tuple[Path, ...] = ()
    """Compared whole and sent whole: what we did not name must not be there."""
    seal: str = ""
    """A label of ours that changes with what is at the exact paths: where it agrees, they need only be covered, for the server may
    have filled in defaults."""
    owned: tuple[Path, ...] = ()
    """What we have set here and no longer want is taken away; elsewhere, labels and annotations apart, saying nothing asks for nothing."""
    defaults: tuple[tuple[Path, Any], ...] = ()
    """What the server puts where we say nothing: there it must be that, and nothing else."""
    quantities: frozenset[str] = frozenset()
    """Keys whose values are quantities, which the server spells in its own way: `1000m` is `1`."""
    partial: tuple[Path, ...] = ()
    """Beneath these nothing is taken away."""
    create_only: bool = False
    """Made once, then never patched."""
    shared: bool = False
    """Several roots want it: each adds and takes away its own owner reference only, and the last one deletes."""
    unlabelled: bool = False
    """It bears no labels of ours; its owner alone tells whose it is, and it is found among the references."""
    finalizers: tuple[str, ...] = ()
    """Ours: put on at creation, released by us when the object goes."""
    release_last: bool = False
    """Whether ours fall only when nobody else's are left: then they are the proof that the others have finished."""


PLAIN = Policy()


@dataclass(frozen=True, slots=True)
class EventGroup:
    """Something bigger that an object goes as a part of: told once, about who intended for it, instead of object by object."""

    about: ResourceId
    uid: str
    reason: str
    """One word, which `Successful` or `Failed` completes."""
    done: str
    failed: str
    """What could not be done; the error follows."""


@dataclass(frozen=True, slots=True, eq=False)
class Resource:
    """One desired object. Compared by identity, so that unchanged parts are recognised without a look inside.

    `body` is the manifest without owner references and status; `status`, when given, goes to the subresource;
    `after` names what must be there first (and, on the way out, what may only go later).
    """

    id: ResourceId
    body: Body
    why: str
    owners: tuple[Owner, ...] = ()
    after: frozenset[ResourceId] = frozenset()
    stance: Stance = Stance.WANT
    policy: Policy = PLAIN
    status: Body | None = None
    urgent: bool = False
    """Whether the status tells the beginning of something, and is to be written while that is the moment."""
    intended: bool = field(default=True)
    """For DROP: somebody intended for it (a smaller number, a deleted parent); what nobody intended for counts against the budget."""
    event_group: EventGroup | None = None
    """For DROP: what it goes as a part of."""
    blocked: bool = False
    """For HOLD: whether somebody else has to act before it can be created or changed; otherwise a later pass does it."""
    bind_revision: bool = False
    """For DROP: it goes for the state that it is in; where that has changed, it is judged anew."""


class Now:
    """The moment at which a plan is made, wherever a body needs it: a fixed mark, so that what is computed stays free of time."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "(time of writing)"


NOW = Now()
