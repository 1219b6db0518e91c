"""A toy blueprint with children, statuses and pending objects: a root wants a number of leaves and reports how many are ready."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from engine.blueprint import Blueprint, Desired
from engine.graph import graph, part
from engine.ids import Kind, Owner, ResourceId
from engine.memo import Memo
from engine.observed import Live, Observed
from engine.plan import Alarm, Wait
from engine.resource import NOW, Resource, Want, held
from engine.runtime.clock import Clock
from tests.engine.runtime.fakes import LEAF, ROOT, FakeProvider, body


class Toy(Blueprint[object]):
    """Its roots want a number of leaves."""

    kind: Kind = ROOT
    selector = "app=ours"

    def children(self, configuration: object) -> Mapping[Kind, tuple[str, ...]]:
        """Leaves."""
        return {LEAF: ("create", "patch", "delete")}

    def root_of(self, child: Live) -> ResourceId | None:
        """The root that the leaf's label names."""
        name = child.labels.get("root")
        return ROOT.id(child.id.namespace, name) if name else None

    def part_of(self, root: ResourceId, child: ResourceId) -> str:
        """All leaves are in one part."""
        return ""

    def desire(self, observed: Observed, now: datetime, configuration: object, memo: Memo) -> Desired:
        """As many leaves as `spec.leaves`, with the alarm `spec.alarm`. `spec.nonsense` is a user's mistake, `spec.crash` a defect."""
        root = observed.root.id
        manifest = observed.proposal or observed.root.body
        if manifest["spec"].get("nonsense"):
            return Desired(graph(()), problems=("spec.nonsense: unknown field",))
        if manifest["spec"].get("crash"):
            raise KeyError("a defect")
        names = [f"{root.name}-{number}" for number in range(manifest["spec"]["leaves"])]
        lives = [observed.find(LEAF.id(root.namespace, name)) for name in names]
        ready = [leaf is not None and leaf.body.get("status", {}).get("ready", False) for leaf in lives]
        is_paused = bool(manifest["spec"].get("paused"))
        return Desired(
            graph([part("", [_root(observed, manifest, sum(ready)), *(_leaf(root, name, is_paused=is_paused) for name in names)])]),
            pending=tuple(
                Wait(LEAF.id(root.namespace, name), "not ready")
                for name, is_ready in zip(names, ready, strict=True)
                if not is_paused and not is_ready
            ),
            alarms=(Alarm("LeavesFailed", manifest["spec"]["alarm"]),) if "alarm" in manifest["spec"] else (),
        )


def _root(observed: Observed, manifest: Mapping[str, Any], ready: int) -> Resource:
    id = observed.root.id
    frame = {key: manifest[key] for key in ("apiVersion", "kind", "spec")} | {"metadata": {"name": id.name, "namespace": id.namespace}}
    counted = (observed.root.body.get("status") or {}).get("counted", {})
    status = {"ready": ready, "counted": counted if counted.get("of") == ready else {"at": NOW, "of": ready}}
    return Want(id, "root", body=frame, status=status)


def _leaf(root: ResourceId, name: str, *, is_paused: bool) -> Resource:
    manifest = body(LEAF, name, labels={"app": "ours", "root": root.name})
    leaf = Want(LEAF.id(root.namespace, name), "leaf", (Owner(root, ROOT.api_version),), body=manifest)
    return held(leaf, "leaf") if is_paused else leaf


def root_body(name: str = "root", **spec: Any) -> dict[str, Any]:
    """The manifest of a root."""
    return body(ROOT, name, spec=spec)


async def make_ready(provider: FakeProvider, clock: Clock, *, after: float = 3.0, apart: float = 0.0) -> None:
    """Make leaves ready one after the other, each `apart` seconds after the last one, or `after` seconds after it was seen; for ever."""
    while True:
        await clock.sleep(0.1)
        for id in not_ready(provider):
            await clock.sleep(after if not apart else apart)
            if id in provider.objects:
                provider.put({**provider.objects[id], "status": {"ready": True}})


def not_ready(provider: FakeProvider) -> Sequence[ResourceId]:
    """The leaves that are not ready."""
    return sorted(id for id, leaf in provider.objects.items() if id.kind == LEAF.name and not leaf.get("status"))
