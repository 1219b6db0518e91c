"""Permissions: what the engine must be allowed to do, computed from the tables by which it looks and writes."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from engine.blueprint import Blueprint
from engine.ids import Kind
from resources.base import kinds
from resources.ports.configuration import Configuration

LOOK: Final = ("get", "list", "watch")
MAKE: Final = ("create", "patch", "delete")


@dataclass(frozen=True, slots=True)
class Permission:
    """Verbs on one kind, or on a subresource of it."""

    kind: Kind
    verbs: tuple[str, ...]
    subresource: str = ""
    namespace: str = ""
    """Where it is needed; empty: wherever workloads are."""

    @property
    def resource(self) -> str:
        """As roles write it: `pods`, or `pods/status`."""
        return f"{self.kind.plural}/{self.subresource}" if self.subresource else self.kind.plural


def permissions(blueprints: Iterable[Blueprint], configuration: Configuration, lease: str) -> tuple[Permission, ...]:
    """Everything that passes need, each kind once; `lease` is the namespace of the lease."""
    found: dict[tuple[Kind, str], dict[str, None]] = {}
    for blueprint in blueprints:
        for kind, verbs, subresource in _needed(blueprint, configuration):
            found.setdefault((kind, subresource), {}).update(dict.fromkeys(verbs))
    wanted = [Permission(kind, tuple(verbs), subresource) for (kind, subresource), verbs in found.items()]
    election = Permission(kinds.LEASE, ("get", "create", "update"), namespace=lease)
    return (*wanted, Permission(kinds.EVENT, ("create", "patch")), election)


def _needed(blueprint: Blueprint, configuration: Configuration) -> Iterator[tuple[Kind, tuple[str, ...], str]]:
    """Roots are looked at and written, children made as well, references only looked at; owners must be allowed to hold their own back."""
    yield blueprint.kind, (*LOOK, "create", "patch"), ""
    for kind in blueprint.children(configuration):
        yield kind, (*LOOK, *MAKE), ""
    for kind in blueprint.references(configuration):
        yield kind, LOOK, ""
    for kind in (blueprint.kind, *blueprint.children(configuration)):
        if kind in kinds.OURS:
            yield kind, ("patch",), "status"
            # Who says `blockOwnerDeletion` must be allowed to do what a finalizer does.
            yield kind, ("update",), "finalizers"
