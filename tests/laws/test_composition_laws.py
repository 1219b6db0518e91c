"""Worlds that are composed one after the other, with one memo, are those that are composed alone."""

from collections.abc import Mapping
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from engine.ids import ResourceId
from engine.memo import Memo
from engine.observed import Live, Observed, World, live
from engine.proposal import compose
from engine.world import assemble
from tests.engine.runtime.bundle import BUNDLE, Bundles, NestableToy, bundle_body
from tests.engine.runtime.fakes import ROOT
from tests.engine.runtime.toy import root_body
from tests.laws.toy import Body

BLUEPRINTS = (NestableToy(), Bundles())
names = st.sampled_from("abc")
bundles = st.sampled_from(("first", "second"))
roots_of_bundle = st.dictionaries(names, st.fixed_dictionaries({"leaves": st.integers(0, 1)}), max_size=2)
Cluster = dict[ResourceId, Live]


def put(cluster: Cluster, body: Body, number: int, owner: Live | None = None) -> None:
    """Store a version of an object; of one that exists the uid stays."""
    id = live(body).id
    uid = cluster[id].uid if id in cluster else f"uid-{number}"
    reference = {"apiVersion": BUNDLE.api_version, "kind": BUNDLE.name, "name": owner.id.name, "uid": owner.uid} if owner else {}
    owners = {"ownerReferences": [reference | {"controller": True}]} if reference else {}
    metadata = {**body["metadata"], "uid": uid, "resourceVersion": str(number), **owners}
    cluster[id] = live({**body, "metadata": metadata})


def act(data: st.DataObject, cluster: Cluster, number: int) -> None:
    """Do something to a bundle or to a root, which a bundle may control."""
    bundle = BUNDLE.id("default", data.draw(bundles))
    root = ROOT.id("default", data.draw(names))
    match data.draw(st.sampled_from(("bundle", "bundle", "root", "own", "own", "delete bundle", "delete root"))):
        case "bundle":
            put(cluster, bundle_body(bundle.name, roots=data.draw(roots_of_bundle)), number)
        case "root":
            put(cluster, root_body(root.name, leaves=number), number)
        case "own":
            put(cluster, root_body(root.name, leaves=number), number, cluster.get(bundle))
        case "delete bundle":
            cluster.pop(bundle, None)
        case _:
            cluster.pop(root, None)


def content(world: World) -> Any:
    """Everything that a world has of its roots."""
    return [_content(observed) for observed in world.roots]


def _content(observed: Observed) -> Any:
    proposer = observed.proposer.id if observed.proposer is not None else None
    nested: Mapping[ResourceId, Observed] = observed.nested
    foreign = [(id, each.revision) for id, each in observed.foreign.items()]
    inner = [(id, each.root.revision) for id, each in nested.items()]
    return observed.root.id, observed.root.body, observed.proposal, proposer, inner, foreign


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_a_world_that_is_composed_after_others_is_the_one_that_is_composed_alone(data: st.DataObject) -> None:
    """Also while two bundles propose the same root, and where a root of that name is not theirs."""
    cluster, memo, world = Cluster(), Memo(), World(())
    before: dict[ResourceId, Observed] = {}
    for number in range(data.draw(st.integers(1, 8))):
        concerned = dict(cluster)
        act(data, cluster, number)
        world = assemble(BLUEPRINTS, cluster.values(), (), {}, world)

        composed = compose(world, BLUEPRINTS, None, memo)

        assert content(composed) == content(compose(world, BLUEPRINTS, None, Memo()))
        now = {observed.root.id: observed for observed in composed.roots}
        if concerned == cluster:
            assert all(before.get(id) is observed for id, observed in now.items())
        before = now
