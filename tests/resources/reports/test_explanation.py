"""One object: who wants it and why, how it stands; and that nothing wants it."""

from typing import Any

from engine.ids import ResourceId
from engine.memo import Memo
from engine.observed import live
from engine.resource import Stance
from resources.base import kinds
from resources.registry import BLUEPRINTS
from resources.reports.explanation import Explanation, account
from tests.laws.rack import Rack
from tests.mnnvl.sets import auto, gpu, named
from tests.resources.domains.test_replica_domains import rack, root, scale, step

KINDS = {blueprint.kind.name: blueprint for blueprint in BLUEPRINTS}


def of(toy: Rack, id: ResourceId, **more: Any) -> Explanation:
    """What is to be said of an object of that cluster."""
    plans = {plan.root: plan for plan in toy.plans(Memo())}
    return account(toy.world(), plans, KINDS, id, toy.settings, toy.now, **more)


def test_what_is_there_as_wanted_is_told_with_its_reason_root_and_part() -> None:
    one = of(rack(auto(2)), kinds.PODCLIQUE.id("default", "demo-1-worker"))

    assert [(want.root, want.part, want.why, want.stance) for want in one.wanted] == [
        (root(), "1", "clique worker of replica 1", Stance.WANT)
    ]
    assert (one.roots, one.operations, one.deferred, one.pending, one.orphan) == ((root(),), (), (), (), False)
    assert one.is_known


def test_what_is_to_be_made_is_known_before_it_is_there() -> None:
    toy = rack(auto(1))
    scale(toy, 2)
    one = of(toy, toy.domain("demo-1"))

    assert (one.live, one.roots, one.is_known) == (None, (), True)
    assert [str(operation.verb) for operation in one.operations] == ["create"]


def test_what_goes_is_held_with_the_reason() -> None:
    toy = rack(auto(1, gpu(replicas=2)))
    scale(toy, 0)
    step(toy)
    one = of(toy, toy.domain("demo-0"))

    assert [want.stance for want in one.wanted] in ([Stance.HOLD], [Stance.DROP])
    assert one.deferred or one.operations


def test_who_shares_a_domain_wants_it() -> None:
    toy = rack(named("rack-a"), named("rack-a", "other"))
    one = of(toy, toy.domain("rack-a"))

    assert [want.root.name for want in one.wanted] == ["demo", "other"]
    assert [of_root.name for of_root in one.roots] == ["demo", "other"]


def test_a_root_is_its_own() -> None:
    one = of(rack(auto(1)), root())

    assert [want.part for want in one.wanted] == [""] and one.live is not None


def test_what_has_lost_its_root_is_an_orphan_and_a_stranger_is_a_stranger() -> None:
    toy = rack(auto(1))
    lost = {"app.kubernetes.io/managed-by": "grove-operator", "app.kubernetes.io/part-of": "gone"}
    toy.put({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "lost", "namespace": "default", "labels": lost}})
    other = live({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "namespace": "default", "uid": "u"}})

    orphan, stranger = of(toy, kinds.SERVICE.id("default", "lost")), of(toy, other.id, other=other)
    assert (orphan.orphan, orphan.is_known, orphan.wanted) == (True, True, ())
    assert (stranger.live, stranger.is_known, stranger.roots, stranger.orphan) == (other, True, (), False)
    assert not of(toy, kinds.POD.id("default", "nobody")).is_known


def test_a_set_that_cannot_be_understood_says_so_of_what_is_its_own() -> None:
    toy = rack(auto(1))
    toy.write(root(), {"spec": {"template": {"cliques": [], "terminationDelay": "4h"}}})
    one = of(toy, kinds.PODCLIQUE.id("default", "demo-0-worker"))

    assert (one.wanted, one.roots) == ((), (root(),)) and one.problems
