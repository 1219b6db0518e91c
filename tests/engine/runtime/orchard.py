"""An orchard: a root asks for leaves, and counts those that are ripe. The smallest blueprint that has children, states and waiting."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from engine.blueprint import Desired
from engine.graph import graph, part
from engine.ids import Kind, Owner, ResourceId
from engine.memo import Memo
from engine.observed import Live, Observed
from engine.plan import Wait
from engine.resource import NOW, Policy, Resource, Stance
from engine.runtime.clock import Clock
from tests.engine.runtime.fakes import LEAF, ROOT, Shelf, body


class Orchard:
    """A `Blueprint`."""

    kind: Kind = ROOT
    selector = "app=ours"

    def children(self, settings: Any) -> tuple[Kind, ...]:
        """Leaves."""
        return (LEAF,)

    def reads(self, settings: Any) -> Mapping[str, frozenset[str]]:
        """A leaf is judged by itself."""
        return {}

    def policies(self, settings: Any) -> Mapping[str, Policy]:
        """Nothing holds a leaf."""
        return {}

    def references(self, settings: Any) -> tuple[Kind, ...]:
        """It reads nothing of others."""
        return ()

    def root_of(self, child: Live) -> ResourceId | None:
        """The root that the leaf names."""
        name = child.labels.get("root")
        return ROOT.id(child.id.namespace, name) if name else None

    def part_of(self, root: ResourceId, child: ResourceId) -> str:
        """All leaves are in one part."""
        return ""

    def desire(self, observed: Observed, now: datetime, settings: Any, memo: Memo) -> Desired:
        """As many leaves as the root asks for, and a count of those that are ripe."""
        root = observed.root.id
        asked = observed.proposal or observed.root.body
        if asked["spec"].get("nonsense"):
            return Desired(graph(()), problems=("spec.nonsense: nobody knows what this means",))
        names = [f"{root.name}-{number}" for number in range(asked["spec"]["leaves"])]
        live = [observed.find(LEAF.id(root.namespace, name)) for name in names]
        ripe = sum(leaf is not None and leaf.body.get("status", {}).get("ripe", False) for leaf in live)
        stance = Stance.HOLD if asked["spec"].get("paused") else Stance.WANT
        return Desired(
            graph([part("", [_tree(observed, asked, ripe), *(_leaf(root, name, stance) for name in names)])]),
            pending=tuple(
                Wait(LEAF.id(root.namespace, name), "not ripe yet")
                for name, leaf in zip(names, live, strict=True)
                if stance is Stance.WANT and not (leaf and leaf.body.get("status", {}).get("ripe"))
            ),
        )


def _tree(observed: Observed, asked: Mapping[str, Any], ripe: int) -> Resource:
    root = observed.root.id
    manifest = {key: asked[key] for key in ("apiVersion", "kind", "spec")} | {"metadata": {"name": root.name, "namespace": root.namespace}}
    counted = (observed.root.body.get("status") or {}).get("counted", {})
    status = {"ripe": ripe, "counted": counted if counted.get("of") == ripe else {"at": NOW, "of": ripe}}
    return Resource(root, manifest, "asked for", status=status)


def _leaf(root: ResourceId, name: str, stance: Stance) -> Resource:
    id = LEAF.id(root.namespace, name)
    return Resource(
        id, body(LEAF, name, labels={"app": "ours", "root": root.name}), "asked for", (Owner(root, ROOT.api_version),), stance=stance
    )


def tree(name: str = "root", **spec: Any) -> dict[str, Any]:
    """The manifest of a root."""
    return body(ROOT, name, spec=spec)


async def ripen(shelf: Shelf, clock: Clock, *, after: float = 3.0, apart: float = 0.0) -> None:
    """Let leaves become ripe some seconds after they were made, one after the other; for ever."""
    while True:
        await clock.sleep(0.1)
        for id in unripe(shelf):
            await clock.sleep(after if not apart else apart)
            if id in shelf.objects:
                shelf.put({**shelf.objects[id], "status": {"ripe": True}})


def unripe(shelf: Shelf) -> Sequence[ResourceId]:
    """The leaves that are not ripe."""
    return sorted(id for id, there in shelf.objects.items() if id.kind == LEAF.name and not there.get("status"))
