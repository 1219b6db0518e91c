"""Roots that consist of other roots: planned together, written in order, and never taken from somebody else."""

from collections.abc import Mapping
from typing import Any

import pytest
from msgspec.structs import replace

from engine.blueprint import relevant_incomplete
from engine.ids import Kind, ResourceId
from engine.memo import Memo
from engine.observed import Live, Observed, Unlisted, World, live
from engine.operation import Operation
from engine.plan import Plan
from engine.proposal import compose, propose
from engine.report.model import compose as report_of
from engine.runtime.passes import preview
from engine.runtime.provider import Observation, Scope
from engine.runtime.sync_report import Ending
from engine.world import assemble, empty
from tests.builders import applying
from tests.engine.runtime.bundle import BUNDLE, ROOTS, Bundles, NestableToy, bundle_body
from tests.engine.runtime.fakes import LEAF, ROOT, FakeProvider
from tests.engine.runtime.stage import Stage
from tests.engine.runtime.toy import root_body
from tests.operations import as_patch

pytestmark = pytest.mark.anyio

BLUEPRINTS = (NestableToy(), Bundles())


class Provider(FakeProvider):
    """A provider that also knows bundles."""

    async def observe(self, scope: Scope) -> Observation:
        """All objects."""
        observation = await super().observe(scope)
        lives = (*observation.roots, *observation.children)
        return replace(
            observation,
            roots=[live for live in lives if live.id.kind != LEAF.name],
            children=[live for live in lives if live.id.kind == LEAF.name],
        )

    async def execute(self, operation: Operation, uids: Mapping[ResourceId, str]) -> Mapping[str, Any] | None:
        """Scaling is a change of `spec.replicas`."""
        return await super().execute(as_patch(operation), uids)


def stage(*bodies: dict[str, Any]) -> Stage:
    """A stage with bundles."""
    made = Stage()
    made.provider = Provider(*bodies)
    made.engine = replace(made.engine, provider=made.provider, scope=Scope(ROOTS, (LEAF,), "app=ours"), blueprints=BLUEPRINTS)
    return made


def owned(body: dict[str, Any], owner: Live | dict[str, Any]) -> dict[str, Any]:
    """The object, controlled by the owner."""
    uid = owner["metadata"]["uid"] if isinstance(owner, dict) else owner.uid
    reference = {"apiVersion": BUNDLE.api_version, "kind": BUNDLE.name, "name": "bundle", "uid": uid, "controller": True}
    return {**body, "metadata": {**body["metadata"], "ownerReferences": [reference]}}


def keys(plans: tuple[Plan, ...]) -> list[tuple[str, str]]:
    """Verb and object of every operation."""
    return [(str(operation.verb), str(operation.id)) for plan in plans for operation in plan.operations]


def of(kind: Kind, world: World) -> list[Observed]:
    """The roots of a kind."""
    return [observed for observed in world.roots if observed.root.id.kind == kind.name]


async def test_a_preview_without_any_object_shows_the_root_its_nested_roots_and_their_children() -> None:
    planned = (await preview(stage().engine, applying([bundle_body(roots={"a": {"leaves": 2}})]))).planned

    assert sorted(keys(planned.plans)) == [
        ("create", "Bundle/default/bundle"),
        ("create", "Leaf/default/a-0"),
        ("create", "Leaf/default/a-1"),
        ("create", "Root/default/a"),
    ]
    nested = next(plan for plan in planned.plans if plan.root.kind == ROOT.name)
    assert nested.parent == BUNDLE.id("default", "bundle")


async def test_sync_creates_the_root_then_the_nested_root_which_it_owns_then_the_children() -> None:
    scene = stage()

    report = await scene.sync(manifests=[bundle_body(roots={"a": {"leaves": 1}})])

    assert report.ending is Ending.DONE
    assert [key for key in scene.provider.started if key.startswith("create")] == [
        "create example.io/Bundle/default/bundle",
        "create example.io/Root/default/a",
        "create example.io/Leaf/default/a-0",
    ]
    nested, bundle = (scene.provider.objects[id]["metadata"] for id in (ROOT.id("default", "a"), BUNDLE.id("default", "bundle")))
    assert nested["ownerReferences"][0]["uid"] == bundle["uid"]


async def test_a_nested_root_follows_its_root_and_others_do_not_change() -> None:
    scene = stage()
    await scene.sync(manifests=[bundle_body(roots={"a": {"leaves": 1}, "b": {"leaves": 1}})])
    scene.provider.started.clear()

    report = await scene.sync(manifests=[bundle_body(roots={"a": {"leaves": 2}, "b": {"leaves": 1}})])

    assert report.ending is Ending.DONE
    changed = {key for key in scene.provider.started if not key.startswith("status")}
    assert changed == {"patch example.io/Bundle/default/bundle", "patch example.io/Root/default/a", "create example.io/Leaf/default/a-1"}


async def test_a_root_that_is_no_longer_named_is_deleted_by_the_root_that_controls_it() -> None:
    scene = stage()
    await scene.sync(manifests=[bundle_body(roots={"a": {"leaves": 0}, "b": {"leaves": 0}})])
    scene.provider.started.clear()

    await scene.sync(manifests=[bundle_body(roots={"b": {"leaves": 0}})])

    assert "delete example.io/Root/default/a" in scene.provider.started
    assert ROOT.id("default", "b") in scene.provider.objects


async def test_a_root_of_that_name_that_somebody_else_has_made_is_left_alone() -> None:
    scene = stage(root_body("a", leaves=0))

    report = await scene.sync(manifests=[bundle_body(roots={"a": {"leaves": 3}})], wait=False)

    assert scene.provider.objects[ROOT.id("default", "a")]["spec"] == {"leaves": 0}
    assert [wait.why for plan in report.plans for wait in plan.blocked] == ["a is not controlled by bundle"]


async def test_objects_of_nested_roots_are_scaled_once_they_exist() -> None:
    scene = stage()
    await scene.sync(manifests=[bundle_body(roots={"a": {"leaves": 1}}, scaled={"a-0": 3})])

    leaf = scene.provider.objects[LEAF.id("default", "a-0")]
    assert leaf["spec"] == {"replicas": 3}
    assert scene.provider.started.count("patch example.io/Leaf/default/a-0") == 1


async def test_what_a_root_names_is_looked_up_before_it_is_planned() -> None:
    scene = stage()
    manifest = bundle_body(roots={"a": {"leaves": 0}}, needs="key")

    blocked = await scene.sync(manifests=[manifest], wait=False)
    scene.provider.put({"apiVersion": LEAF.api_version, "kind": LEAF.name, "metadata": {"name": "key", "namespace": "default"}})
    await scene.clock.sleep(0)
    report = await scene.sync(manifests=[manifest])

    assert ROOT.id("default", "a") not in {operation.id for plan in blocked.plans for operation in plan.operations}
    assert report.ending is Ending.DONE
    assert ROOT.id("default", "a") in scene.provider.objects


def test_what_has_not_changed_is_the_same_object_in_the_next_world() -> None:
    provider = Provider(bundle_body(roots={"a": {"leaves": 0}, "b": {"leaves": 0}}))
    bundle = provider.objects[BUNDLE.id("default", "bundle")]
    provider.put(owned(root_body("a", leaves=0), bundle))
    lives = [live(body) for body in provider.objects.values()]
    memo = Memo()
    world = assemble(BLUEPRINTS, lives, (), {})

    first = compose(world, BLUEPRINTS, None, memo)
    second = compose(assemble(BLUEPRINTS, lives, (), {}, world), BLUEPRINTS, None, memo)

    assert [observed.root.id.name for observed in of(ROOT, first)] == ["a", "b"]
    assert all(before is after for before, after in zip(first.roots, second.roots, strict=True))


def test_a_world_without_composing_roots_is_returned_unchanged() -> None:
    world = propose(empty(), [root_body()])

    assert compose(world, BLUEPRINTS, None, Memo()) is world


async def test_a_report_shows_a_nested_root_after_the_root_that_it_is_part_of() -> None:
    manifests = [root_body("another", leaves=1), bundle_body(roots={"z": {"leaves": 1}})]
    planned = (await preview(stage().engine, applying(manifests))).planned

    report = report_of(planned.plans, lambda root, child: "")

    names = [root.root.name for root in report.roots]
    assert names.index("z") == names.index("bundle") + 1


def test_a_kind_that_only_roots_depend_on_that_do_not_exist_does_not_make_a_pass_incomplete() -> None:
    refused = Unlisted("forbidden")

    def seen(*present: str, unserved: frozenset[str] = frozenset()) -> dict[str, Unlisted]:
        return relevant_incomplete(BLUEPRINTS, {"Leaf": refused, "Other": refused}, unserved, present, None)

    assert seen("Root") == {"Leaf": refused}
    assert seen("Bundle") == seen() == {}
    assert seen("Root", unserved=frozenset({"Root"})) == {}
    assert relevant_incomplete(BLUEPRINTS, {"Root": refused}, (), (), None) == {"Root": refused}
