"""One object: which roots desire it and why, and what is due, deferred or pending for it; also orphans and foreign objects."""

from typing import Any

from engine.ids import ResourceId
from engine.memo import Memo
from engine.observed import live
from engine.resource import Stance
from resources.base import kinds
from resources.registry import BLUEPRINTS
from resources.reports.explanation import Explanation, explain
from tests.laws.rack import Rack
from tests.mnnvl.sets import auto, gpu, named
from tests.resources.domains.test_replica_domains import rack, root, scale, step

KINDS = {blueprint.kind.name: blueprint for blueprint in BLUEPRINTS}


def explained(toy: Rack, id: ResourceId, **more: Any) -> Explanation:
    """The explanation of an object of that cluster."""
    plans = {plan.root: plan for plan in toy.plans(Memo())}
    return explain(toy.world(), plans, KINDS, id, toy.configuration, toy.now, **more)


def test_an_object_in_sync_has_its_reason_root_and_part() -> None:
    explanation = explained(rack(auto(2)), kinds.PODCLIQUE.id("default", "demo-1-worker"))

    (desired,) = explanation.desired_by
    assert (desired.root, desired.part, desired.stance) == (root(), "1", Stance.WANT)
    assert "replica 1" in desired.why
    assert (explanation.roots, explanation.operations, explanation.deferred, explanation.pending) == ((root(),), (), (), ())
    assert (explanation.orphan, explanation.is_known) == (False, True)


def test_an_object_that_is_to_be_created_is_known_before_it_exists() -> None:
    toy = rack(auto(1))
    scale(toy, 2)
    explanation = explained(toy, toy.domain("demo-1"))

    assert (explanation.live, explanation.roots, explanation.is_known) == (None, (), True)
    assert [str(operation.verb) for operation in explanation.operations] == ["create"]


def test_an_object_that_is_removed_is_deferred_with_the_reason() -> None:
    toy = rack(auto(1, gpu(replicas=2)))
    scale(toy, 0)
    step(toy)
    explanation = explained(toy, toy.domain("demo-0"))

    assert [desired.stance for desired in explanation.desired_by] in ([Stance.HOLD], [Stance.DROP])
    assert explanation.deferred or explanation.operations


def test_every_set_that_shares_a_domain_desires_it() -> None:
    toy = rack(named("rack-a"), named("rack-a", "other"))
    explanation = explained(toy, toy.domain("rack-a"))

    assert [desired.root.name for desired in explanation.desired_by] == ["demo", "other"]
    assert [owner.name for owner in explanation.roots] == ["demo", "other"]


def test_a_root_desires_itself() -> None:
    explanation = explained(rack(auto(1)), root())

    assert [desired.part for desired in explanation.desired_by] == [""] and explanation.live is not None


def test_an_object_without_its_root_is_an_orphan_and_a_foreign_object_has_no_roots() -> None:
    toy = rack(auto(1))
    lost = {"app.kubernetes.io/managed-by": "grove-operator", "app.kubernetes.io/part-of": "gone"}
    toy.put({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "lost", "namespace": "default", "labels": lost}})
    other = live({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "namespace": "default", "uid": "u"}})

    orphan, foreign = explained(toy, kinds.SERVICE.id("default", "lost")), explained(toy, other.id, other=other)
    assert (orphan.orphan, orphan.is_known, orphan.desired_by) == (True, True, ())
    assert (foreign.live, foreign.is_known, foreign.roots, foreign.orphan) == (other, True, (), False)
    assert not explained(toy, kinds.POD.id("default", "nobody")).is_known


def test_the_faults_of_a_set_are_reported_for_the_objects_that_it_owns() -> None:
    toy = rack(auto(1))
    toy.write(root(), {"spec": {"template": {"cliques": [], "terminationDelay": "4h"}}})
    explanation = explained(toy, kinds.PODCLIQUE.id("default", "demo-0-worker"))

    assert (explanation.desired_by, explanation.roots) == ((), (root(),)) and explanation.problems


def test_an_object_of_a_root_without_a_plan_is_explained_without_it() -> None:
    toy = rack(auto(1))
    id = kinds.PODCLIQUE.id("default", "demo-0-worker")

    explanation = explain(toy.world(), {}, KINDS, id, toy.configuration, toy.now)

    assert (explanation.roots, explanation.is_known) == ((root(),), True)
    assert (explanation.desired_by, explanation.operations, explanation.problems) == ((), (), ())
