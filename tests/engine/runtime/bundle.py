"""A toy blueprint whose roots consist of other roots: a bundle wants the roots that it names, and scales their leaves."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from msgspec.structs import replace

from engine.blueprint import Blueprint, Desired, NestedRoot
from engine.graph import graph, part
from engine.ids import Kind, Owner, ResourceId
from engine.memo import Memo
from engine.observed import Live, Observed
from engine.plan import Wait
from engine.resource import Body, Drop, Policy, Scaled, Want
from tests.engine.runtime.fakes import LEAF, ROOT, body
from tests.engine.runtime.toy import Toy, root_body

BUNDLE = Kind("example.io", "v1", "Bundle", "bundles", status=True)


class Bundles(Blueprint[object]):
    """Its roots consist of other roots, and name objects that are not listed."""

    kind: Kind = BUNDLE
    selector = "app=ours"

    def children(self, configuration: object) -> Mapping[Kind, tuple[str, ...]]:
        """None."""
        return {}

    def root_of(self, child: Live) -> ResourceId | None:
        """None: a bundle has no children."""
        return None

    def part_of(self, root: ResourceId, child: ResourceId) -> str:
        """The only part."""
        return ""

    def lookup_kinds(self, configuration: object) -> tuple[Kind, ...]:
        """The kind of leaves."""
        return (LEAF,)

    def lookups(self, id: ResourceId, body: Body, configuration: object, memo: Memo) -> tuple[ResourceId, ...]:
        """The leaf that `spec.needs` names."""
        needs = body["spec"].get("needs")
        return (LEAF.id(id.namespace, needs),) if needs else ()

    def nested_kinds(self) -> tuple[Kind, ...]:
        """The kind of a toy's roots."""
        return (ROOT,)

    def nested_roots(self, observed: Observed, configuration: object, memo: Memo) -> tuple[NestedRoot, ...]:
        """A root for each entry of `spec.roots`, unless what the bundle needs is known to be missing."""
        if None in observed.looked_up.values():
            return ()
        roots = _manifest(observed)["spec"]["roots"]
        key = str(sorted(roots.items()))
        return memo.recall("roots", (key,), lambda: tuple(NestedRoot(root_body(name, **spec)) for name, spec in sorted(roots.items())))

    def desire(self, observed: Observed, now: datetime, configuration: object, memo: Memo) -> Desired:
        """The bundle itself, the removal of roots that it no longer names, and the number of replicas of `spec.scaled`."""
        root, manifest = observed.root.id, _manifest(observed)
        frame = {key: manifest[key] for key in ("apiVersion", "kind", "spec")} | {
            "metadata": {"name": root.name, "namespace": root.namespace}
        }
        gone = [id for id in observed.nested if id.name not in manifest["spec"]["roots"]]
        dropped = [Drop(id, "not in the bundle", policy=Policy(nested=True)) for id in gone]
        scaled = [
            Scaled(LEAF.id(root.namespace, name), "scaled by the bundle", policy=Policy(nested=True), replicas=replicas)
            for name, replicas in manifest["spec"].get("scaled", {}).items()
        ]
        foreign = [Wait(id, f"{id.name} is not controlled by {root.name}", blocked=True) for id in observed.foreign]
        resource = Want(root, "bundle", body=frame, status={"roots": len(observed.nested)})
        return Desired(graph([part("", [resource, *dropped, *scaled])]), deferred=tuple(foreign))


class NestableToy(Toy):
    """The toy blueprint, for roots that may be part of a bundle."""

    def desire(self, observed: Observed, now: datetime, configuration: object, memo: Memo) -> Desired:
        """The same, with the bundle as the owner of the root."""
        desired = super().desire(observed, now, configuration, memo)
        if observed.proposer is None:
            return desired
        owner = Owner(observed.proposer.id, BUNDLE.api_version)
        (only,) = desired.graph.parts
        resources = [replace(each, owners=(owner,)) if each.id == observed.root.id else each for each in only.resources.values()]
        return Desired(graph([part("", resources)]), pending=desired.pending)


def _manifest(observed: Observed) -> Body:
    return observed.proposal or observed.root.body


def bundle_body(name: str = "bundle", **spec: Any) -> dict[str, Any]:
    """The manifest of a bundle. `roots`: name -> the spec of a toy root."""
    return body(BUNDLE, name, spec=spec)


ROOTS = (ROOT, BUNDLE)
