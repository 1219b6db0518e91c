"""Rendering: every object that manifests stand for, as it would be sent to a cluster in which nothing is yet."""

from datetime import UTC, datetime
from typing import Any

from engine.mask import masked
from engine.memo import Memo
from engine.operation import BoundOwner, Unknown
from engine.report.json import with_owners
from engine.report.printable import printable
from engine.resource import Resource, Stance
from engine.world import empty, propose
from enginectl import output
from enginectl.admitting import admitted_beside
from enginectl.manifest_files import Wanted
from enginectl.wiring import Wiring, scope
from resources.registry import BLUEPRINTS

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
"""Rendering happens at no particular time, so that it is the same at any."""


def rendered(wired: Wiring, wanted: Wanted) -> tuple[list[dict[str, Any]], list[str]]:
    """The objects in the order in which they would be made, and the faults of roots that cannot be accepted.

    What depends on objects that nobody can see here is left out, and told on stderr.
    """
    blueprints = {blueprint.kind.name: blueprint for blueprint in BLUEPRINTS}
    asked = admitted_beside(wired, wanted)
    objects: list[dict[str, Any]] = []
    problems = [fault for faults in asked.rejected.values() for fault in faults]
    for observed in propose(empty(), asked.wanted.roots, scope(wired.setup).references).roots:
        desired = blueprints[observed.root.id.kind].desire(observed, EPOCH, wired.setup, Memo())
        problems += [f"{observed.root.id}: {problem}" for problem in desired.problems]
        made = [resource for resource in desired.graph.resources.values() if resource.stance is not Stance.DROP]
        objects += [manifest(resource) for resource in made if resource.body]
        for unknown in (resource for resource in made if not resource.body):
            output.tell(f"note: {printable(str(unknown.id))} is left out: {printable(unknown.why)}")
    return objects, problems


def manifest(resource: Resource) -> dict[str, Any]:
    """One object as it would be sent."""
    return with_owners(masked(resource.body), [BoundOwner(owner, Unknown(owner.id)) for owner in resource.owners])
