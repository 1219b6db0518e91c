"""Pod spec rules: issues with their fields, unknown fields as warnings."""

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resources.base.kinds import OURS, PODCLIQUE, PODCLIQUESET
from resources.schema.issues import ErrorType, Issue
from resources.schema.pod_spec_rules import below, findings, issues, new_parts, object_findings, warnings
from resources.schema.published import pod_specs
from tests.resources.manifests import JSON, clique, paths, pcs, put, whole_pod_spec

WHOLE = whole_pod_spec()
PLACES = paths(WHOLE)


def at(value: Any, path: tuple[Any, ...]) -> Any:
    """The value at a path."""
    for step in path:
        value = value[step]
    return value


def pod(**container: Any) -> dict[str, Any]:
    """A pod spec of one container."""
    return {"containers": [{"name": "c", **container}]}


def typed(spec: Any) -> list[Issue]:
    """The findings of types and names; not what the pods would be refused for."""
    return [finding for finding in findings(spec) if not finding.pods_only]


def issues_of(spec: Any) -> list[str]:
    """Every issue as text."""
    return [str(issue) for issue in issues(spec)]


def test_a_spec_with_every_field_is_valid() -> None:
    assert len(PLACES) > 2000
    assert typed(WHOLE) == []


def test_an_unknown_field_is_found_anywhere_and_is_no_issue() -> None:
    spec = whole_pod_spec(novel={"deep": [None, 1]})
    places = [path for path in paths(spec) if path and path[-1] == "novel" and "fieldsV1" not in path]

    assert list(issues(spec)) == []
    assert {finding.path for finding in typed(spec)} == set(places)
    assert len(places) > 200


def test_the_warning_about_an_unknown_field_has_the_words_of_an_api_server() -> None:
    path = ("spec", "template", "cliques", 0, "spec", "podSpec")

    assert list(warnings({"contaners": [], **pod(imagePullPolice="Always")}, path)) == [
        'unknown field "spec.template.cliques[0].spec.podSpec.contaners"',
        'unknown field "spec.template.cliques[0].spec.podSpec.containers[0].imagePullPolice"',
    ]


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        ("x", 'Invalid value: "x": must be of type object: "string"'),
        ({}, "containers: Required value"),
        ({"containers": None}, "containers: Required value"),
        ({"containers": {}}, 'containers: Invalid value: an object: must be of type array: "object"'),
        ({"containers": [None]}, 'containers[0]: Invalid value: null: must be of type object: "null"'),
        ({"containers": [{}]}, "containers[0].name: Required value"),
        (pod(image=1), 'containers[0].image: Invalid value: 1: must be of type string: "integer"'),
        (pod(command="run"), 'containers[0].command: Invalid value: "run": must be of type array: "string"'),
        (pod(args=["a", 1]), 'containers[0].args[1]: Invalid value: 1: must be of type string: "integer"'),
        (
            pod(ports=[{"containerPort": "80"}]),
            'containers[0].ports[0].containerPort: Invalid value: "80": must be of type integer: "string"',
        ),
        (pod(ports=[{"containerPort": 2**31}]), "containers[0].ports[0].containerPort: Invalid value: 2147483648: must fit 32 bits"),
        (
            pod(ports=[{"containerPort": 80.5}]),
            'containers[0].ports[0].containerPort: Invalid value: 80.5: must be of type integer: "number"',
        ),
        (pod(ports=[{"name": "http"}]), "containers[0].ports[0].containerPort: Required value"),
        (pod(tty="yes"), 'containers[0].tty: Invalid value: "yes": must be of type boolean: "string"'),
        (pod(env=[{"value": "x"}]), "containers[0].env[0].name: Required value"),
        (
            pod(imagePullPolicy="Sometimes"),
            'containers[0].imagePullPolicy: Unsupported value: "Sometimes": supported values: "Always", "IfNotPresent", "Never"',
        ),
        (pod(imagePullPolicy=1), 'containers[0].imagePullPolicy: Invalid value: 1: must be of type string: "integer"'),
        (
            pod(livenessProbe={"tcpSocket": {"port": True}}),
            'containers[0].livenessProbe.tcpSocket.port: Invalid value: true: must be of type integer,string: "boolean"',
        ),
        (
            pod(resources={"limits": {"cpu": "2 cores"}}),
            'containers[0].resources.limits.cpu: Invalid value: "2 cores": must be a quantity such as 2, 500m or 4Gi',
        ),
        (
            pod(resources={"limits": {"nvidia.com/gpu": [1]}}),
            'containers[0].resources.limits[nvidia.com/gpu]: Invalid value: a list: must be of type number,string: "array"',
        ),
        ({**pod(), "nodeSelector": {"gpu": True}}, 'nodeSelector.gpu: Invalid value: true: must be of type string: "boolean"'),
        ({**pod(), "nodeSelector": "gpu"}, 'nodeSelector: Invalid value: "gpu": must be of type object: "string"'),
        (
            {
                **pod(),
                "volumes": [{"name": "v", "ephemeral": {"volumeClaimTemplate": {"spec": {}, "metadata": {"deletionTimestamp": ""}}}}],
            },
            'volumes[0].ephemeral.volumeClaimTemplate.metadata.deletionTimestamp: Invalid value: "": must be of type date-time: "string"',
        ),
    ],
)
def test_an_issue_has_its_field_and_the_expected_type(spec: Any, text: str) -> None:
    assert issues_of(spec) == [text]


@pytest.mark.parametrize(
    "spec",
    [
        pod(resources={"limits": {"cpu": 0.5, "memory": 1 << 40, "pods": "1e3", "a.b/c": "-.5Ki"}}),
        pod(ports=[{"containerPort": 80.0}], livenessProbe={"httpGet": {"port": "http"}}),
        pod(imagePullPolicy="", env=None, terminationMessagePolicy=None),
        {**pod(), "restartPolicy": "", "nodeSelector": {"a": None}, "tolerations": [{"effect": "", "operator": "Exists"}]},
        {**pod(), "volumes": [{"name": "h", "hostPath": {"path": "/", "type": ""}}]},
    ],
)
def test_everything_that_is_valid_in_a_pod_is_valid_in_a_clique(spec: Any) -> None:
    assert typed(spec) == []


@pytest.mark.parametrize("wrong", [[], {"a": 1}, True])
def test_every_field_has_a_type(wrong: Any) -> None:
    typed = [path for path in PLACES if not isinstance(at(WHOLE, path), dict | list) and type(at(WHOLE, path)) is not type(wrong)]
    spec = WHOLE
    for path in typed:
        spec = put(spec, path, wrong)

    assert [issue.path for issue in issues(spec)] == typed
    assert len(typed) > 1000


@given(st.sampled_from(PLACES), JSON)
def test_findings_have_the_path_of_the_value(path: tuple[Any, ...], value: Any) -> None:
    spec = put(WHOLE, path, value)
    before = copy.deepcopy(spec)

    result = typed(spec)

    assert spec == before
    # A null counts as absent, which is an issue of the object that requires the field.
    assert all(finding.path[: len(path)] == path or (finding.type is ErrorType.REQUIRED and value is None) for finding in result)


@given(JSON, st.sampled_from(OURS))
def test_any_object_can_be_searched_for_pod_specs(body: Any, kind: Any) -> None:
    assert list(pod_specs(kind, body)) == []
    assert object_findings(kind, {"spec": {"template": {"cliques": body, "podSpec": body}, "podSpec": None}}) == ()


def test_pod_specs_are_found_in_cliques_and_sets() -> None:
    one, other = pod(), pod(image=1)

    assert list(pod_specs(PODCLIQUE, {"spec": {"podSpec": one}})) == [(("spec", "podSpec"), one)]
    assert list(pod_specs(PODCLIQUESET, pcs(clique("a", podSpec=one), clique("b", podSpec=other)))) == [
        (("spec", "template", "cliques", 0, "spec", "podSpec"), one),
        (("spec", "template", "cliques", 1, "spec", "podSpec"), other),
    ]


def new_findings(new: Any, old: Any) -> tuple[Issue, ...]:
    """The findings of a set that the old one does not have."""
    return below(new_parts(PODCLIQUESET, new, old), object_findings(PODCLIQUESET, new))


def test_an_unchanged_pod_spec_is_not_validated_again() -> None:
    faulty, worse = pod(image=1), pod(image=2)
    old = pcs(clique("a", podSpec=faulty), clique("b"))

    again = new_findings(pcs(clique("b"), clique("a", podSpec=copy.deepcopy(faulty), replicas=9)), old)
    changed = new_findings(pcs(clique("b"), clique("a", podSpec=worse)), old)

    assert again == ()
    assert [issue.field for issue in changed if not issue.pods_only] == ["spec.template.cliques[1].spec.podSpec.containers[0].image"]


def test_a_pod_spec_that_changes_from_true_to_one_is_validated() -> None:
    old, new = (pcs(clique(podSpec={**pod(image="i"), "hostNetwork": value})) for value in (True, 1))

    assert [issue.field for issue in new_findings(new, old)] == ["spec.template.cliques[0].spec.podSpec.hostNetwork"]
