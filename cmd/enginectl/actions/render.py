"""`engine render`: the objects of manifests, as they would be created in an empty cluster."""

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Any

from msgspec.structs import replace

from engine.blueprint import Desired
from engine.ids import ResourceId
from engine.mask import masked
from engine.memo import Memo, blueprint_memo
from engine.observed import Observed
from engine.operation import BoundOwner, Unknown
from engine.proposal import compose, propose
from engine.report.json import with_owners
from engine.report.printable import printable
from engine.resource import Hold, Want
from engine.world import empty
from enginectl.base import terminal
from enginectl.base.exit_codes import Exit
from enginectl.input.admission import admit_roots
from enginectl.input.roots import Roots
from enginectl.wiring.configuration import Wiring
from enginectl.wiring.scope import scope_of
from providers.snapshot import as_yaml
from resources.ports.configuration import unserved_without_a_cluster
from resources.preview.pod_patterns import bodies_with_patterns
from resources.registry import BLUEPRINTS

VERSION = 1
"""Version of the JSON document; increased when a field is removed or changes its meaning."""
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
"""The time of rendering: a fixed one, so that equal input gives equal bytes."""


def render_roots(wiring: Wiring, roots: Roots, *, as_json: bool) -> Exit:
    """Write the objects of the manifests, then the faults of manifests that are rejected, and return the exit code."""
    objects, faults = render(wiring, roots)
    if as_json:
        terminal.print_json({"version": VERSION, "objects": objects})
    else:
        for body in objects:
            terminal.print_text(f"---\n{as_yaml(body)}")
    for fault in faults:
        terminal.error(fault)
    return Exit.FAILED if faults else Exit.DONE


def render(wiring: Wiring, roots: Roots) -> tuple[list[dict[str, Any]], list[str]]:
    """The objects in the order in which they would be created, and the faults of rejected roots.

    Objects that depend on what only a cluster knows are left out and named on stderr.
    """
    admitted = admit_roots(wiring, roots)
    objects: list[dict[str, Any]] = []
    faults = [fault for faults in admitted.rejected.values() for fault in faults]
    for root, desired in desired_by_root(wiring, admitted.roots):
        faults += [f"{root}: {problem}" for problem in desired.problems]
        resources = [resource for resource in desired.graph.resources.values() if isinstance(resource, Want | Hold)]
        objects += bodies_with_patterns({resource.id: manifest(resource) for resource in resources if resource.body})
        for resource in resources:
            if not resource.body:
                terminal.notice(f"note: {printable(str(resource.id))} is left out: {printable(resource.why)}")
    return objects, faults


def desired_by_root(wiring: Wiring, roots: Roots) -> Iterator[tuple[ResourceId, Desired]]:
    """What each root should have in an empty cluster, and each root that it consists of."""
    blueprints = {blueprint.kind.name: blueprint for blueprint in BLUEPRINTS}
    nothing = replace(empty(), unserved=unserved_without_a_cluster(wiring.configuration))
    world = propose(nothing, roots.bodies, scope_of(wiring.configuration).references, roots.replicas)
    memo = Memo(roots.memo)
    for observed in in_order(compose(world, BLUEPRINTS, wiring.configuration, memo).roots):
        root = observed.root.id
        yield root, blueprints[root.kind].desire(observed, EPOCH, wiring.configuration, blueprint_memo(memo, root))


def in_order(roots: Iterable[Observed]) -> Iterator[Observed]:
    """The roots, each before those that it consists of."""
    listed = list(roots)
    nested: dict[ResourceId, list[Observed]] = {}
    for observed in listed:
        if observed.proposer is not None:
            nested.setdefault(observed.proposer.id, []).append(observed)
    for observed in listed:
        if observed.proposer is None:
            yield observed
            yield from nested.get(observed.root.id, ())


def manifest(resource: Want | Hold) -> dict[str, Any]:
    """One object as it would be sent, with secret data masked and placeholders for the uids of its owners."""
    return with_owners(masked(resource.body), [BoundOwner(owner, Unknown(owner.id)) for owner in resource.owners])
