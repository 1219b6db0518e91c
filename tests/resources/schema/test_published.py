"""Templates of resource claims, and selectors of metrics: their types are those of Kubernetes, and their values are passed through."""

from typing import Any

import pytest

from resources.base.kinds import PODCLIQUE, PODCLIQUESET
from resources.schema.crds import schema as schema_of
from resources.schema.issues import ErrorType, Issue
from resources.schema.parse import parse
from resources.schema.pod_spec_rules import is_fault, object_findings
from resources.schema.podcliqueset import PodCliqueSet
from tests.resources.manifests import clique, pcs

REQUEST: dict[str, Any] = {
    "name": "gpu",
    "exactly": {
        "deviceClassName": "gpu.example.com",
        "selectors": [{"cel": {"expression": "device.driver == 'gpu.example.com'"}}],
        "count": 2,
        "capacity": {"requests": {"memory": "40Gi"}},
        "tolerations": [{"key": "a", "operator": "Exists"}],
    },
}
CONFIG: dict[str, Any] = {"requests": ["gpu"], "opaque": {"driver": "gpu.example.com", "parameters": {"kind": "GpuConfig", "x": [1]}}}
PATH = "spec.template.resourceClaimTemplates[0].templateSpec"


def templated(spec: Any, **more: Any) -> dict[str, Any]:
    """A set with one template of claims."""
    return pcs(clique("a"), resourceClaimTemplates=[{"name": "own", "templateSpec": {"spec": spec, **more}}])


def scaled(selector: Any) -> dict[str, Any]:
    """A set with a clique and a group that are scaled by a metric with that selector."""
    metric = {"type": "External", "external": {"metric": {"name": "m", "selector": selector}, "target": {"type": "Value", "value": "1"}}}
    scaling = {"maxReplicas": 3, "metrics": [metric]}
    groups = [{"name": "g", "cliqueNames": ["b"], "scaleConfig": scaling}]
    return pcs(clique("a", autoScalingConfig=scaling), clique("b"), podCliqueScalingGroups=groups)


def found(body: dict[str, Any]) -> list[Issue]:
    """What is found, besides what is wrong with pods alone."""
    return [finding for finding in object_findings(PODCLIQUESET, body) if not finding.pods_only]


def said(body: dict[str, Any]) -> list[str]:
    """What is refused."""
    return [str(finding) for finding in found(body) if is_fault(finding)]


def test_a_template_of_claims_and_a_selector_are_valid_and_passed_through() -> None:
    constraint = {"requests": ["gpu"], "matchAttribute": "gpu.example.com/numa"}
    sub = {"name": "small", "deviceClassName": "gpu.example.com"}
    requests = [REQUEST, {"name": "any", "firstAvailable": [sub]}]
    body = templated({"devices": {"requests": requests, "constraints": [constraint], "config": [CONFIG]}}, metadata={"labels": {"a": "b"}})
    selector = {"matchLabels": {"a": "b"}, "matchExpressions": [{"key": "c", "operator": "Exists"}]}

    assert found(body) == [] == found(scaled(selector))
    model = parse(PODCLIQUESET, body)
    assert model.body() == body
    assert parse(PODCLIQUESET, scaled(selector)).body() == scaled(selector)


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        (3, f"{PATH}.spec"),
        ({"devices": []}, f"{PATH}.spec.devices"),
        ({"devices": {"requests": {}}}, f"{PATH}.spec.devices.requests"),
        ({"devices": {"requests": [{"exactly": {"deviceClassName": "x"}}]}}, f"{PATH}.spec.devices.requests[0].name"),
        ({"devices": {"requests": [{"name": "a", "exactly": {"count": "2"}}]}}, f"{PATH}.spec.devices.requests[0].exactly.count"),
        ({"devices": {"requests": [{"name": "a", "exactly": {}}]}}, f"{PATH}.spec.devices.requests[0].exactly.deviceClassName"),
        ({"devices": {"requests": [REQUEST], "config": [{"opaque": {"driver": "d"}}]}}, f"{PATH}.spec.devices.config[0].opaque.parameters"),
    ],
)
def test_a_template_of_claims_with_wrong_types_is_refused_at_its_field(spec: Any, field: str) -> None:
    assert any(text.startswith(f"{field}:") for text in said(templated(spec))) or spec == 3
    with pytest.raises(Exception, match="resourceClaimTemplates"):
        parse(PODCLIQUESET, templated(spec))


def test_a_field_that_a_newer_kubernetes_may_have_is_a_warning() -> None:
    body = templated({"devices": {"requests": [{**REQUEST, "exacty": {}}]}})

    (finding,) = found(body)

    assert (finding.type, finding.field) == (ErrorType.UNKNOWN, f"{PATH}.spec.devices.requests[0].exacty")
    parse(PODCLIQUESET, body)


@pytest.mark.parametrize("selector", [{"matchLabels": ["a"]}, {"matchExpressions": [{"key": "a"}]}])
def test_a_wrong_selector_is_refused_wherever_a_metric_has_it(selector: Any) -> None:
    fields = {text.partition(": ")[0].partition(".metrics")[0] for text in said(scaled(selector))}

    assert fields == {"spec.template.cliques[0].spec.autoScalingConfig", "spec.template.podCliqueScalingGroups[0].scaleConfig"}
    podclique = {"spec": scaled(selector)["spec"]["template"]["cliques"][0]["spec"]}
    assert any(is_fault(finding) for finding in object_findings(PODCLIQUE, podclique))


def test_the_definition_has_their_types() -> None:
    template = schema_of(PodCliqueSet)["properties"]["spec"]["properties"]["template"]["properties"]
    spec = template["resourceClaimTemplates"]["items"]["properties"]["templateSpec"]["properties"]["spec"]
    request = spec["properties"]["devices"]["properties"]["requests"]["items"]["properties"]
    metric = template["podCliqueScalingGroups"]["items"]["properties"]["scaleConfig"]["properties"]["metrics"]["items"]["properties"]

    assert request["exactly"]["properties"]["count"]["type"] == "integer"
    assert request["firstAvailable"]["items"]["required"] == ["name", "deviceClassName"]
    for source in ("pods", "object", "external"):
        selector = metric[source]["properties"]["metric"]["properties"]["selector"]
        assert selector["properties"]["matchLabels"]["additionalProperties"] == {"type": "string"}
