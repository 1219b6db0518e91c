"""Rules: what the server does to objects of one kind in addition to what it does to all: defaults, preparation, validation."""

from collections.abc import Callable, Mapping
from copy import deepcopy
from random import Random
from typing import Any, Protocol

from msgspec import Struct

from grove_sandbox.product import Body, subdomain_faults
from grove_sandbox.types.status import Cause

Draft = dict[str, Any]
"""A body that has been read and is not stored yet. Rules change it in place."""


class Lookup(Protocol):
    """Finds another object, or None."""

    def __call__(self, group: str, plural: str, namespace: str, name: str) -> Body | None: ...


class Environment(Struct, frozen=True):
    """What rules need besides the object: the time as the API writes it, random numbers, other objects, and whether gangs are served."""

    now: str
    random: Random
    lookup: Lookup
    gangs: bool


def fill(draft: Draft, defaults: Body) -> None:
    """Set the fields that are missing or empty. A default that is a map fills the map of that name, which is made if it is missing."""
    for key, default in defaults.items():
        if isinstance(default, Mapping) and default:
            fill(draft.setdefault(key, {}), default)
        elif draft.get(key) in (None, "", []):
            draft[key] = deepcopy(default)


def keep_spec(draft: Draft, old: Body, _: Environment) -> None:
    """Take the spec of the old object, as a write to the status does."""
    draft["spec"] = old["spec"]


def keep_status(draft: Draft, old: Body, _: Environment) -> None:
    """Take the status of the old object, as a write to the main resource does."""
    draft["status"] = old["status"]


class Rules(Struct, frozen=True):
    """The rules of one kind. Without arguments they are those of a kind that has none of its own."""

    default: Callable[[Draft], None] = lambda _: None
    """Fills in defaults, on every write."""
    admit: Callable[[Draft, Environment], None] = lambda _, __: None
    """What the server's own admission adds to a new object. Its fields have no manager. May raise a refusal."""
    create: Callable[[Draft, Environment], None] = lambda _, __: None
    """The last preparation of a new object."""
    update: Callable[[Draft, Body, Environment], None] = lambda _, __, ___: None
    """Takes from the old object what a write to the main resource cannot change."""
    status: Callable[[Draft, Body, Environment], None] = lambda _, __, ___: None
    """The same for a write to the status."""
    validate: Callable[[Body], list[Cause]] = lambda _: []
    validate_change: Callable[[Body, Body], list[Cause]] = lambda _, __: []
    """The forbidden changes between the new and the old object."""
    name_faults: Callable[[str], list[str]] = subdomain_faults
    generation: tuple[str, ...] | None = None
    """Fields whose change makes a new generation; empty: all but metadata and status; None: the kind has no generation."""
    resets_status: bool = True
    """Whether the status of a new object is dropped where status is a subresource."""
    unconditional: bool = True
    """Whether a PUT needs no resourceVersion."""
    creates_on_put: bool = False
    returns_deleted: bool = False
    """Whether a DELETE answers with the object instead of a Status."""
    grace: Callable[[Body, int | None], int] | None = None
    """The grace period of a deletion in seconds, from the object and DeleteOptions; None: the kind has none."""
    default_propagation: str = "Background"
