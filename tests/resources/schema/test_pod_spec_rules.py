"""Pod specs: what Kubernetes would not take is told with its field; what it might know one day is kept, and pointed out."""

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resources.base.kinds import OURS, PODCLIQUE, PODCLIQUESET
from resources.schema.issues import Fault
from resources.schema.pod_spec_rules import findings, issues, judged, pod_specs, warnings
from tests.resources.manifests import JSON, clique, paths, pcs, put, whole_pod_spec

WHOLE = whole_pod_spec()
PLACES = paths(WHOLE)


def at(value: Any, path: tuple[Any, ...]) -> Any:
    """What stands at that place."""
    for step in path:
        value = value[step]
    return value


def pod(**container: Any) -> dict[str, Any]:
    """A pod spec of one container."""
    return {"containers": [{"name": "c", **container}]}


def told(spec: Any) -> list[str]:
    """Every issue as text."""
    return [str(issue) for issue in issues(spec)]


def test_a_spec_that_says_everything_is_sound() -> None:
    assert len(PLACES) > 2000
    assert list(findings(WHOLE)) == []


def test_what_is_not_known_is_pointed_out_wherever_it_stands_and_is_no_mistake() -> None:
    spec = whole_pod_spec(novel={"deep": [None, 1]})
    places = [path for path in paths(spec) if path and path[-1] == "novel" and "fieldsV1" not in path]

    assert list(issues(spec)) == []
    assert {finding.path for finding in findings(spec)} == set(places)
    assert len(places) > 200


def test_an_unknown_field_is_told_in_the_words_of_an_api_server() -> None:
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
def test_a_mistake_is_told_with_its_field_and_what_it_should_be(spec: Any, text: str) -> None:
    assert told(spec) == [text]


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
def test_what_a_pod_may_say_a_clique_may_say(spec: Any) -> None:
    assert list(findings(spec)) == []


@pytest.mark.parametrize("wrong", [[], {"a": 1}, True])
def test_every_field_minds_its_type(wrong: Any) -> None:
    minded = [path for path in PLACES if not isinstance(at(WHOLE, path), dict | list) and type(at(WHOLE, path)) is not type(wrong)]
    spec = WHOLE
    for path in minded:
        spec = put(spec, path, wrong)

    assert [issue.path for issue in issues(spec)] == minded
    assert len(minded) > 1000


@given(st.sampled_from(PLACES), JSON)
def test_whatever_stands_in_a_spec_is_judged_where_it_stands(path: tuple[Any, ...], value: Any) -> None:
    spec = put(WHOLE, path, value)
    before = copy.deepcopy(spec)

    found = list(findings(spec))

    assert spec == before
    # A null of a field is the absence of it, which is the fault of the object that needs it.
    assert all(finding.path[: len(path)] == path or (finding.kind is Fault.REQUIRED and value is None) for finding in found)


@given(JSON, st.sampled_from(OURS))
def test_whatever_an_object_is_its_pod_specs_are_looked_for(body: Any, kind: Any) -> None:
    assert list(pod_specs(kind, body)) == []
    assert judged(kind, {"spec": {"template": {"cliques": body, "podSpec": body}, "podSpec": None}}) == ()


def test_pod_specs_are_found_where_our_kinds_have_them() -> None:
    one, other = pod(), pod(image=1)

    assert list(pod_specs(PODCLIQUE, {"spec": {"podSpec": one}})) == [(("spec", "podSpec"), one)]
    assert list(pod_specs(PODCLIQUESET, pcs(clique("a", podSpec=one), clique("b", podSpec=other)))) == [
        (("spec", "template", "cliques", 0, "spec", "podSpec"), one),
        (("spec", "template", "cliques", 1, "spec", "podSpec"), other),
    ]


def test_a_spec_that_was_let_in_once_is_not_judged_again() -> None:
    faulty, worse = pod(image=1), pod(image=2)
    old = pcs(clique("a", podSpec=faulty), clique("b"))

    again = judged(PODCLIQUESET, pcs(clique("b"), clique("a", podSpec=copy.deepcopy(faulty), replicas=9)), old)
    changed = judged(PODCLIQUESET, pcs(clique("b"), clique("a", podSpec=worse)), old)

    assert again == ()
    assert [issue.field for issue in changed] == ["spec.template.cliques[1].spec.podSpec.containers[0].image"]


def test_one_is_not_true() -> None:
    old, new = (pcs(clique(podSpec={**pod(), "hostNetwork": value})) for value in (True, 1))

    assert [issue.field for issue in judged(PODCLIQUESET, new, old)] == ["spec.template.cliques[0].spec.podSpec.hostNetwork"]
