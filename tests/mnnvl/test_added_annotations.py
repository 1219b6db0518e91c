"""Annotations that a user adds to live PodCliques and scaling groups have no effect, and an Event about that object says so once."""

from collections.abc import Mapping

from engine.ids import ResourceId
from engine.runtime.event_publishing import new_warnings, warnings_of
from providers.fabrics.nvidia.names import AUTO, NAMED
from resources.base import kinds
from resources.reports.summary import summary
from tests.builders import clique, group, podcliqueset
from tests.laws.rack import Rack
from tests.mnnvl.asking import claimed, plan_of, up
from tests.mnnvl.sets import auto, gpu, named

ALONE = kinds.PODCLIQUE.id("default", "demo-0-alone")
POOL = kinds.SCALING_GROUP.id("default", "demo-1-pool")
REASON = "ComputeDomainAnnotationIgnored"


def annotated(toy: Rack, id: ResourceId, annotations: Mapping[str, str]) -> list[tuple[ResourceId, str]]:
    """The objects that new Events are about after `kubectl annotate`, and their messages; the state of the set is as before."""
    toy.write(id, {"metadata": {"annotations": dict(annotations)}})
    world, plan = toy.world(), plan_of(toy)
    warnings = warnings_of(world, [plan])
    (observed,) = world.roots
    shown = summary(observed, plan)
    assert (shown.state, shown.alarms) == ("settled", ())
    assert new_warnings(warnings, frozenset(each for listed in warnings.values() for each in listed)) == {}
    assert {each.reason for listed in warnings.values() for each in listed} <= {REASON}
    return [(each.root, each.text) for listed in warnings.values() for each in sorted(listed)]


def test_N35_a_name_on_a_live_podclique_is_told_at_that_podclique() -> None:
    toy = up(podcliqueset("demo", clique("alone")))
    reading = "it is read from spec.template.cliques[].annotations of the PodCliqueSet"

    assert annotated(toy, ALONE, {NAMED: "mine"}) == [(ALONE, f"PodClique demo-0-alone: annotation {NAMED} has no effect there: {reading}")]
    assert claimed(toy) == {"demo-0-alone": []}


def test_N35_one_replica_cannot_opt_out_and_that_is_told() -> None:
    toy = up(auto(2, gpu("alone"), gpu("member"), groups=(group("pool", "member"),)))
    ((about, message),) = annotated(toy, ALONE, {AUTO: "disabled"})

    assert about == ALONE
    assert f"annotation {AUTO} has no effect there" in message and "opting out of them, are for the whole set" in message
    assert claimed(toy)["demo-0-alone"] == ["demo-0"]


def test_N35_a_scaling_group_s_own_annotations_are_told_too_and_those_that_it_inherits_are_not() -> None:
    inheriting = up(auto(2, gpu("member"), groups=(group("pool", "member"),)))
    plain = up(podcliqueset("demo", gpu("member"), groups=(group("pool", "member"),), replicas=2), flag=False)

    assert plan_of(inheriting).alarms == ()
    assert [about for about, _ in annotated(plain, POOL, {AUTO: "disabled"})] == [POOL]


def test_annotations_of_the_template_are_no_additions() -> None:
    assert plan_of(up(named("shared"))).alarms == ()
