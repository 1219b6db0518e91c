"""KnownReferences: what sets may refer to is seen by all of them, and what has not changed stays the same object."""

from engine.memo import Memo
from engine.observed import Live, World, live
from engine.world import assemble, propose
from resources.base import kinds
from resources.registry import BLUEPRINTS
from tests.builders import podcliqueset
from tests.laws.toy import SETUP


def neighbour(revision: str = "1") -> Live:
    """A template of claims that somebody else has made."""
    metadata = {"name": "gpu", "namespace": "default", "uid": "gpu", "resourceVersion": revision}
    return live({"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaimTemplate", "metadata": metadata, "spec": {}})


def root(name: str) -> Live:
    """A set as observed."""
    body = podcliqueset(name)
    return live({**body, "metadata": {**body["metadata"], "uid": name, "resourceVersion": "1"}})


def seen(previous: World | None = None, revision: str = "1", unserved: frozenset[str] = frozenset()) -> World:
    """A look at two sets and a neighbour."""
    around = [neighbour(revision)]
    return assemble(BLUEPRINTS, [root("one"), root("two")], [], {}, previous, references=around, unserved=unserved)


def test_neighbours_are_seen_by_every_root_and_are_nobody_s_own() -> None:
    world = seen()

    assert [[id.name for id in observed.references.objects] for observed in world.roots] == [["gpu"], ["gpu"]]
    assert world.roots[0].references is world.roots[1].references
    assert world.orphans == ()
    assert all(not observed.foreign and not observed.slices for observed in world.roots)


def test_where_nothing_has_changed_every_root_is_the_same_object() -> None:
    before = seen()

    assert all(old is new for old, new in zip(before.roots, seen(before).roots, strict=True))


def test_a_neighbour_that_changes_makes_every_root_worth_another_look() -> None:
    before = seen()

    assert not any(old is new for old, new in zip(before.roots, seen(before, "2").roots, strict=True))
    assert not any(old is new for old, new in zip(before.roots, seen(before, unserved=frozenset({"x"})).roots, strict=True))


def test_a_root_that_a_manifest_proposes_has_the_same_neighbours() -> None:
    world = propose(seen(unserved=frozenset({"x"})), [podcliqueset("three")])

    assert [observed.unserved for observed in world.roots] == [frozenset({"x"})] * 3
    assert {id.name for observed in world.roots for id in observed.references.objects} == {"gpu"}
    assert world.roots[1].root.id == kinds.PODCLIQUESET.id("default", "three")


def test_a_set_that_refers_to_nobody_does_not_care_who_its_neighbours_are() -> None:
    memo = Memo()
    graphs = []
    for revision in ("1", "2"):
        observed = seen(revision=revision).roots[0]
        graphs.append(BLUEPRINTS[0].desire(observed, observed.root.created_at, SETUP, memo).graph)

    assert len({id(graph.parts[1]) for graph in graphs}) == 1
