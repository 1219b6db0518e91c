"""Permissions: what the engine must be allowed to do, derived from the blueprints' tables of kinds."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from engine.blueprint import Blueprint
from engine.ids import Kind
from resources.base import kinds
from resources.ports.configuration import Configuration

READ: Final = ("get", "list", "watch")
WRITE: Final = ("create", "patch", "delete")


@dataclass(frozen=True, slots=True)
class Permission:
    """Verbs on one kind, or on one of its subresources."""

    kind: Kind
    verbs: tuple[str, ...]
    subresource: str = ""
    namespace: str = ""
    """The namespace in which it is needed; empty: every namespace with workloads."""

    @property
    def resource(self) -> str:
        """The resource as a role names it: `pods`, or `pods/status`."""
        return f"{self.kind.plural}/{self.subresource}" if self.subresource else self.kind.plural


_OF_NESTED_SETS: Final = (
    (kinds.PODCLIQUESET, (*READ, *WRITE), ""),
    (kinds.PODCLIQUE, ("patch",), "scale"),
    (kinds.SCALING_GROUP, ("patch",), "scale"),
)
"""What a graph needs for the PodCliqueSet that it consists of: the set itself, and the scale subresources of its services."""


def permissions(blueprints: Iterable[Blueprint], configuration: Configuration, lease: str) -> tuple[Permission, ...]:
    """The permissions that the engine needs, each kind and subresource once. `lease` is the namespace of the leader election's Lease."""
    verbs_of: dict[tuple[Kind, str], dict[str, None]] = {}
    for blueprint in blueprints:
        for kind, verbs, subresource in _needed(blueprint, configuration):
            verbs_of.setdefault((kind, subresource), {}).update(dict.fromkeys(verbs))
    objects = [Permission(kind, tuple(verbs), subresource) for (kind, subresource), verbs in verbs_of.items()]
    election = Permission(kinds.LEASE, ("get", "create", "update"), namespace=lease)
    return (*objects, Permission(kinds.EVENT, ("create", "patch")), election)


def _needed(blueprint: Blueprint, configuration: Configuration) -> Iterator[tuple[Kind, tuple[str, ...], str]]:
    """Kind, verbs and subresource for each need of a blueprint; a kind may occur several times.

    Roots are read and patched, children are also deleted, references are only read. Kinds that we define have statuses and finalizers.
    """
    yield blueprint.kind, (*READ, "create", "patch"), ""
    for kind in blueprint.children(configuration):
        yield kind, (*READ, *WRITE), ""
    for kind in blueprint.references(configuration):
        yield kind, READ, ""
    if blueprint.kind == kinds.DYNAMO_GRAPH:
        yield from _OF_NESTED_SETS
    for kind in (blueprint.kind, *blueprint.children(configuration)):
        if kind in kinds.DEFINED:
            yield kind, ("patch",), "status"
            # An owner reference with `blockOwnerDeletion` requires the right to set the owner's finalizers.
            yield kind, ("update",), "finalizers"
