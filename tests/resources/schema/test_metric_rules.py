"""What an API server refuses in the metrics of autoscalers: each rule with its field and its message."""

from typing import Any

import pytest

from resources.admission.request import pod_notes
from resources.base.kinds import PODCLIQUESET
from resources.schema.metric_rules import metric_issues
from resources.schema.pod_spec_rules import is_fault, object_findings
from tests.resources.manifests import clique, pcs

UTILIZATION = {"type": "Utilization", "averageUtilization": 80}
CPU: dict[str, Any] = {"type": "Resource", "resource": {"name": "cpu", "target": UTILIZATION}}
QUEUE = {"name": "queue"}
VALID = [
    CPU,
    {"type": "ContainerResource", "containerResource": {"name": "cpu", "container": "main", "target": UTILIZATION}},
    {"type": "Pods", "pods": {"metric": QUEUE, "target": {"type": "AverageValue", "averageValue": "10"}}},
    {"type": "External", "external": {"metric": QUEUE, "target": {"type": "Value", "value": 3}}},
    {
        "type": "Object",
        "object": {"metric": QUEUE, "describedObject": {"kind": "Service", "name": "x"}, "target": {"type": "Value", "value": "1k"}},
    },
]
BOTH = {"type": "Value", "value": 3, "averageValue": 3}
CASES: list[tuple[dict[str, Any], list[str]]] = [
    (
        CPU | {"type": "Resouce"},
        ['type: Unsupported value: "Resouce": supported values: "ContainerResource", "External", "Object", "Pods", "Resource"'],
    ),
    (CPU | {"type": ""}, ["type: Required value: must specify a metric source type"]),
    ({"type": "Pods"}, ["pods: Required value: must populate information for the given metric source"]),
    (CPU | {"external": VALID[3]["external"]}, ["external: Forbidden: must populate the given metric source only"]),
    (
        {"type": "Resource", "resource": {"name": "cpu", "target": UTILIZATION | {"type": "utilization"}}},
        ['resource.target.type: Invalid value: "utilization": must be either Utilization, Value, or AverageValue'],
    ),
    (
        {"type": "Resource", "resource": {"name": "cpu", "target": UTILIZATION | {"type": ""}}},
        ["resource.target.type: Required value: must specify a metric target type"],
    ),
    (
        {"type": "Resource", "resource": {"name": "", "target": UTILIZATION | {"averageUtilization": 0}}},
        ["resource.target.averageUtilization: Invalid value: 0: must be greater than 0", "resource.name: Required value"],
    ),
    (
        {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization"}}},
        ["resource.target.averageUtilization: Required value: must set either a target raw value or a target utilization"],
    ),
    (
        {"type": "Resource", "resource": {"name": "cpu", "target": UTILIZATION | {"averageValue": "1"}}},
        ["resource.target.averageValue: Forbidden: may not set both a target raw value and a target utilization"],
    ),
    (
        {"type": "Pods", "pods": {"metric": QUEUE, "target": {"type": "Value", "value": "-1"}}},
        [
            'pods.target.value: Invalid value: "-1": must be positive',
            "pods.target.averageValue: Required value: must specify a positive target averageValue",
        ],
    ),
    (
        {"type": "Pods", "pods": {"metric": {"name": ""}, "target": {"type": "AverageValue", "averageValue": "0"}}},
        ['pods.target.averageValue: Invalid value: "0": must be positive', "pods.metric.name: Required value"],
    ),
    (
        {"type": "Pods", "pods": {"metric": {"name": "a/b"}, "target": {"type": "AverageValue", "averageValue": 1}}},
        ["pods.metric.name: Invalid value: \"a/b\": may not contain '/'"],
    ),
    (
        {"type": "External", "external": {"metric": QUEUE, "target": BOTH}},
        ["external.target.value: Forbidden: may not set both a target value for metric and a per-pod target"],
    ),
    (
        {"type": "External", "external": {"metric": QUEUE, "target": {"type": "Value"}}},
        ["external.target.averageValue: Required value: must set either a target value for metric or a per-pod target"],
    ),
    (
        {"type": "Object", "object": {"metric": QUEUE, "describedObject": {"kind": "", "name": "x"}, "target": {"type": "Value"}}},
        [
            "object.describedObject.kind: Required value",
            "object.target.averageValue: Required value: must set either a target value or averageValue",
        ],
    ),
]


@pytest.mark.parametrize("metric", VALID, ids=lambda metric: metric["type"])
def test_a_metric_of_each_type_is_accepted(metric: dict[str, Any]) -> None:
    assert list(metric_issues(metric, ())) == []


@pytest.mark.parametrize(("metric", "expected"), CASES, ids=[expected[0] for _, expected in CASES])
def test_what_the_server_refuses_is_found_in_its_words(metric: dict[str, Any], expected: list[str]) -> None:
    assert [str(issue) for issue in metric_issues(metric, ())] == expected


def scaled(metric: Any) -> dict[str, Any]:
    """A set with a clique that is scaled by this metric."""
    pod = {"containers": [{"name": "main", "image": "i"}]}
    return pcs(clique(podSpec=pod, autoScalingConfig={"maxReplicas": 3, "metrics": [metric]}))


@pytest.mark.parametrize("metric", [None, 3, [], {"type": 3, "resource": 4}, {"type": ["x"], "pods": {"target": "x", "metric": 4}}])
def test_values_of_wrong_types_are_left_to_the_types(metric: Any) -> None:
    assert object_findings(PODCLIQUESET, scaled(metric)) == ()


def test_a_stored_set_is_told_what_its_autoscaler_is_refused_for() -> None:
    findings = object_findings(PODCLIQUESET, scaled({"type": "Pods"}))

    assert [is_fault(finding) for finding in findings] == [False]
    path = "spec.template.cliques[0].spec.autoScalingConfig.metrics[0].pods"
    expected = f"the API server would refuse the autoscaler: {path}: Required value: must populate information for the given metric source"
    assert pod_notes(findings) == (expected,)
