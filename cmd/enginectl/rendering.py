"""Rendering: every object that manifests stand for, as it would be sent to a cluster in which nothing is yet."""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from engine.ids import ResourceId
from engine.mask import masked
from engine.memo import Memo
from engine.operation import Reference, Unknown
from engine.plan import reference
from engine.resource import Resource, Stance
from engine.world import empty, propose
from enginectl.manifest_files import Wanted
from enginectl.wiring import Wiring
from resources.registry import BLUEPRINTS

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
"""Rendering happens at no particular time, so that it is the same at any."""


def rendered(wired: Wiring, wanted: Wanted) -> tuple[list[dict[str, Any]], list[str]]:
    """The objects in the order in which they would be made, and the faults of roots that cannot be understood."""
    blueprints = {blueprint.kind.name: blueprint for blueprint in BLUEPRINTS}
    objects: list[dict[str, Any]] = []
    problems: list[str] = []
    for observed in propose(empty(), wanted.roots).roots:
        desired = blueprints[observed.root.id.kind].desire(observed, EPOCH, wired.setup, Memo())
        problems += [f"{observed.root.id}: {problem}" for problem in desired.problems]
        objects += [manifest(resource) for resource in desired.graph.resources.values() if resource.stance is not Stance.DROP]
    return objects, problems


def manifest(resource: Resource) -> dict[str, Any]:
    """One object with its owner references; the uid of an owner is not known before that owner is made."""
    owners = list(references(resource))
    body = masked(resource.body)
    return {**body, "metadata": {**body["metadata"], **({"ownerReferences": owners} if owners else {})}}


def references(resource: Resource) -> Iterator[dict[str, object]]:
    """The owner references, each with words in place of a uid."""
    for owner in resource.owners:
        yield reference(Reference(owner, Unknown(owner.id)), {owner.id: placeholder(owner.id)})


def placeholder(id: ResourceId) -> str:
    """What stands for the uid of an object that does not exist yet."""
    return f"(uid of {id})"
