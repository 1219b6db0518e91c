"""Rules: what the server does to objects of one kind beside what it does to all: defaults, preparation, validation."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from random import Random
from typing import Any, Protocol

from providers.sandbox.types import names
from providers.sandbox.types.status import Cause

Body = Mapping[str, Any]
Draft = dict[str, Any]
"""A body that is still ours alone: read a moment ago, not stored yet. Rules fill it in place."""


class Lookup(Protocol):
    """Another object, or None."""

    def __call__(self, group: str, plural: str, namespace: str, name: str) -> Body | None: ...


@dataclass(frozen=True, slots=True)
class Scene:
    """What rules may look at beside the object: the time as the API writes it, chance, and other objects."""

    now: str
    random: Random
    lookup: Lookup


def _nothing(_: Draft) -> None:
    """No defaults."""


def _no_preparation(_: Draft, __: Scene) -> None:
    """Nothing to prepare."""


def _no_change(_: Draft, __: Body, ___: Scene) -> None:
    """Nothing to carry over."""


def _no_faults(_: Body) -> list[Cause]:
    return []


def _no_change_faults(_: Body, __: Body) -> list[Cause]:
    return []


@dataclass(frozen=True, slots=True)
class Rules:
    """One kind's own rules; the defaults fit a plain kind without any."""

    default: Callable[[Draft], None] = _nothing
    """Fill in defaults, on every write."""
    admit: Callable[[Draft, Scene], None] = _no_preparation
    """What admission adds to a new object, after its fields have found their managers. May raise a refusal."""
    create: Callable[[Draft, Scene], None] = _no_preparation
    """The last preparation of a new object."""
    update: Callable[[Draft, Body, Scene], None] = _no_change
    """Carry over from the old object what a write to the main resource may not touch."""
    status: Callable[[Draft, Body, Scene], None] = _no_change
    """The same for a write to the status."""
    validate: Callable[[Body], list[Cause]] = _no_faults
    validate_change: Callable[[Body, Body], list[Cause]] = _no_change_faults
    """What may not change, told from the new and the old object."""
    name_faults: Callable[[str], list[str]] = names.subdomain_faults
    generation: tuple[str, ...] | None = None
    """Fields whose change makes a new generation; None: the kind has no generation."""
    resets_status: bool = True
    """Whether a new object's status is thrown away where status is a subresource."""
    unconditional: bool = True
    """Whether a PUT may come without resourceVersion."""
    creates_on_put: bool = False
    returns_deleted: bool = False
    """Whether a DELETE answers with the object instead of a Status."""
    grace: Callable[[Body, int | None], int] | None = None
    """Seconds of grace that a deletion leaves; None: the kind dies at once."""
    default_propagation: str = "Background"
