"""References: objects that sets refer to are observed for all sets, and unchanged ones stay the same object."""

from engine.memo import Memo
from engine.observed import Live, World, live
from engine.proposal import propose
from engine.world import assemble
from resources.base import kinds
from resources.registry import BLUEPRINTS
from tests.builders import podcliqueset
from tests.laws.toy import CONFIGURATION


def claim_template(revision: str = "1") -> Live:
    """A ResourceClaimTemplate of a user."""
    metadata = {"name": "gpu", "namespace": "default", "uid": "gpu", "resourceVersion": revision}
    return live({"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaimTemplate", "metadata": metadata, "spec": {}})


def root(name: str) -> Live:
    """A live set."""
    body = podcliqueset(name)
    return live({**body, "metadata": {**body["metadata"], "uid": name, "resourceVersion": "1"}})


def observed_world(previous: World | None = None, revision: str = "1", unserved: frozenset[str] = frozenset()) -> World:
    """Two sets and a claim template."""
    references = [claim_template(revision)]
    return assemble(BLUEPRINTS, [root("one"), root("two")], [], {}, previous, references=references, unserved=unserved)


def test_every_root_has_the_references_and_none_owns_them() -> None:
    world = observed_world()

    assert [[id.name for id in observed.references.objects] for observed in world.roots] == [["gpu"], ["gpu"]]
    assert world.roots[0].references is world.roots[1].references
    assert world.orphans == ()
    assert all(not observed.foreign and not observed.slices for observed in world.roots)


def test_an_unchanged_root_is_the_same_object() -> None:
    before = observed_world()

    assert all(old is new for old, new in zip(before.roots, observed_world(before).roots, strict=True))


def test_a_changed_reference_changes_every_root() -> None:
    before = observed_world()

    assert not any(old is new for old, new in zip(before.roots, observed_world(before, "2").roots, strict=True))
    assert not any(old is new for old, new in zip(before.roots, observed_world(before, unserved=frozenset({"x"})).roots, strict=True))


def test_a_proposed_root_has_the_same_references() -> None:
    world = propose(observed_world(unserved=frozenset({"x"})), [podcliqueset("three")])

    assert [observed.unserved for observed in world.roots] == [frozenset({"x"})] * 3
    assert {id.name for observed in world.roots for id in observed.references.objects} == {"gpu"}
    assert world.roots[1].root.id == kinds.PODCLIQUESET.id("default", "three")


def test_a_set_that_refers_to_nothing_is_not_computed_again_when_references_change() -> None:
    memo = Memo()
    graphs = []
    for revision in ("1", "2"):
        observed = observed_world(revision=revision).roots[0]
        graphs.append(BLUEPRINTS[0].desire(observed, observed.root.created_at, CONFIGURATION, memo).graph)

    assert len({id(graph.parts[1]) for graph in graphs}) == 1
