"""Graphs of either version as the same graph of the other: what they mean is the same, and nothing is lost there and back."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resources.base.kinds import DYNAMO_GRAPH
from resources.dynamo.model.graph import read_graph
from resources.dynamo.versions.api_versions import ALPHA, ALPHA_ONLY, BETA, EXACT
from resources.dynamo.versions.converted import as_alpha, as_version
from resources.schema.dynamo import DynamoGraphSpec
from tests.resources.dynamo.versions.beta_graphs import PAIRS, Body, alpha, beta, component, pods, wide


@pytest.mark.parametrize(("old", "new"), PAIRS, ids=["vllm", "sglang", "trtllm"])
def test_the_same_graph_in_both_versions_is_read_as_the_same(old: Body, new: Body) -> None:
    assert as_alpha(new)["spec"] == old["spec"]


@pytest.mark.parametrize("graph", [body for pair in PAIRS for body in pair])
def test_what_is_converted_there_and_back_is_the_same(graph: Body) -> None:
    other = BETA if graph["apiVersion"] == ALPHA else ALPHA

    assert as_version(as_version(graph, other), graph["apiVersion"]) == graph


def test_what_only_v1alpha1_has_is_kept_where_the_operator_keeps_it() -> None:
    claims = [{"name": "models"}]
    graph = alpha({"A": {"componentType": "frontend", "ingress": {"enabled": True, "host": "h"}}}, pvcs=claims)

    converted = as_version(graph, BETA)

    saved = json.loads(converted["metadata"]["annotations"][ALPHA_ONLY])
    assert saved == {"pvcs": claims, "services": {"A": {"ingress": {"enabled": True, "host": "h"}}}}
    assert as_version(converted, ALPHA) == graph


def test_an_edit_of_the_converted_graph_is_kept_with_what_only_the_other_version_has() -> None:
    service = {"componentType": "decode", "resources": {"limits": {"gpu": "1", "cpu": "2"}}, "dynamoNamespace": "d"}
    graph = alpha({"A": {**service, "extraPodSpec": {"mainContainer": {"image": "i:1"}}}}, pvcs=[{"name": "models"}])
    edited = as_version(graph, BETA)
    edited["spec"]["components"][0]["podTemplate"]["spec"]["containers"][0]["image"] = "i:2"

    back = as_version(edited, ALPHA)

    assert back["spec"]["pvcs"] == [{"name": "models"}]
    found = back["spec"]["services"]["A"]
    assert found["extraPodSpec"]["mainContainer"]["image"] == "i:2"
    assert (found["componentType"], found["dynamoNamespace"], found["resources"]["limits"]["gpu"]) == ("decode", "d", "1")


def test_an_annotation_of_another_writer_does_not_undo_what_is_kept() -> None:
    graph = alpha({"A": {"componentType": "Decode", "envs": [{"name": "A", "value": "1"}], "sharedMemory": {"disabled": False}}})
    converted = as_version(graph, BETA)
    converted["metadata"]["annotations"]["engine.grove.io/pod-form"] = "2"

    assert as_alpha(converted)["spec"] == graph["spec"]


@pytest.mark.parametrize("text", ["no json", "[1]", '{"pvcs": 5, "services": [1]}', '{"of": 1}', "{}"])
def test_annotations_that_nobody_could_have_written_change_no_component(text: str) -> None:
    graph = beta(component("A"), annotations={ALPHA_ONLY: text, EXACT: text})

    assert as_alpha(graph)["spec"]["services"] == as_alpha(beta(component("A")))["spec"]["services"]


def test_a_type_that_was_changed_wins_over_the_kept_spelling() -> None:
    converted = as_version(alpha({"A": {"componentType": "decode"}}), BETA)
    converted["spec"]["components"][0]["type"] = "prefill"

    service = as_alpha(converted)["spec"]["services"]["A"]
    assert (service["componentType"], service["subComponentType"]) == ("worker", "prefill")


@pytest.mark.parametrize(
    ("of_component", "of_service"),
    [
        ({"sharedMemorySize": "0"}, {"sharedMemory": {"disabled": True}}),
        ({"sharedMemorySize": "1Gi"}, {"sharedMemory": {"size": "1Gi"}}),
        ({"scalingAdapter": {}}, {"scalingAdapter": {"enabled": True}}),
        ({"compilationCache": {"pvcName": "c"}}, {"volumeMounts": [{"name": "c", "useAsCompilationCache": True}]}),
        ({"minAvailable": 2, "replicas": 0}, {"minAvailable": 2, "replicas": 0}),
        ({"experimental": {"failover": {"mode": "x"}}}, {"failover": {"mode": "x"}}),
    ],
)
def test_fields_of_components(of_component: Body, of_service: Body) -> None:
    service = as_alpha(beta(component("A", **of_component)))["spec"]["services"]["A"]

    assert {field: service[field] for field in of_service} == of_service


def test_a_container_that_mounts_shared_memory_itself_gets_none() -> None:
    template = pods(volumeMounts=[{"name": "own", "mountPath": "/dev/shm"}])

    assert as_alpha(beta(component("A", template=template)))["spec"]["services"]["A"]["sharedMemory"] == {"disabled": True}


@pytest.mark.parametrize("graph", [alpha({"A": {"componentType": "frontend"}}), beta(component("A"))])
def test_a_graph_shows_in_which_version_it_was_written(graph: Body) -> None:
    for version in (ALPHA, BETA):
        body = as_version(graph, version)
        read = as_alpha(body)
        id = DYNAMO_GRAPH.id("ai", "g")
        spec = DynamoGraphSpec.model_validate(read["spec"])

        found = read_graph(id, body["metadata"].get("annotations", {}), spec, body["apiVersion"])

        assert found.is_written_as_v1beta1 is (graph["apiVersion"] == BETA)


def test_the_status_of_a_service_is_that_of_a_component() -> None:
    entry = {"componentKind": "PodClique", "componentName": "g-0-a", "replicas": 1, "updatedReplicas": 1}
    graph = {**alpha({"A": {}}), "status": {"state": "pending", "services": {"A": entry}}}

    converted = as_version(graph, BETA)

    assert converted["status"]["components"]["A"]["componentNames"] == ["g-0-a"]
    assert as_version(converted, ALPHA) == graph


# Generated graphs

words = st.sampled_from(["a", "b", "nvidia.com/gpu", "x y"])
amounts = st.sampled_from(["1", "2", "500m"])
envs = st.lists(st.fixed_dictionaries({"name": st.sampled_from("ABC"), "value": words}), max_size=3, unique_by=lambda env: env["name"])


def optional(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Body]:
    """Objects with any of these fields."""
    return st.fixed_dictionaries({}, optional=fields)


containers = optional(
    image=words, command=st.lists(words, max_size=2), args=st.lists(words, max_size=3), env=envs,
    livenessProbe=st.sampled_from([{"httpGet": {"port": 1}}, {"failureThreshold": 3}]),
    resources=optional(limits=st.dictionaries(words, amounts, max_size=2), requests=st.dictionaries(words, amounts, max_size=2)),
    volumeMounts=st.lists(st.fixed_dictionaries({"name": words, "mountPath": st.sampled_from(["/m", "/dev/shm"])}), max_size=2),
)  # fmt: skip
texts = st.dictionaries(st.sampled_from(["k", "nvidia.com/deployment-strategy"]), words, max_size=2)
services = optional(
    annotations=texts, labels=texts, extraPodMetadata=optional(labels=texts, annotations=texts), replicas=st.integers(0, 3),
    componentType=st.sampled_from(["frontend", "Worker", "worker", "prefill", "other"]), subComponentType=st.sampled_from(["decode", "x"]),
    envs=envs, envFromSecret=words, multinode=st.sampled_from([{"nodeCount": 2}, {}]), dynamoNamespace=words,
    resources=optional(
        limits=optional(gpu=amounts, cpu=amounts, gpuType=words, custom=st.dictionaries(words, amounts, max_size=1)),
        requests=optional(gpu=amounts, memory=amounts), claims=st.just([{"name": "c"}]),
    ),
    volumeMounts=st.lists(optional(name=words, mountPoint=words, useAsCompilationCache=st.booleans()), max_size=3),
    sharedMemory=optional(disabled=st.booleans(), size=amounts), livenessProbe=st.just({"httpGet": {"port": 1}}),
    scalingAdapter=optional(enabled=st.booleans(), disable=st.booleans()), ingress=st.just({"enabled": True}),
    extraPodSpec=optional(
        mainContainer=containers, nodeName=words, containers=st.just([{"name": "side"}]), volumes=st.just([{"name": "v"}])
    ),
    failover=st.just({"mode": "a"}), experimental=st.just({"grove": {"forceScalingGroup": True}}), minAvailable=st.just(1),
)  # fmt: skip
alphas = st.builds(
    lambda named, spec: alpha(named, **spec),
    st.dictionaries(st.sampled_from(["A", "b", "c-d"]), services, max_size=3),
    optional(envs=envs, pvcs=st.just([{"name": "p"}]), labels=texts, backendFramework=st.just("vllm"), restart=st.just({"id": "1"})),
)
templates = optional(
    metadata=optional(labels=texts, annotations=texts, name=words),
    spec=optional(
        containers=st.lists(
            st.builds(lambda name, rest: {"name": name, **rest}, st.sampled_from(["main", "side"]), containers), max_size=2
        ),
        nodeName=words, initContainers=st.just([{"name": "i"}]),
    ),
)  # fmt: skip
roles = st.one_of(
    st.just([{"name": "leader"}]),
    st.tuples(templates, templates).map(
        lambda both: [{"name": name, "podTemplate": pods} for name, pods in zip(("leader", "worker"), both, strict=True)]
    ),
)
components = st.builds(
    lambda name, rest: {"name": name, **rest},
    st.sampled_from(["A", "b", "c-d"]),
    optional(
        type=st.sampled_from(["frontend", "worker", "decode"]), podTemplate=templates, replicas=st.integers(0, 3),
        sharedMemorySize=st.sampled_from(["0", 0, "1Gi"]), compilationCache=optional(pvcName=words, mountPath=words),
        scalingAdapter=st.just({}), multinode=st.just({"nodeCount": 2}), frontendSidecar=words,
        experimental=optional(checkpoint=st.just({"a": 1}), other=st.just({})), roles=roles,
    ),
)  # fmt: skip
betas = st.builds(
    lambda parts, spec: beta(*parts, **spec),
    st.lists(components, max_size=3, unique_by=lambda each: each["name"]),
    optional(env=envs, annotations=texts, priorityClassName=words, experimental=st.just({"kvTransferPolicy": {}})),
)


@given(st.one_of(alphas, betas))
def test_nothing_of_any_graph_is_lost_there_and_back(graph: Body) -> None:
    other = BETA if graph["apiVersion"] == ALPHA else ALPHA

    assert as_version(as_version(graph, other), graph["apiVersion"]) == graph


@given(alphas)
def test_any_graph_is_read_as_the_same_from_either_version(graph: Body) -> None:
    assert as_alpha(as_version(graph, BETA))["spec"] == graph["spec"]


def test_an_edit_of_a_graph_on_several_nodes_is_converted_back() -> None:
    converted = as_version(beta(wide("A", "decode")), ALPHA)
    converted["spec"]["services"]["A"]["multinode"]["nodeCount"] = 4

    assert as_version(converted, BETA)["spec"]["components"][0]["multinode"] == {"nodeCount": 4}
