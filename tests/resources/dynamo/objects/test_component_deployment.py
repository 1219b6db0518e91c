"""Deployments and Services of the component path."""

from typing import Any

import pytest

from resources.dynamo.objects.components import component_notes
from tests.resources.dynamo.objects.component_graphs import resources, template_of, wanted
from tests.resources.dynamo.objects.grove_graphs import frontend, graph, worker

STRATEGY = "nvidia.com/deployment-strategy"


def strategy(annotations: dict[str, str] | None = None) -> Any:
    """The strategy of the Deployment of a service with these annotations."""
    return resources(graph(a=worker(annotations=annotations or {})))["Deployment/g-a"].body["spec"]["strategy"]


def service(name: str, **services: Any) -> Any:
    """The spec of a Service of a graph."""
    return resources(graph(**services))[f"Service/{name}"].body["spec"]


def test_a_single_node_service_is_a_deployment_that_selects_its_pods_by_its_name() -> None:
    deployment = resources(graph(Prefill=worker(replicas=3)))["Deployment/g-prefill"]
    labels = template_of(deployment)["metadata"]["labels"]

    assert deployment.body["apiVersion"] == "apps/v1"
    assert deployment.body["spec"]["replicas"] == 3
    assert deployment.body["spec"]["selector"] == {"matchLabels": {"nvidia.com/selector": "g-prefill"}}
    assert labels["nvidia.com/selector"] == "g-prefill"
    assert labels["nvidia.com/dynamo-component"] == "Prefill"
    assert labels["role"] == "main"
    assert "instance-id" not in labels
    assert "scheduling.k8s.io/group-name" not in template_of(deployment)["metadata"].get("annotations", {})


def test_a_deployment_keeps_the_scheduler_that_the_service_names() -> None:
    deployment = resources(graph(a=worker(extra_pod_spec={"schedulerName": "mine"})))["Deployment/g-a"]

    assert template_of(deployment)["spec"]["schedulerName"] == "mine"


def test_a_deployment_without_replicas_is_scaled_to_zero() -> None:
    assert resources(graph(a=worker(replicas=0)))["Deployment/g-a"].body["spec"]["replicas"] == 0


def test_a_service_without_a_number_of_replicas_leaves_it_to_whoever_scales_the_deployment() -> None:
    assert resources(graph(a=worker()))["Deployment/g-a"].policy.seeded == (("spec", "replicas"),)
    assert resources(graph(a=worker(replicas=1)))["Deployment/g-a"].policy.seeded == ()


@pytest.mark.parametrize(
    ("name", "surge", "unavailable"),
    [
        ("", "25%", "25%"),
        ("RollingUpdate", "25%", "25%"),
        ("RampedSlowRollout", 1, 0),
        ("BestEffortControlledRollout", 0, "20%"),
        ("unknown", "25%", "25%"),
    ],
)
def test_the_annotation_chooses_the_strategy(name: str, surge: int | str, unavailable: int | str) -> None:
    expected = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable}}

    assert strategy({STRATEGY: name}) == expected


def test_the_annotation_can_recreate_all_pods() -> None:
    assert strategy({STRATEGY: "Recreate"}) == {"type": "Recreate"}


def test_the_strategy_annotation_is_not_copied_to_pods_so_that_changing_it_restarts_none() -> None:
    before, after = (resources(graph(a=worker(annotations={STRATEGY: name})))["Deployment/g-a"] for name in ("Recreate", "RollingUpdate"))

    assert template_of(before) == template_of(after)
    assert before.body["metadata"]["annotations"] == {STRATEGY: "Recreate"}


def test_every_service_of_a_graph_has_a_service_and_a_frontend_a_second_one() -> None:
    made = resources(graph(Frontend=frontend(), a=worker(), b=worker(nodes=2)))

    assert [key for key in wanted(made) if key.startswith("Service/")] == [
        "Service/g-a",
        "Service/g-b",
        "Service/g-frontend",
        "Service/g-frontend-p",
    ]


def test_the_second_service_of_a_frontend_gives_way_to_another_service_of_that_name_and_a_note_says_so() -> None:
    specified = graph({"Frontend": frontend(), "frontend-p": worker()})

    made = resources(specified)

    assert made["Service/g-frontend-p"].body["metadata"]["labels"]["nvidia.com/dynamo-component"] == "frontend-p"
    assert component_notes(specified) == (
        "spec.services[Frontend]: no second Service is made for this frontend: its name g-frontend-p is that of another service's Service; "
        "rename that service",
    )


def test_a_service_selects_the_pods_of_its_service_and_of_several_nodes_the_leader() -> None:
    services = {"a": worker(), "b": worker(nodes=2)}
    identity = {
        "nvidia.com/dynamo-graph-deployment-name": "g",
        "nvidia.com/dynamo-namespace": "dynamo-g",
        "nvidia.com/dynamo-component-type": "worker",
    }

    assert service("g-a", **services)["selector"] == {**identity, "nvidia.com/dynamo-component": "a"}
    assert service("g-b", **services)["selector"] == {**identity, "nvidia.com/dynamo-component": "b", "role": "leader"}


@pytest.mark.parametrize(("name", "workload"), [("a", "Deployment/g-a"), ("b", "LeaderWorkerSet/g-b-0")])
def test_the_pods_of_a_service_have_the_labels_that_its_service_selects(name: str, workload: str) -> None:
    made = resources(graph(a=worker(labels={"role": "x"}), b=worker(nodes=2, labels={"nvidia.com/dynamo-namespace": "x"})))
    selector = made[f"Service/g-{name}"].body["spec"]["selector"]

    assert template_of(made[workload])["metadata"]["labels"].items() >= selector.items()


def test_a_frontend_is_reached_at_8000_and_others_at_9090() -> None:
    services = {"Frontend": frontend(), "a": worker(nodes=2)}

    assert [(port["name"], port["port"]) for port in service("g-frontend", **services)["ports"]] == [("http", 8000)]
    assert [(port["name"], port["port"]) for port in service("g-a", **services)["ports"]] == [("system", 9090)]


def test_a_service_uses_the_name_of_a_port_only_if_the_container_has_it() -> None:
    named = frontend()
    named["extraPodSpec"]["mainContainer"]["ports"] = [{"name": "http", "containerPort": 80}]
    other = {**named, "extraPodSpec": {"mainContainer": {**named["extraPodSpec"]["mainContainer"], "ports": [{"containerPort": 80}]}}}

    assert service("g-f", f=named)["ports"][0]["targetPort"] == "http"
    assert service("g-f", f=other)["ports"][0]["targetPort"] == 8000
