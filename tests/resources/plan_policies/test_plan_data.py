"""What rules see of a plan: the numbers of its forecast, and every operation of every pass."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from engine.forecast.forecast import Forecast, ForecastPass
from engine.forecast.simulation import forecast
from engine.guard import Limits
from engine.ids import ResourceId
from engine.intent import NOTHING
from engine.memo import Memo
from engine.observed import World
from engine.plan import Plan, Wait
from engine.proposal import propose
from engine.report.model import Report, compose
from engine.tick import plan_all
from engine.verb import Verb
from resources.base.kinds import PODCLIQUESET
from resources.cluster_model.cluster import ModelledCluster
from resources.plan_policies.plan_data import PlanData, images, plan_data
from resources.registry import BLUEPRINTS
from tests.builders import clique, group, podcliqueset
from tests.engine.report.plans import operation, report_of
from tests.laws.toy import CONFIGURATION, START, Toy
from tests.resources.plan_policies.data import misfits

DEMO = PODCLIQUESET.id("default", "demo")
GPUS = {"containers": [{"name": "main", "image": "serve:1", "resources": {"limits": {"nvidia.com/gpu": "4"}}}]}
FEWER = {"containers": [{"name": "main", "image": "serve:2", "resources": {"limits": {"nvidia.com/gpu": "2"}}}]}
KEEP = {"example.com/keep": "yes"}


def demo(pod_spec: Any = GPUS, replicas: int = 2) -> dict[str, Any]:
    """A set of pods with GPUs, two of which are a scaling group's."""
    cliques = clique("front", 2, pod_spec=pod_spec), clique("work", 1, pod_spec=pod_spec)
    body = podcliqueset("demo", *cliques, groups=(group("g", "work", replicas=2),), replicas=replicas)
    body["metadata"]["annotations"] = {**KEEP, "grove.io/auto-mnnvl": "disabled"}
    return body


def settled(body: dict[str, Any]) -> Toy:
    """A cluster with the set, in which nothing is left to do."""
    toy = Toy()
    toy.put(body)
    toy.settle()
    return toy


def seen(world: World, toy: Toy, *, forecasts: bool = True) -> PlanData:
    """What rules see of the plan for a world."""
    following = forecast(BLUEPRINTS, world, NOTHING, toy.now, CONFIGURATION, ModelledCluster(CONFIGURATION.fabrics))
    plans = plan_all(BLUEPRINTS, world, toy.now, CONFIGURATION, Memo(), Limits()).plans
    report = replace(compose(plans, lambda root, child: ""), forecast=following if forecasts else None)
    data = plan_data(report, world, toy.now)
    assert misfits("Plan", data.plan_of(data.sets)) == []
    return data


def changed(change: Callable[[Toy], None], before: Any = None) -> dict[str, Any]:
    """The data of the set after a change."""
    toy = settled(before or demo())
    change(toy)
    (found,) = seen(toy.world(), toy).sets
    return found.data


def edit(body: dict[str, Any]) -> Callable[[Toy], None]:
    """The change that applies a manifest."""
    return lambda toy: toy.write(DEMO, {"spec": body["spec"], "metadata": {"generation": 2}})


def test_an_update_restarts_pods_and_lowers_cliques() -> None:
    data = changed(edit(demo(FEWER)))

    totals = {field: count for field, count in data["summary"].items() if count and field.startswith(("pods", "gpus", "domains"))}
    assert totals == {"podsRestarted": 8, "gpusRestarted": 16}
    assert data["summary"]["creates"] == sum(each["verb"] == "create" for each in data["operations"]) >= 8
    assert (data["end"], data["isNew"], data["isDeleted"], data["images"]) == ("settled", False, False, ["serve:2"])
    assert data["replicas"] == {"before": 2, "after": 2}
    assert [(each["name"], each["replica"], each["lowest"], each["below"]) for each in data["cliques"]][0] == ("demo-0-front", 0, 1, True)
    assert {each["stage"] for each in data["operations"]} >= {0, 1, 2}
    assert all(each["set"] == "default/demo" for each in data["operations"])


def test_a_clique_that_stays_below_its_minimum_is_seen() -> None:
    waiting = GPUS | {"resourceClaims": [{"name": "c", "resourceClaimTemplateName": "nobody-makes-it"}]}

    data = changed(edit(demo(waiting)))

    assert (data["end"], [(each["lowest"], each["after"], each["below"]) for each in data["cliques"]]) == ("stuck", [(1, 1, True)])


def test_a_deletion_removes_everything() -> None:
    data = changed(lambda toy: toy.delete(DEMO))

    assert (data["isDeleted"], data["replicas"]) == (True, {"before": 2, "after": 0})
    assert (data["summary"]["podsRemoved"], data["summary"]["gpusRemoved"]) == (8, 32)
    assert data["annotations"].items() >= KEEP.items()
    assert (data["cliques"], data["groups"]) == ([], [])


def test_scaling_in_changes_replicas() -> None:
    data = changed(edit(demo(replicas=1)))

    assert (data["summary"]["podsRemoved"], data["summary"]["gpusRemoved"]) == (4, 16)
    assert {each["verb"] for each in data["operations"]} >= {"delete"}


def test_a_new_set_is_seen_as_its_manifest() -> None:
    toy = Toy()
    (found,) = seen(propose(toy.world(), [demo()]), toy, forecasts=False).sets

    assert (found.data["isNew"], found.data["replicas"], found.data["end"]) == (True, {"before": 0, "after": 2}, "unknown")
    assert found.data["annotations"] == demo()["metadata"]["annotations"]
    assert (found.data["summary"]["creates"], {each["stage"] for each in found.data["operations"]}) == (len(found.data["operations"]), {0})


def test_an_edit_shows_replicas_before_and_after_and_its_fields() -> None:
    toy = settled(demo())
    (found,) = seen(propose(toy.world(), [demo(replicas=3)]), toy, forecasts=False).sets

    (patch,) = (each for each in found.data["operations"] if each["kind"] == "PodCliqueSet")
    assert found.data["replicas"] == {"before": 2, "after": 3}
    assert (patch["verb"], patch["fields"], patch["cause"], patch["asked"]) == ("patch", ["spec.replicas"], "intent", True)


def test_nothing_to_do_is_no_set() -> None:
    toy = settled(demo())
    data = seen(toy.world(), toy)

    assert (data.sets, data.plan_of(())["end"]) == ((), "settled")


def test_an_operation_has_the_annotations_that_the_object_has_and_not_those_that_it_would_get() -> None:
    toy = settled(demo())
    (name, *_) = (id for id in toy.objects if id.kind == "Service")
    toy.write(name, {"metadata": {"annotations": {**KEEP, "kubectl.kubernetes.io/last-applied-configuration": "a secret"}}})
    body = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name.name, "annotations": {"new": "yes"}}}
    report = report_about(operation(Verb.REPLACE, name, body=body), operation(Verb.CREATE, name._replace(name="x"), body=body))

    (found,) = plan_data(report, toy.world(), START).sets

    assert [each["annotations"] for each in found.data["operations"]] == [KEEP, {"new": "yes"}]


def test_an_annotation_of_a_domain_is_seen_too() -> None:
    body = demo()
    body["metadata"]["annotations"] = {"grove.io/auto-mnnvl": "enabled"}
    toy = Toy()
    toy.put(body)
    for _ in range(3):
        toy.apply(operation for plan in toy.plans() for operation in plan.operations)
    domain = next(id for id in toy.objects if id.kind == "ComputeDomain")
    toy.write(domain, {"metadata": {"annotations": KEEP}})
    toy.delete(DEMO)

    (found,) = seen(toy.world(), toy).sets

    assert [each["name"] for each in found.data["deletions"] if each["annotations"] == KEEP] == [domain.name]


def test_what_happens_after_a_time_is_not_of_the_next_pass() -> None:
    toy = settled(demo())
    later = (ForecastPass(timedelta(hours=4), {DEMO: (operation(Verb.DELETE, DEMO),)}),)
    report = replace(report_about(), forecast=Forecast(START, later, True, {}, {}, frozenset()))

    (found,) = plan_data(report, toy.world(), START).sets

    assert [each["stage"] for each in found.data["operations"]] == [1]


def report_about(*operations: Any, **rest: Any) -> Report:
    """The report of a plan with these operations on the set."""
    return compose([Plan(DEMO, operations, **rest)], lambda root, child: "")


def test_objects_of_a_set_that_is_gone_are_seen_too() -> None:
    report = report_of(operation(Verb.DELETE, ResourceId("", "Service", "default", "left")))

    (found,) = plan_data(report, World(()), START).sets

    assert (found.data["isDeleted"], found.data["isNew"], found.data["labels"]) == (True, False, {})
    assert misfits("Set", found.data) == []


def test_what_is_blocked_is_seen_with_its_reason() -> None:
    toy = settled(demo())
    service = ResourceId("", "Service", "default", "web")
    waits = Wait(service, "it is not ours", blocked=True), Wait(DEMO, "later")
    report = report_about(operation(Verb.DELETE, service), deferred=waits)

    data = plan_data(report, toy.world(), START)

    (blocked,) = data.plan_of(data.sets)["blocked"]
    assert (blocked["kind"], blocked["name"], blocked["message"], blocked["set"]) == ("Service", "web", "it is not ours", "default/demo")


@pytest.mark.parametrize(
    ("value", "found"),
    [
        ({"containers": [{"image": "a"}, {"image": 3}, "x"], "initContainers": [{"image": "b"}]}, {"a", "b"}),
        ({"extraPodSpec": {"mainContainer": {"image": "c"}, "nodeSelector": {"image": "no"}}}, {"c"}),
        ({"volumes": [{"image": {"reference": "d"}}, {"emptyDir": {}}]}, {"d"}),
        ({"containers": "x", "volumes": None}, set()),
        (None, set()),
    ],
)
def test_images_are_found_wherever_containers_are(value: Any, found: set[str]) -> None:
    assert set(images(value)) == found
