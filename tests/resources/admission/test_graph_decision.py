"""The decision on a DynamoGraphDeployment as a whole, on any input."""

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from resources.admission.request import Act, Request
from resources.admission.review import answer
from resources.base.kinds import DYNAMO_GRAPH
from resources.dynamo.versions.api_versions import BETA
from resources.schema.issues import Issue
from tests.resources.admission.graphs import KAI, WITHOUT_GROVE, created_graph, graph, updated_graph, wide, worker
from tests.resources.admission.mutations import JUNK, nested
from tests.resources.admission.requests import SETUP
from tests.resources.manifests import paths
from tests.resources.manifests import put as placed


def test_a_webhook_answers_with_the_field_of_each_issue_and_with_a_patch_of_the_defaults() -> None:
    bad, good = graph({"a": worker(replicas=-1)}), graph({"a": wide(nodes="2")})
    refused, admitted = (
        answer("u", Request(Act.CREATE, DYNAMO_GRAPH.id("ai", "g"), body), created_graph(body))["response"] for body in (bad, good)
    )

    assert refused["status"]["details"]["causes"] == [
        {"reason": "FieldValueInvalid", "message": "spec.services[a].replicas must be non-negative", "field": "spec.services[a].replicas"}
    ]
    assert admitted["patchType"] == "JSONPatch"


def texts(issues: tuple[Issue, ...]) -> list[str]:
    return [str(issue) for issue in issues]


NASTY = "\x1b[2J\u202e'\"`$(x)" * 200


@pytest.mark.parametrize(
    "body",
    [
        graph(name=NASTY),
        graph({NASTY: wide(), NASTY.upper(): wide(replicas=-1)}),
        graph({"a": worker(dynamoNamespace=NASTY), "b": worker(dynamoNamespace="x")}),
        graph({"a": worker(NASTY, NASTY, framework="vllm && python -m dynamo.sglang")}),
        graph({"a": worker(extraPodSpec={"schedulerName": NASTY})}),
        graph({"a": worker(componentType=NASTY, labels={NASTY: NASTY})}),
        graph({"a": worker(volumeMounts=[{"name": NASTY, "mountPoint": NASTY}])}, pvcs=[{"name": NASTY}, {"name": NASTY}]),
        graph({"a": {NASTY: 1, "multinode": {"nodeCount": NASTY}}}),
    ],
)
def test_texts_are_printable_and_short_for_any_name(body: dict[str, Any]) -> None:
    decision = created_graph(body)

    lines = [*texts(decision.issues), *decision.warnings]
    assert all(line.isprintable() and len(line) < 2_000 for line in lines)
    assert not decision.allowed


@pytest.mark.parametrize(
    "value", [nested(5_000), [0] * 500_001, 10**5_000, float("nan"), "\ud800"], ids=["deep", "large", "a number", "nan", "text"]
)
def test_a_graph_that_is_not_json_is_rejected_for_that_alone(value: Any) -> None:
    assert len(created_graph(graph({"a": worker(extraPodSpec={"x": value}, replicas=-1)})).issues) == 1


WHOLE = graph(
    {
        "Front": {"componentType": "frontend", "replicas": 2, "ingress": {"enabled": True, "host": "x", "ingressControllerClassName": "c"}},
        "decode": wide(
            "--tp",
            "8",
            envs=[{"name": "A", "value": "b"}],
            volumeMounts=[{"name": "v", "useAsCompilationCache": True}],
            sharedMemory={"size": "1Gi"},
            livenessProbe={"periodSeconds": 5},
            extraPodMetadata={"labels": {"a": "b"}},
            modelRef={"name": "m"},
            autoscaling={"minReplicas": 1},
        ),
        "prefill": wide("x", framework="sglang"),
        "other": wide(framework="trtllm"),
    },
    pvcs=[{"name": "v", "create": True, "size": "1Gi", "storageClass": "s", "volumeAccessMode": "ReadWriteOnce"}],
    envs=[{"name": "A", "value": "a"}],
)


@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(st.data(), st.sampled_from([SETUP, KAI]), st.sampled_from([None, WITHOUT_GROVE]))
def test_any_input_gets_a_decision(data: st.DataObject, setup: Any, annotations: dict[str, str] | None) -> None:
    whole = {**WHOLE, "metadata": {**WHOLE["metadata"], **({"annotations": annotations} if annotations else {})}}
    body = placed(whole, data.draw(st.sampled_from(paths(whole))), data.draw(JUNK))

    for decision in (
        created_graph(body, setup),
        updated_graph(whole, body, setup),
        updated_graph(body, whole, setup),
        updated_graph(body, body, setup),
    ):
        json.dumps([texts(decision.issues), decision.warnings])


@settings(max_examples=200, deadline=None)
@given(JUNK)
def test_any_value_gets_a_decision(value: Any) -> None:
    for body in (value, graph(value), {**graph(), "spec": value}, {**graph(), "metadata": value}):
        assert created_graph(body) == created_graph(body)


MOUNT: dict[str, Any] = {"extraPodSpec": {"mainContainer": {"image": "i", "volumeMounts": [{"name": "weights", "mountPath": "/weights"}]}}}
NO_VOLUME = 'volumeMounts[0].name: Not found: "weights": the pod has no volume of this name; there is shared-memory'


@pytest.mark.parametrize("annotations", [{}, WITHOUT_GROVE], ids=["with Grove", "without Grove"])
def test_what_a_server_would_refuse_in_the_pods_of_a_graph_is_said_where_its_user_wrote_it(annotations: dict[str, str]) -> None:
    decision = created_graph(graph({"decode": worker(**MOUNT)}, annotations=annotations))

    assert decision.allowed
    assert [str(finding) for finding in decision.pods] == [f"spec.services[decode].extraPodSpec.mainContainer.{NO_VOLUME}"]
    assert f"the API server would refuse the pods: {decision.pods[0]}" in decision.all_warnings


MAIN = {"name": "main", "image": "i", "command": ["python3", "-m", "dynamo.vllm"]}


@pytest.mark.parametrize(
    ("side", "fault"),
    [
        ({"ports": [{"containerPort": 99999}]}, "ports[0].containerPort: Invalid value: 99999"),
        ({"image": None}, "image: Required value"),
        ({"env": [{"name": "B", "value": "1"}, {"name": "1st", "value": "x"}]}, 'env[1].name: Invalid value: "1st"'),
        ({"volumeMounts": [{"name": "gone", "mountPath": "/x"}]}, 'volumeMounts[0].name: Not found: "gone"'),
    ],
    ids=["a value", "a missing field", "a rule of Grove", "another field"],
)
@pytest.mark.parametrize("version", ["v1alpha1", "v1beta1"])
@pytest.mark.parametrize("annotations", [{}, WITHOUT_GROVE], ids=["with Grove", "without Grove"])
def test_one_fault_of_a_container_is_one_finding_where_it_is_written(
    annotations: dict[str, str], version: str, side: dict[str, Any], fault: str
) -> None:
    container = {key: value for key, value in {"name": "aside", "image": "i", **side}.items() if value is not None}
    if version == "v1alpha1":
        extra = {"containers": [container], "mainContainer": {"image": "i"}}
        body, place = (
            graph({"decode": worker(extraPodSpec=extra)}, annotations=annotations),
            "spec.services[decode].extraPodSpec.containers[0]",
        )
    else:
        component = {"name": "decode", "type": "worker", "podTemplate": {"spec": {"containers": [MAIN, container]}}}
        body = {**graph(annotations=annotations), "apiVersion": BETA, "spec": {"components": [component]}}
        place = "spec.components[decode].podTemplate.spec.containers[1]"

    decision = created_graph(body)

    found = [str(issue) for issue in (*decision.issues, *decision.pods)]
    if annotations and "1st" in fault:  # Kubernetes takes such names; Grove does not.
        assert found == []
    else:
        assert [text.startswith(f"{place}.{fault}") for text in found] == [True], found


def test_a_name_that_two_volumes_have_is_told_once() -> None:
    volumes = [{"name": "cache", "emptyDir": {}}, {"name": "cache", "emptyDir": {}}]
    decision = created_graph(graph({"decode": worker(extraPodSpec={"volumes": volumes, "mainContainer": {"image": "i"}})}))

    (issue,) = (*decision.issues, *decision.pods)
    assert issue.path == ("spec", "services", "decode", "extraPodSpec", "volumes")


def test_the_names_of_variables_are_judged_without_grove_too() -> None:
    decision = created_graph(graph({"decode": worker(envs=[{"name": "A=B", "value": "1"}])}, annotations=WITHOUT_GROVE))

    assert [(finding.path[-4:], finding.value) for finding in decision.pods] == [(("decode", "envs", 0, "name"), "A=B")]


def test_pods_that_a_stored_graph_has_already_do_not_keep_it_from_being_changed() -> None:
    old, new = (graph({"decode": worker(replicas=replicas, **MOUNT)}) for replicas in (1, 2))

    assert updated_graph(old, new).pods == ()
