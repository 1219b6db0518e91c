"""LeaderWorkerSets whose pods kube-scheduler places together: where it does, what they have, and what stays as it was created."""

from collections.abc import Mapping
from typing import Any

import pytest

from engine.observed import Live, Slice, slice_of
from engine.observed import live as observed
from engine.paths import get, merge_patch, overlay
from providers.schedulers.kube import kube_scheduler
from resources.base import kinds
from resources.dynamo.model.graph import InferenceGraph, Orchestrator
from resources.dynamo.objects.components import component_notes, component_resources
from resources.dynamo.objects.group_scheduler import BY_VOLCANO, NATIVE, GroupScheduler, group_schedulers, notes_on_groups
from resources.dynamo.orchestrator import choose
from resources.ports.configuration import DynamoSettings, GangMode
from resources.ports.scheduler import Scheduler
from tests.resources.dynamo.objects.component_graphs import NOTHING, blocked, dropped, template_of
from tests.resources.dynamo.objects.grove_graphs import graph, worker

AUTO: Mapping[str, Scheduler] = {"default-scheduler": kube_scheduler(GangMode.AUTO)}
OFF: Mapping[str, Scheduler] = {"default-scheduler": kube_scheduler(GangMode.OFF)}
VOLCANO, POD_GROUP, GROVE = kinds.VOLCANO_POD_GROUP.key, kinds.POD_GROUP.key, kinds.PODCLIQUESET.key
TEMPLATES = ("leaderTemplate", "workerTemplate")
CURRENT = {"engine.grove.io/pod-form": "2"}


def decode(replicas: int = 1, nodes: int = 2, **pod: Any) -> InferenceGraph:
    """A graph with one service on several nodes."""
    return graph(decode=worker(nodes=nodes, replicas=replicas, extra_pod_spec=pod), annotations=CURRENT)


def scheduler_of(specified: InferenceGraph, *unserved: str, lives: Slice = NOTHING, schedulers: Mapping[str, Scheduler] = AUTO) -> str:
    """The scheduler of the groups of the service."""
    return group_schedulers(specified, lives, schedulers, unserved)["decode"].name


def made_of(specified: InferenceGraph, lives: Slice = NOTHING, scheduler: GroupScheduler = NATIVE) -> dict[str, Any]:
    """The objects of the graph by `<kind>/<name>`."""
    each = dict.fromkeys((service.name for service in specified.services), scheduler)
    made = component_resources(specified, DynamoSettings(), lives, {}, each, was_ready=True)
    return {f"{resource.id.kind}/{resource.id.name}": resource for resource in made}


def stored(resource: Any, **metadata: Any) -> Live:
    """The object that a server made of a resource."""
    return observed(overlay(resource.body, {"metadata": metadata}))


def without_group(body: Any) -> dict[str, Any]:
    """A LeaderWorkerSet as a release stores it that does not know the field."""
    return merge_patch(body, {"spec": {"leaderWorkerTemplate": {name: {"spec": {"schedulingGroup": None}} for name in TEMPLATES}}})


def test_kube_scheduler_takes_the_groups_where_volcano_is_not_served_or_the_service_names_it() -> None:
    assert scheduler_of(decode(), VOLCANO) == "default-scheduler"
    assert scheduler_of(decode()) == "volcano"
    assert scheduler_of(decode(schedulerName="default-scheduler")) == "default-scheduler"
    assert scheduler_of(decode(), VOLCANO, POD_GROUP) == scheduler_of(decode(), VOLCANO, schedulers=OFF) == "volcano"


def test_what_leader_worker_sets_were_created_for_stays() -> None:
    for scheduler in (NATIVE, BY_VOLCANO):
        lives = slice_of([stored(made_of(decode(), scheduler=scheduler)["LeaderWorkerSet/g-decode-0"])])
        for unserved in ((), (VOLCANO,), (POD_GROUP,)):
            for schedulers in (AUTO, OFF):
                assert scheduler_of(decode(replicas=2), *unserved, lives=lives, schedulers=schedulers) == scheduler.name


def test_an_annotation_of_a_service_does_not_choose_the_scheduler() -> None:
    specified = graph(decode=worker(nodes=2, replicas=1, annotations={"engine.grove.io/gang-form": "flat"}))
    workload = made_of(specified, scheduler=BY_VOLCANO)["LeaderWorkerSet/g-decode-0"]

    assert scheduler_of(specified, lives=slice_of([stored(workload)])) == "volcano"


def test_a_replica_has_a_pod_group_of_all_its_pods_which_both_templates_name() -> None:
    made = made_of(decode(nodes=3, priorityClassName="high"))
    gang, workload = made["PodGroup/g-decode-0"], made["LeaderWorkerSet/g-decode-0"]

    assert (gang.id.group, gang.body["apiVersion"]) == ("scheduling.k8s.io", "scheduling.k8s.io/v1beta1")
    assert gang.body["spec"] == {"schedulingPolicy": {"gang": {"minCount": 3}}, "priorityClassName": "high"}
    assert workload.after == {gang.id} and workload.body["metadata"]["annotations"]["engine.grove.io/gang-form"] == "flat"
    for name in TEMPLATES:
        template = template_of(workload, name)
        assert template["spec"]["schedulerName"] == "default-scheduler"
        assert template["spec"]["schedulingGroup"] == {"podGroupName": "g-decode-0"}
        assert "annotations" not in template["metadata"]


def test_pods_of_another_scheduler_are_in_no_pod_group_and_a_note_says_so() -> None:
    specified = decode(schedulerName="mine")

    assert "schedulingGroup" not in template_of(made_of(specified)["LeaderWorkerSet/g-decode-0"])["spec"]
    assert component_notes(specified, {"decode": NATIVE})[0] == (
        "spec.services[decode].extraPodSpec.schedulerName: mine schedules the pods one by one: only default-scheduler knows their gang"
    )


def test_a_group_that_the_server_drops_is_not_sent_again_until_the_template_changes_and_a_note_says_so() -> None:
    workload = made_of(decode())["LeaderWorkerSet/g-decode-0"]
    lives = slice_of([observed(without_group(workload.body))])
    again, edited = (made_of(each, lives)["LeaderWorkerSet/g-decode-0"] for each in (decode(), decode(hostNetwork=True)))

    assert again.body["spec"]["leaderWorkerTemplate"] == without_group(workload.body)["spec"]["leaderWorkerTemplate"]
    assert again.body["metadata"]["labels"] == workload.body["metadata"]["labels"]
    assert "schedulingGroup" in template_of(edited)["spec"]
    (note,) = notes_on_groups(decode(), lives)
    assert note.startswith("the LeaderWorkerSets of decode do not keep schedulingGroup in their pod templates (those of version 0.9")
    assert notes_on_groups(decode(), slice_of([stored(workload)])) == ()


def test_a_replica_goes_before_its_pod_group_which_kubernetes_keeps_until_its_pods_are_gone() -> None:
    before = made_of(decode(replicas=1))
    gang, workload = before["PodGroup/g-decode-0"], before["LeaderWorkerSet/g-decode-0"]
    removed = made_of(decode(replicas=0), slice_of([stored(gang), stored(workload)]))
    assert set(dropped(removed)) == {"PodGroup/g-decode-0", "LeaderWorkerSet/g-decode-0"}
    assert removed["LeaderWorkerSet/g-decode-0"].after == {gang.id}

    kept = stored(gang, deletionTimestamp="2026-01-01T00:00:00Z", finalizers=["scheduling.k8s.io/podgroup-protection"])
    waiting = made_of(decode(replicas=0), slice_of([kept]))
    assert dropped(waiting) == blocked(waiting) == {} and "its pods are gone" in waiting["PodGroup/g-decode-0"].why
    again = made_of(decode(replicas=1), slice_of([kept]))["LeaderWorkerSet/g-decode-0"]
    assert "PodGroup g-decode-0 is being deleted" in again.why


def test_the_number_of_nodes_may_change() -> None:
    lives = slice_of([stored(each) for key, each in made_of(decode(nodes=2)).items() if "decode-0" in key])
    made = made_of(decode(nodes=4), lives)

    assert get(made["PodGroup/g-decode-0"].body, ("spec", "schedulingPolicy", "gang", "minCount")) == 4
    assert made["LeaderWorkerSet/g-decode-0"].body["spec"]["leaderWorkerTemplate"]["size"] == 4


@pytest.mark.parametrize("recorded", [None, Orchestrator.COMPONENTS])
def test_without_volcano_pod_groups_of_kubernetes_are_enough_to_run_without_grove(recorded: Orchestrator | None) -> None:
    def chosen(groups: GroupScheduler) -> Orchestrator | None:
        return choose(decode(), {VOLCANO, GROVE}, recorded, groups=(groups.kind,)).orchestrator

    assert (chosen(NATIVE), chosen(BY_VOLCANO)) == (Orchestrator.COMPONENTS, None)
