"""Gang scheduling: sets whose scheduler places the pods of a gang one by one."""

from typing import Any

import pytest

from providers.registry import SCHEDULERS
from providers.schedulers.kube import KUBE, kube_scheduler
from resources.base import kinds
from resources.base.set_size import least_pods
from resources.model.gang_scheduling import on_cluster, placed_one_by_one, without_gangs
from resources.ports.configuration import Configuration, GangMode
from tests.builders import clique, group, podcliqueset

PLAIN = Configuration(SCHEDULERS, "default-scheduler")


@pytest.mark.parametrize(
    ("manifest", "pods"),
    [
        (podcliqueset("demo", clique("a")), 1),
        (podcliqueset("demo", clique("a", 3)), 3),
        (podcliqueset("demo", clique("a", 3, minAvailable=1)), 1),
        (podcliqueset("demo", clique("a"), clique("b", 2)), 3),
        (podcliqueset("demo", clique("a"), replicas=4), 1),
        (podcliqueset("demo", clique("a"), groups=(group("g", "a", replicas=3),)), 1),
        (podcliqueset("demo", clique("a", 2), clique("b"), groups=(group("g", "a", replicas=3, minAvailable=2),)), 5),
        (podcliqueset("demo", clique("a"), clique("b"), groups=(group("g", "a", "b"),)), 2),
    ],
)
def test_a_gang_needs_the_minimum_of_each_part(manifest: dict[str, Any], pods: int) -> None:
    assert least_pods(manifest) == pods
    assert (without_gangs(manifest, PLAIN) is None) == (pods == 1)


@pytest.mark.parametrize("template", [None, [], {"cliques": [None, {"spec": 3}], "podCliqueScalingGroups": [{"cliqueNames": [1, "x"]}]}])
def test_sets_of_any_shape_are_read(template: Any) -> None:
    without_gangs({"spec": {"template": template}}, PLAIN)


@pytest.mark.parametrize(
    ("scheduler", "is_mentioned"), [("default-scheduler", True), ("kai-scheduler", False), ("volcano", False), ("lpx-scheduler", False)]
)
def test_only_a_scheduler_that_schedules_no_gangs_has_ways_out(scheduler: str, is_mentioned: bool) -> None:
    named = podcliqueset("demo", clique("a", 2, podSpec={"schedulerName": scheduler, "containers": [{"name": "main", "image": "x"}]}))
    by_default = podcliqueset("demo", clique("a", 2))

    for manifest, configuration in ((named, PLAIN), (by_default, Configuration(SCHEDULERS, scheduler))):
        found = without_gangs(manifest, configuration)
        assert (found is not None) == is_mentioned
        assert found is None or placed_one_by_one(found, "this set") == (
            "default-scheduler does not schedule gangs: the pods of this set are placed one by one; set gangScheduling of its profile to "
            "Auto (Kubernetes 1.37), install KAI, install Volcano (and name it in scheduler.profiles and schedulerName), or accept that"
        )


def test_where_pod_groups_are_not_served_the_gates_of_kubernetes_are_one_way_out() -> None:
    auto = Configuration({KUBE: kube_scheduler(GangMode.AUTO)}, KUBE)
    manifest = podcliqueset("demo", clique("a", 2))
    unserved = frozenset({kinds.POD_GROUP.key})

    assert without_gangs(manifest, auto) is None and without_gangs(manifest, on_cluster(auto, frozenset())) is None
    found = without_gangs(manifest, on_cluster(auto, unserved))
    assert found is not None and placed_one_by_one(found, "this set") == (
        "default-scheduler does not schedule gangs: the pods of this set are placed one by one; enable gangs in Kubernetes 1.37 (feature "
        "gate GenericWorkload, and scheduling.k8s.io/v1beta1 of the API server), install KAI, install Volcano (and name it in "
        "scheduler.profiles and schedulerName), or accept that"
    )


def test_a_scheduler_without_a_back_end_is_not_judged() -> None:
    assert without_gangs(podcliqueset("demo", clique("a", 2)), Configuration({}, "other")) is None
