"""The PodCliqueSet of a graph: cliques, scaling groups, gangs, start order, KAI, names, and its admission."""

from typing import Any

import pytest

from providers.fabrics.nvidia.fabric import Nvidia
from providers.schedulers.kube import KubeScheduler
from resources.admission.admit import admit
from resources.admission.request import Act, Decision, Request
from resources.base.kinds import PODCLIQUESET
from resources.dynamo.model.graph import InferenceGraph
from resources.dynamo.objects.podcliqueset import PlannedSet, podcliqueset
from resources.dynamo.pods.builder import PodFault
from resources.model.domain import domain_requests_of, specified_in
from resources.ports.configuration import Configuration, DynamoSettings
from tests.resources.dynamo.objects import golden_sets
from tests.resources.dynamo.objects.grove_graphs import COMMANDS, disaggregated, frontend, graph, worker

LONG = "my-multinode-deployment"


class KaiScheduler(KubeScheduler):
    """A back end of KAI's name."""

    name = "kai-scheduler"


CONFIGURATION = Configuration(
    {"default-scheduler": KubeScheduler(), "kai-scheduler": KaiScheduler()}, "default-scheduler", fabrics=(Nvidia(auto=True),)
)


def planned(graph: InferenceGraph, queue: str | None = None, **settings: Any) -> PlannedSet:
    """The set of a graph that has one."""
    result = podcliqueset(graph, DynamoSettings(**settings), queue)
    assert result is not None
    return result


def template(graph: InferenceGraph, queue: str | None = None, **settings: Any) -> Any:
    """`spec.template` of the set of a graph."""
    return planned(graph, queue, **settings).body["spec"]["template"]


def cliques(graph: InferenceGraph, queue: str | None = None) -> dict[str, Any]:
    """The cliques of the set of a graph by name."""
    return {clique["name"]: clique for clique in template(graph, queue)["cliques"]}


def admitted(body: Any, configuration: Configuration = CONFIGURATION) -> Decision:
    """The decision on the creation of a set."""
    id = PODCLIQUESET.id(body["metadata"]["namespace"], body["metadata"]["name"])
    return admit(Request(Act.CREATE, id, body), configuration)


def issues(decision: Decision) -> list[str]:
    """The issues of a decision as text."""
    return [str(issue) for issue in decision.issues]


# The set as a whole


def test_the_set_has_the_graphs_name_one_replica_and_pods_with_dns_names_before_they_are_ready() -> None:
    body = planned(graph(name="my-dgd", Frontend=frontend())).body

    assert (body["apiVersion"], body["kind"]) == ("grove.io/v1alpha1", "PodCliqueSet")
    assert body["metadata"] == {
        "name": "my-dgd",
        "namespace": "ai",
        "labels": {"app.kubernetes.io/managed-by": "dynamo-operator", "app.kubernetes.io/part-of": "my-dgd"},
    }
    assert body["spec"]["replicas"] == 1
    assert body["spec"]["template"]["headlessServiceConfig"] == {"publishNotReadyAddresses": True}


@pytest.mark.parametrize(
    ("setting", "expected"),
    [("15m", {"terminationDelay": "15m0s"}), ("1h30m", {"terminationDelay": "1h30m0s"}), ("", {}), ("0s", {}), ("-1m", {})],
)
def test_the_termination_delay_is_the_settings_and_left_out_unless_it_is_above_zero(setting: str, expected: dict[str, str]) -> None:
    made = template(graph(Frontend=frontend()), termination_delay=setting)

    assert {key: made[key] for key in made if key == "terminationDelay"} == expected


def test_cliques_and_scaling_groups_are_sorted_by_name() -> None:
    made = template(graph(zeta=worker(nodes=2), Alpha=worker(nodes=2), middle=frontend()))

    assert [clique["name"] for clique in made["cliques"]] == ["alpha-ldr", "alpha-wkr", "middle", "zeta-ldr", "zeta-wkr"]
    assert [group["name"] for group in made["podCliqueScalingGroups"]] == ["alpha", "zeta"]


def test_a_graph_without_multinode_services_has_no_scaling_groups() -> None:
    assert "podCliqueScalingGroups" not in template(graph(Frontend=frontend(), decode=worker()))


# Roles


def test_a_single_node_service_is_one_clique_with_its_replicas_of_which_one_suffices() -> None:
    (clique,) = cliques(graph(Decode=worker(replicas=3))).values()

    assert clique["name"] == clique["spec"]["roleName"] == "decode"
    assert (clique["spec"]["replicas"], clique["spec"]["minAvailable"]) == (3, 1)


def test_a_service_without_replicas_has_one() -> None:
    made = template(graph(Frontend=frontend(), decode=worker(nodes=2)))

    assert {clique["name"]: clique["spec"]["replicas"] for clique in made["cliques"]}["frontend"] == 1
    assert made["podCliqueScalingGroups"][0]["replicas"] == 1


def test_all_pods_of_a_multinode_replica_are_one_gang() -> None:
    made = cliques(graph(Decode=worker(nodes=4)))

    sizes = {name: (clique["spec"]["replicas"], clique["spec"]["minAvailable"]) for name, clique in made.items()}
    assert sizes == {"decode-ldr": (1, 1), "decode-wkr": (3, 3)}
    assert [clique["spec"]["roleName"] for clique in made.values()] == ["decode-ldr", "decode-wkr"]


def test_a_multinode_service_is_a_scaling_group_of_its_leader_and_its_workers() -> None:
    made = template(graph(Decode=worker(nodes=3, replicas=5)))

    assert made["podCliqueScalingGroups"] == [
        {"name": "decode", "cliqueNames": ["decode-ldr", "decode-wkr"], "replicas": 5, "minAvailable": 1}
    ]


def test_scaling_a_service_changes_nothing_that_is_immutable() -> None:
    def frozen(replicas: int) -> list[Any]:
        made = template(graph(Frontend=frontend(replicas=replicas), decode=worker(nodes=2, replicas=replicas)))
        groups = [(group["name"], group["cliqueNames"], group["minAvailable"]) for group in made["podCliqueScalingGroups"]]
        return [*groups, *((clique["name"], clique["spec"]["minAvailable"]) for clique in made["cliques"])]

    assert frozen(1) == frozen(4)


# Replicas 0


def test_a_service_with_0_replicas_is_left_out_and_the_author_is_warned() -> None:
    made = planned(graph(Frontend=frontend(), Decode=worker(nodes=2, replicas=0)))

    assert [clique["name"] for clique in made.body["spec"]["template"]["cliques"]] == ["frontend"]
    assert "podCliqueScalingGroups" not in made.body["spec"]["template"]
    assert [warning for warning in made.warnings if "Decode" in warning] == [
        "spec.services[Decode].replicas: with 0 replicas the service has no place in the PodCliqueSet g; "
        "scaling it up adds its cliques, which replaces a PodCliqueSet that exists"
    ]


def test_a_graph_of_which_nothing_is_left_has_no_set() -> None:
    assert podcliqueset(graph(Frontend=frontend(replicas=0)), DynamoSettings(), None) is None
    assert podcliqueset(graph(), DynamoSettings(), None) is None


# Labels and annotations


def test_pods_are_labelled_with_the_selector_of_their_role_the_graph_and_the_component() -> None:
    made = cliques(graph(name="my-dgd", Decode=worker(nodes=2, componentType="Worker", subComponentType="decode")))

    assert made["decode-ldr"]["labels"] == {
        "nvidia.com/selector": "my-dgd-decode-ldr",
        "nvidia.com/dynamo-graph-deployment-name": "my-dgd",
        "nvidia.com/dynamo-namespace": "dynamo-my-dgd",
        "nvidia.com/dynamo-component-type": "Worker",
        "nvidia.com/dynamo-sub-component-type": "decode",
        "nvidia.com/metrics-enabled": "true",
    }
    assert made["decode-wkr"]["labels"]["nvidia.com/selector"] == "my-dgd-decode-wkr"


def test_component_types_that_are_not_set_have_no_label() -> None:
    (clique,) = cliques(graph(Router=frontend(componentType=""))).values()

    assert {key for key in clique["labels"] if "component-type" in key} == set()


@pytest.mark.parametrize(("value", "labelled"), [("false", False), ("False", True), ("true", True)])
def test_metrics_are_enabled_unless_the_graph_says_exactly_false(value: str, labelled: bool) -> None:
    (clique,) = cliques(graph(annotations={"nvidia.com/enable-metrics": value}, Frontend=frontend())).values()

    assert ("nvidia.com/metrics-enabled" in clique["labels"]) is labelled


def test_labels_of_the_service_override_generated_ones_and_extra_pod_metadata_overrides_both() -> None:
    service = frontend(
        labels={"nvidia.com/selector": "own", "team": "a", "tier": "a"},
        annotations={"note": "a", "other": "a"},
        extraPodMetadata={"labels": {"tier": "b"}, "annotations": {"note": "b"}},
    )

    (clique,) = cliques(graph(Frontend=service)).values()

    assert [clique["labels"][key] for key in ("nvidia.com/selector", "team", "tier")] == ["own", "a", "b"]
    assert clique["annotations"] == {"note": "b", "other": "a"}


def test_a_service_without_annotations_has_a_clique_without_annotations() -> None:
    (clique,) = cliques(graph(Frontend=frontend())).values()

    assert "annotations" not in clique


def test_pods_do_not_carry_the_labels_by_which_objects_of_graphs_are_recognised() -> None:
    (clique,) = cliques(graph(Frontend=frontend())).values()

    assert not any(key.startswith("app.kubernetes.io/") for key in clique["labels"])


# Annotations for Grove and its schedulers


def test_the_set_inherits_annotations_for_grove_and_kai_and_no_others() -> None:
    annotations = {
        "grove.io/auto-mnnvl": "enabled",
        "grove.io/disable-managed-resource-protection": "true",
        "scheduling.grove.io/volcano-queue": "q",
        "kai.scheduler/topology": "racks",
        "engine.grove.io/paused": "true",
        "nvidia.com/kai-scheduler-queue": "dynamo",
        "kubectl.kubernetes.io/last-applied-configuration": "{}",
        "grove.io": "no prefix",
    }

    body = planned(graph(annotations=annotations, Frontend=frontend())).body

    assert sorted(body["metadata"]["annotations"]) == [
        "grove.io/auto-mnnvl",
        "grove.io/disable-managed-resource-protection",
        "kai.scheduler/topology",
        "scheduling.grove.io/volcano-queue",
    ]


@pytest.mark.parametrize(("mode", "members"), [("enabled", [{"decode-ldr", "decode-wkr"}]), ("disabled", [])])
def test_automatic_nvlink_of_the_graph_is_that_of_the_set(mode: str, members: list[set[str]]) -> None:
    body = planned(graph(annotations={"grove.io/auto-mnnvl": mode}, decode=worker(nodes=2), Frontend=frontend())).body

    decision = admitted(body)

    assert issues(decision) == []
    assert decision.body is not None
    requests = domain_requests_of(Nvidia(auto=True), "g", specified_in(decision.body))
    assert [request.cliques for request in requests] == members


def test_a_service_joins_a_named_domain_by_its_annotation() -> None:
    service = worker(nodes=2, annotations={"nvidia.com/computedomain": "shared"})

    body = planned(graph(annotations={"grove.io/auto-mnnvl": "disabled"}, decode=service)).body

    assert [clique["annotations"] for clique in body["spec"]["template"]["cliques"]] == [{"nvidia.com/computedomain": "shared"}] * 2
    assert issues(admitted(body)) == []


# Start order


def test_the_leader_of_tensorrt_llm_starts_after_all_its_workers() -> None:
    service = worker("trtllm", nodes=3)
    made = template(graph(decode=service, Frontend=frontend()))

    assert made["cliqueStartupType"] == "CliqueStartupTypeExplicit"
    starts_after = {clique["name"]: clique["spec"].get("startsAfter") for clique in made["cliques"]}
    assert starts_after == {"decode-ldr": ["decode-wkr"], "decode-wkr": None, "frontend": None}
    by_name = {clique["name"]: clique["spec"] for clique in made["cliques"]}
    assert by_name["decode-wkr"]["minAvailable"] == by_name["decode-wkr"]["replicas"] == 2


@pytest.mark.parametrize("framework", ["vllm", "sglang"])
def test_services_of_other_frameworks_start_in_any_order(framework: str) -> None:
    made = template(graph(decode=worker(framework, nodes=3)))

    assert made["cliqueStartupType"] == "CliqueStartupTypeAnyOrder"
    assert not any("startsAfter" in clique["spec"] for clique in made["cliques"])


def test_tensorrt_llm_on_one_node_starts_in_any_order() -> None:
    assert template(graph(decode=worker("trtllm")))["cliqueStartupType"] == "CliqueStartupTypeAnyOrder"


def test_the_startup_type_is_the_whole_graphs_and_others_than_tensorrt_llm_still_wait_for_nothing() -> None:
    made = template(graph(decode=worker("trtllm", nodes=2), prefill=worker("vllm", nodes=2)))

    assert made["cliqueStartupType"] == "CliqueStartupTypeExplicit"
    assert [clique["name"] for clique in made["cliques"] if "startsAfter" in clique["spec"]] == ["decode-ldr"]


# KAI


def test_with_a_kai_queue_every_clique_is_scheduled_by_kai_in_that_queue() -> None:
    made = cliques(graph(Frontend=frontend(), decode=worker(nodes=2)), "dynamo")

    assert {clique["spec"]["podSpec"]["schedulerName"] for clique in made.values()} == {"kai-scheduler"}
    assert {clique["labels"]["kai.scheduler/queue"] for clique in made.values()} == {"dynamo"}


def test_without_a_kai_queue_nothing_is_said_about_kai() -> None:
    for clique in cliques(graph(Frontend=frontend(), decode=worker(nodes=2))).values():
        assert "schedulerName" not in clique["spec"]["podSpec"]
        assert "kai.scheduler/queue" not in clique["labels"]


@pytest.mark.parametrize(("name", "queued"), [("kai-scheduler", True), ("default-scheduler", False)])
def test_a_service_that_names_its_scheduler_keeps_it_and_is_in_the_queue_only_if_that_is_kai(name: str, queued: bool) -> None:
    (clique,) = cliques(graph(decode=worker(extra_pod_spec={"schedulerName": name})), "dynamo").values()

    assert clique["spec"]["podSpec"]["schedulerName"] == name
    assert ("kai.scheduler/queue" in clique["labels"]) is queued


def test_the_queue_overrides_a_label_of_the_service() -> None:
    (clique,) = cliques(graph(decode=worker(labels={"kai.scheduler/queue": "mine"})), "dynamo").values()

    assert clique["labels"]["kai.scheduler/queue"] == "dynamo"


def test_different_schedulers_in_one_gang_are_an_admission_error() -> None:
    body = planned(graph(a=worker(extra_pod_spec={"schedulerName": "default-scheduler"}), b=worker()), "dynamo").body

    assert ["the schedulerName for all pods have to be the same" in issue for issue in issues(admitted(body))] == [True]


# Names


def test_names_that_are_too_long_are_shortened_and_the_author_is_warned() -> None:
    made = planned(graph({"my-service": worker(nodes=2)}, name=LONG))

    group = made.body["spec"]["template"]["podCliqueScalingGroups"][0]
    short = group["name"]
    assert group["cliqueNames"] == [f"{short}-ldr", f"{short}-wkr"]
    assert len(LONG) + len(short) + len(f"{short}-ldr") <= 45
    assert [warning for warning in made.warnings if "shortened" in warning] == [
        f"spec.services[my-service]: names in the PodCliqueSet {LONG} are shortened to fit pod names: "
        f"my-service becomes {short}, my-service-ldr becomes {short}-ldr, my-service-wkr becomes {short}-wkr"
    ]
    assert issues(admitted(made.body)) == []


def test_labels_keep_the_names_in_full() -> None:
    made = planned(graph({"my-service": worker(nodes=2)}, name=LONG))

    selectors = [clique["labels"]["nvidia.com/selector"] for clique in made.body["spec"]["template"]["cliques"]]
    assert selectors == [f"{LONG}-my-service-ldr", f"{LONG}-my-service-wkr"]


def test_the_leader_of_a_shortened_service_starts_after_the_shortened_workers() -> None:
    made = template(graph({"my-service": worker("trtllm", nodes=2)}, name=LONG))

    leader, workers = made["cliques"]
    assert leader["spec"]["startsAfter"] == [workers["name"]]


def test_a_name_longer_than_a_label_value_is_shortened_in_the_label_too() -> None:
    name = "a-service-with-a-name-that-is-longer-than-anything-in-kubernetes"
    body = planned(graph({name: worker()}, name="g")).body

    (clique,) = body["spec"]["template"]["cliques"]
    assert len(clique["labels"]["nvidia.com/selector"]) <= 63
    assert issues(admitted(body)) == []


def test_names_that_fit_are_exact_and_nothing_is_reported() -> None:
    made = planned(graph(name="my-dgd", Frontend=frontend(), Decode=worker(nodes=2)))

    assert [clique["name"] for clique in made.body["spec"]["template"]["cliques"]] == ["decode-ldr", "decode-wkr", "frontend"]
    assert not any("shortened" in warning for warning in made.warnings)


# Golden sets


@pytest.mark.parametrize("framework", COMMANDS)
@pytest.mark.parametrize("queue", [None, "dynamo"])
def test_the_set_of_every_framework_is_admitted(framework: str, queue: str | None) -> None:
    made = planned(disaggregated(framework), queue)

    decision = admitted(made.body)

    assert issues(decision) == []
    assert decision.warnings == ()


@pytest.mark.parametrize(("framework", "count"), [("vllm", 0), ("sglang", 0), ("trtllm", 0), ("noop", 2)])
def test_warnings_about_pods_are_warnings_about_the_set(framework: str, count: int) -> None:
    """Without a framework, the leader and the workers of a service on several nodes run the same command."""
    warnings = planned(disaggregated(framework)).warnings

    assert len([warning for warning in warnings if "every node runs the same command" in warning]) == len(warnings) == count


def test_a_pod_that_cannot_be_built_is_reported_with_its_field() -> None:
    with pytest.raises(PodFault) as raised:
        planned(graph(decode=worker(resources={"limits": {"gpu": "many"}})))

    assert raised.value.path[:3] == ("spec", "services", "decode")


@pytest.mark.parametrize("framework", COMMANDS)
def test_the_set_of_every_framework_is_the_recorded_one(framework: str) -> None:
    assert golden_sets.computed(framework) == golden_sets.recorded(framework)


# Volcano, and the update strategy


def test_with_a_queue_of_volcano_pods_that_name_no_scheduler_are_scheduled_by_it_in_that_queue() -> None:
    own = frontend(extraPodSpec={"mainContainer": {"image": "i"}, "schedulerName": "mine"})
    made = podcliqueset(graph(Own=own, decode=worker(nodes=2)), DynamoSettings(), None, "team")
    assert made is not None

    body = made.body
    assert body["metadata"]["annotations"]["scheduling.grove.io/volcano-queue"] == "team"
    schedulers = {each["name"]: each["spec"]["podSpec"]["schedulerName"] for each in body["spec"]["template"]["cliques"]}
    assert schedulers == {"decode-ldr": "volcano", "decode-wkr": "volcano", "own": "mine"}


@pytest.mark.parametrize("strategy", ["RollingRecreate", "OnDelete", "Coherent", None])
def test_the_update_strategy_of_the_graph_is_that_of_the_set(strategy: str | None) -> None:
    annotations = {"nvidia.com/grove-update-strategy": strategy} if strategy else {}
    spec = planned(graph(annotations=annotations, decode=worker())).body["spec"]

    expected = {"type": strategy} if strategy not in ("Coherent", None) else None
    assert spec.get("updateStrategy") == expected
