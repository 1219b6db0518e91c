"""The component path: LeaderWorkerSets with PodGroups, Deployments and Services; holding, scaling down, updates and names."""

from typing import Any

import pytest

from engine.observed import live as observed
from engine.observed import slice_of
from engine.resource import Stance
from resources.base import kinds
from resources.dynamo.model.graph import InferenceGraph
from resources.dynamo.objects.component_names import LONGEST_INSTANCE
from resources.dynamo.objects.components import component_notes, component_warnings
from resources.dynamo.objects.obsolete_components import obsolete_components
from resources.ports.configuration import DynamoSettings
from tests.resources.dynamo.objects import golden_components
from tests.resources.dynamo.objects.component_graphs import blocked, dropped, lives_of, resources, template_of, wanted
from tests.resources.dynamo.objects.grove_graphs import COMMANDS, frontend, graph, worker

OWN = {"app.kubernetes.io/managed-by": "dynamo-operator", "app.kubernetes.io/part-of": "g"}
IDENTITY = {
    "nvidia.com/dynamo-graph-deployment-name": "g",
    "nvidia.com/dynamo-component": "decode",
    "nvidia.com/dynamo-namespace": "dynamo-g",
    "nvidia.com/dynamo-component-type": "worker",
}


def decode(replicas: int = 2, nodes: int = 2, **fields: Any) -> InferenceGraph:
    """A graph with one service on several nodes."""
    return graph(decode=worker(nodes=nodes, replicas=replicas, **fields))


@pytest.mark.parametrize("framework", COMMANDS)
def test_the_objects_of_a_graph_are_the_recorded_ones(framework: str) -> None:
    assert golden_components.recorded(framework) == golden_components.computed(framework)


def test_each_replica_of_a_multinode_service_has_a_pod_group_and_after_it_a_leader_worker_set_of_the_same_name() -> None:
    made = resources(decode(replicas=2))

    assert wanted(made) == [
        "PodGroup/g-decode-0",
        "LeaderWorkerSet/g-decode-0",
        "PodGroup/g-decode-1",
        "LeaderWorkerSet/g-decode-1",
        "Service/g-decode",
    ]
    assert made["LeaderWorkerSet/g-decode-1"].after == {kinds.VOLCANO_POD_GROUP.id("ai", "g-decode-1")}


def test_the_graph_owns_every_object_and_every_object_says_why_it_exists() -> None:
    specified = graph(Frontend=frontend(), decode=worker(nodes=2))

    for resource in resources(specified).values():
        assert resource.owners == (specified.owner,)
        assert resource.why
        assert resource.body["metadata"]["labels"].items() >= OWN.items()


def test_a_pod_group_sets_the_number_of_pods_and_nothing_else() -> None:
    gang = resources(decode(nodes=3))["PodGroup/g-decode-1"]

    assert gang.id.group == "scheduling.volcano.sh"
    assert gang.body["spec"] == {"minMember": 3}
    assert gang.body["metadata"]["labels"]["instance-id"] == "1"


def test_a_leader_worker_set_has_one_group_of_as_many_pods_as_nodes() -> None:
    body = resources(decode(nodes=3))["LeaderWorkerSet/g-decode-1"].body
    group = body["spec"].pop("leaderWorkerTemplate")

    assert body["apiVersion"] == "leaderworkerset.x-k8s.io/v1"
    assert body["spec"] == {"replicas": 1, "startupPolicy": "LeaderCreated"}
    assert set(group) == {"size", "leaderTemplate", "workerTemplate"}
    assert group["size"] == 3
    assert body["metadata"]["labels"].items() >= {**IDENTITY, **OWN, "instance-id": "1"}.items()


@pytest.mark.parametrize(("field", "role"), [("leaderTemplate", "leader"), ("workerTemplate", "worker")])
def test_both_templates_name_the_pod_group_the_role_and_the_replica(field: str, role: str) -> None:
    template = template_of(resources(decode())["LeaderWorkerSet/g-decode-1"], field)

    assert template["metadata"]["annotations"] == {"scheduling.k8s.io/group-name": "g-decode-1"}
    assert template["metadata"]["labels"] == {**IDENTITY, "nvidia.com/metrics-enabled": "true", "role": role, "instance-id": "1"}
    assert template["spec"]["schedulerName"] == "volcano"


def test_pods_of_a_leader_worker_set_have_no_selector_label_and_none_of_the_labels_of_objects() -> None:
    labels = template_of(resources(decode())["LeaderWorkerSet/g-decode-0"])["metadata"]["labels"]

    assert "nvidia.com/selector" not in labels
    assert not any(key.startswith("app.kubernetes.io/") for key in labels)


def test_volcano_schedules_the_pods_whatever_scheduler_the_service_names_and_a_note_says_so() -> None:
    specified = decode(extra_pod_spec={"schedulerName": "mine"})

    assert template_of(resources(specified)["LeaderWorkerSet/g-decode-0"])["spec"]["schedulerName"] == "volcano"
    assert component_notes(specified) == (
        "spec.services[decode].extraPodSpec.schedulerName: mine is replaced by volcano, which schedules the gangs of LeaderWorkerSets",
    )


@pytest.mark.parametrize(("given", "expected"), [({}, "default"), ({"serviceAccountName": "mine"}, "mine")])
def test_pods_use_the_service_account_that_the_service_names_else_the_default_one(given: dict[str, str], expected: str) -> None:
    made = resources(graph(decode=worker(nodes=2, extra_pod_spec=given), single=worker(extra_pod_spec=given)))

    assert template_of(made["LeaderWorkerSet/g-decode-0"], "workerTemplate")["spec"]["serviceAccountName"] == expected
    assert template_of(made["Deployment/g-single"])["spec"]["serviceAccountName"] == expected


def test_labels_and_annotations_of_a_service_reach_object_and_pods_but_cannot_override_what_identifies_them() -> None:
    specified = decode(
        labels={"team": "a", "nvidia.com/dynamo-component": "other", "role": "x"},
        annotations={"note": "b"},
        extraPodMetadata={"labels": {"team": "pods"}, "annotations": {"note": "pods", "extra": "c"}},
    )
    workload = resources(specified)["LeaderWorkerSet/g-decode-0"]
    metadata = template_of(workload)["metadata"]

    assert workload.body["metadata"]["labels"].items() >= {"team": "a", **IDENTITY}.items()
    assert workload.body["metadata"]["annotations"] == {"note": "b"}
    assert metadata["labels"].items() >= {**IDENTITY, "team": "pods", "role": "leader"}.items()
    assert metadata["annotations"] == {"note": "pods", "extra": "c", "scheduling.k8s.io/group-name": "g-decode-0"}


def test_metrics_labels_are_left_out_where_graph_or_service_disable_metrics() -> None:
    off = {"nvidia.com/enable-metrics": "false"}

    for specified in (decode(annotations=off), graph(decode=worker(nodes=2), annotations=off)):
        metadata = template_of(resources(specified)["LeaderWorkerSet/g-decode-0"])["metadata"]
        assert "nvidia.com/metrics-enabled" not in metadata["labels"]
        assert "nvidia.com/enable-metrics" not in metadata["annotations"]


def test_without_replicas_a_multinode_service_has_no_leader_worker_set_and_keeps_its_service() -> None:
    assert wanted(resources(decode(replicas=0))) == ["Service/g-decode"]


def test_a_service_without_a_number_of_replicas_has_one() -> None:
    assert "LeaderWorkerSet/g-decode-0" in resources(graph(decode=worker(nodes=2)))
    assert "LeaderWorkerSet/g-decode-1" not in resources(graph(decode=worker(nodes=2)))


def test_a_worker_without_gpus_runs_and_one_without_arguments_is_blocked_while_its_service_is_created() -> None:
    assert blocked(resources(decode(replicas=1, resources={}))) == {}

    specified = graph(decode=worker(nodes=2) | {"extraPodSpec": {"mainContainer": {"image": "i"}}})
    reason = "spec.services[decode].extraPodSpec.mainContainer.args: container Args cannot be empty for LWS pod"
    made = resources(specified)

    assert set(blocked(made).values()) == {reason}
    assert wanted(made) == ["Service/g-decode"]


def test_a_leader_worker_set_that_exists_is_left_as_it_is_while_its_pods_cannot_be_built() -> None:
    lives = lives_of(resources(decode(replicas=1)).values())
    made = resources(graph(decode=worker(nodes=2) | {"extraPodSpec": {"mainContainer": {"image": "i"}}}), lives)

    assert list(blocked(made)) == ["LeaderWorkerSet/g-decode-0"]
    assert dropped(made) == {}


def test_what_is_missing_holds_leader_worker_set_and_pod_group_together() -> None:
    made = resources(decode(replicas=1), blockers={"decode": "Secret ssh does not exist"})

    assert blocked(made) == {
        "PodGroup/g-decode-0": "Secret ssh does not exist",
        "LeaderWorkerSet/g-decode-0": "Secret ssh does not exist",
    }


def test_what_is_missing_holds_only_new_replicas_and_live_ones_are_still_updated() -> None:
    lives = lives_of(resources(decode(replicas=1)).values())
    made = resources(decode(replicas=2), lives, {"decode": "Secret ssh does not exist"})

    assert list(blocked(made)) == ["PodGroup/g-decode-1", "LeaderWorkerSet/g-decode-1"]
    assert {"PodGroup/g-decode-0", "LeaderWorkerSet/g-decode-0"} <= set(wanted(made))


def test_the_pod_group_of_a_live_leader_worker_set_is_restored_while_something_is_missing() -> None:
    workload = resources(decode(replicas=1))["LeaderWorkerSet/g-decode-0"]
    made = resources(decode(replicas=1), lives_of([workload]), {"decode": "no"})

    assert blocked(made) == {}


def test_what_is_missing_holds_a_new_deployment_and_not_a_live_one() -> None:
    specified = graph(single=worker())
    live = lives_of(resources(specified).values())

    assert blocked(resources(specified, blockers={"single": "PVC cache does not exist"})) == {
        "Deployment/g-single": "PVC cache does not exist"
    }
    assert blocked(resources(specified, live, {"single": "PVC cache does not exist"})) == {}


def test_scaling_down_removes_every_replica_beyond_the_number_across_gaps() -> None:
    before = resources(decode(replicas=5))
    gap = {"LeaderWorkerSet/g-decode-2", "PodGroup/g-decode-2", "LeaderWorkerSet/g-decode-3"}
    made = resources(decode(replicas=1), lives_of(resource for key, resource in before.items() if key not in gap))

    assert dropped(made) == {
        f"{kind}/g-decode-{index}": f"replica {index} of decode is removed: decode is scaled to 1"
        for kind, indices in (("LeaderWorkerSet", (1, 4)), ("PodGroup", (1, 3, 4)))
        for index in indices
    }
    assert all(made[key].intended for key in dropped(made))


def test_a_leader_worker_set_is_deleted_before_its_pod_group() -> None:
    made = resources(decode(replicas=0), lives_of(resources(decode(replicas=1)).values()))

    assert made["LeaderWorkerSet/g-decode-0"].after == {kinds.VOLCANO_POD_GROUP.id("ai", "g-decode-0")}
    assert made["PodGroup/g-decode-0"].after == frozenset()


def test_a_removed_service_takes_all_its_objects_with_it() -> None:
    before = lives_of(resources(graph(Frontend=frontend(), decode=worker(nodes=2))).values())
    made = resources(graph(other=worker()), before)

    assert dropped(made) == {
        "LeaderWorkerSet/g-decode-0": "the graph has no service decode",
        "PodGroup/g-decode-0": "the graph has no service decode",
        "Deployment/g-frontend": "the graph has no service Frontend",
        "Service/g-decode": "the graph has no service decode",
        "Service/g-frontend": "the graph has no service Frontend",
        "Service/g-frontend-p": "the graph has no service Frontend",
    }


def test_a_service_that_changes_between_one_node_and_several_changes_its_workload_and_keeps_its_service() -> None:
    single, several = graph(decode=worker()), graph(decode=worker(nodes=2))

    up = resources(several, lives_of(resources(single).values()))
    assert dropped(up) == {"Deployment/g-decode": "decode runs on 2 nodes now"}
    down = resources(single, lives_of(resources(several).values()))
    assert dropped(down) == {
        "LeaderWorkerSet/g-decode-0": "decode runs on one node now",
        "PodGroup/g-decode-0": "decode runs on one node now",
    }
    assert "Service/g-decode" in wanted(up)
    assert "Service/g-decode" in wanted(down)


def test_objects_of_other_kinds_groups_and_makers_are_not_removed() -> None:
    def made(api_version: str, kind: str) -> dict[str, object]:
        return {"apiVersion": api_version, "kind": kind, "metadata": {"name": "x", "namespace": "ai", "labels": OWN}}

    others = [made("scheduling.run.ai/v2alpha2", "PodGroup"), made("v1", "Service"), made("networking.k8s.io/v1", "Ingress")]

    assert dropped(resources(graph(a=worker()), slice_of(map(observed, others)))) == {}


def test_all_objects_of_the_path_can_be_removed_for_one_reason() -> None:
    specified = graph(Frontend=frontend(), decode=worker(nodes=2))
    removed = list(obsolete_components(specified, lives_of(resources(specified).values()), (), "Grove runs the graph now"))

    assert [resource.id.kind for resource in removed] == ["LeaderWorkerSet", "PodGroup", "Deployment", "Service", "Service", "Service"]
    assert {(resource.why, resource.stance) for resource in removed} == {("Grove runs the graph now", Stance.DROP)}


def test_a_graph_whose_name_starts_with_a_digit_is_blocked_because_its_names_are_no_dns_labels() -> None:
    made = resources(graph(name="7b", decode=worker(nodes=2), single=worker()))

    assert list(blocked(made)) == ["PodGroup/7b-decode-0", "LeaderWorkerSet/7b-decode-0", "Service/7b-decode", "Service/7b-single"]
    assert "the name '7b-decode-0' is not a DNS label" in blocked(made)["LeaderWorkerSet/7b-decode-0"]


def test_long_names_are_shortened_for_labels_of_stateful_sets_and_a_note_says_so() -> None:
    name, service = "g" * 30, "d" * 30
    specified = graph({service: worker(nodes=2, replicas=12)}, name=name)
    names = [key.partition("/")[2] for key in resources(specified) if key.startswith("LeaderWorkerSet/")]

    assert len(set(names)) == 12
    assert {len(name) for name in names} == {LONGEST_INSTANCE}
    assert all(name.endswith(f"-{index}") for index, name in enumerate(names))
    assert f"{name}-{service}-0 becomes {names[0]}" in component_notes(specified)[0]


def test_names_that_fit_are_exact() -> None:
    service = "d" * (LONGEST_INSTANCE - len("g--0"))

    assert f"LeaderWorkerSet/g-{service}-0" in resources(graph({service: worker(nodes=2)}))


def test_a_leader_worker_set_whose_headless_service_would_have_the_name_of_another_service_is_blocked() -> None:
    made = resources(graph({"a": worker(nodes=2), "a-0": worker()}))

    assert list(blocked(made)) == ["PodGroup/g-a-0", "LeaderWorkerSet/g-a-0"]
    assert "the name 'g-a-0' is that of another service's Service" in blocked(made)["LeaderWorkerSet/g-a-0"]


def test_what_only_the_grove_path_provides_is_noted() -> None:
    text = ": multi-node NVLink is only provided on the Grove path"

    assert component_notes(decode()) == ()
    for key, value, none in (
        ("grove.io/auto-mnnvl", "enabled", "disabled"),
        ("nvidia.com/computedomain", "rack-a", ""),
        ("grove.io/mnnvl-group", "model", "none"),
    ):
        for asking in (graph(a=worker(), annotations={key: value}), decode(annotations={key: value})):
            (note,) = component_notes(asking)
            assert note.startswith(key + text)
        assert component_notes(decode(annotations={key: none})) == ()
    assert component_notes(graph(a=worker(), annotations={"nvidia.com/kai-scheduler-queue": "q"})) == (
        "nvidia.com/kai-scheduler-queue: has no effect without Grove: Volcano schedules services on several nodes",
    )


def test_warnings_about_pods_are_those_of_all_roles_and_pods_that_cannot_be_built_have_none() -> None:
    unrecognised = graph(a=worker("noop", nodes=2), b=worker())
    broken = graph(a=worker("noop", nodes=2, extra_pod_spec={"containers": [{"name": "main"}]}))

    assert ["service a, leader" in text or "service a, worker" in text for text in component_warnings(unrecognised, DynamoSettings())] == [
        True,
        True,
    ]
    assert component_warnings(broken, DynamoSettings()) == ()
