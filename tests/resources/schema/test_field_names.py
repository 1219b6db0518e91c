"""Unknown fields: what a cluster serves decides, and the nearest known name is suggested."""

from typing import Any

import pytest

from resources.schema.dynamo import DynamoGraphDeployment
from resources.schema.issues import ErrorType, Issue, Path
from resources.schema.pod_spec_rules import findings
from resources.schema.podcliqueset import PodCliqueSet
from resources.schema.published import definitions
from resources.schema.unknown_fields import ServedFields, nearest_field, served_fields, suggestion


def document(**more: dict[str, Any]) -> dict[str, Any]:
    """The OpenAPI document of a server with the recorded types, and with more fields in some of them."""
    types = {
        f"io.k8s.api.core.v1.{name}": {"properties": {**schema["properties"], **more.get(name, {})}}
        for name, schema in definitions().items()
        if schema.get("properties")
    }
    return {"openapi": "3.0.0", "components": {"schemas": {**types, "io.k8s.api.core.v1.Unasked": {"properties": {"a": {}}}}}}


def served(**more: dict[str, Any]) -> ServedFields:
    """The fields in that document."""
    fields = served_fields(document(**more))
    assert fields is not None
    return fields


def unknown(spec: dict[str, Any]) -> list[Issue]:
    """The unknown fields of a pod spec."""
    return [finding for finding in findings(spec) if finding.type is ErrorType.UNKNOWN]


CONTAINER = {"name": "main", "image": "i"}


def test_a_field_that_a_newer_cluster_serves_is_known_there_and_only_in_its_type() -> None:
    spec = {"tunnel": 1, "containers": [{**CONTAINER, "tunnel": 1, "env": [{"name": "A", "tunnel": 1}]}]}

    of_newer = served(Container={"tunnel": {"type": "integer"}})

    assert {finding.field for finding in unknown(spec) if not of_newer.has(finding)} == {"tunnel", "containers[0].env[0].tunnel"}


@pytest.mark.parametrize(
    "wrong",
    [
        {},
        {"components": None},
        {"components": {"schemas": []}},
        {"components": {"schemas": {"io.k8s.api.core.v1.PodSpec": {"properties": {}}}}},
        {"components": {"schemas": {"PodSpec": {"properties": {"a": {}}}}}},
    ],
)
def test_a_document_without_the_types_of_pods_says_nothing(wrong: dict[str, Any]) -> None:
    assert served_fields(wrong) is None


@pytest.mark.parametrize(
    ("holder", "field", "nearest"),
    [
        ("container", "imgae", "image"),
        ("container", "Image", "image"),
        ("container", "enviroment", ""),
        ("container", "volumeMount", "volumeMounts"),
        ("pod", "nodeSelectors", "nodeSelector"),
        ("pod", "tolerations ", "tolerations"),
        ("container", "nodeSelector", "nodeSelector"),
        ("container", "limits", "resources.limits"),
        (
            *("container", "terminationGracePeriodSeconds"),
            "livenessProbe.terminationGracePeriodSeconds or startupProbe.terminationGracePeriodSeconds",
        ),
        ("container", "restartPolicies", "restartPolicy"),
        ("pod", "nodeAffinity", "affinity.nodeAffinity"),
        ("pod", "runAsUser", "securityContext.runAsUser"),
        ("pod", "metadata", ""),
        ("pod", "quantumTunnel", ""),
        ("pod", "x" * 100_000, ""),
        ("pod", "", ""),
    ],
)
def test_the_nearest_known_field_is_suggested(holder: str, field: str, nearest: str) -> None:
    spec = {"containers": [CONTAINER], field: 1} if holder == "pod" else {"containers": [{**CONTAINER, field: 1}]}

    (finding,) = unknown(spec)

    assert suggestion(finding) == nearest


@pytest.mark.parametrize(
    ("path", "nearest"),
    [
        (("spec", "cliques"), "template.cliques"),
        (("spec", "template", "updateStrategy"), "spec.updateStrategy"),
        (("spec", "template", "cliques", 0, "podSpec"), "spec.podSpec"),
        (("spec", "template", "cliques", 1, "spec", "resourceSharing"), "spec.template.cliques[1].resourceSharing"),
        (("spec", "template", "cliques", 1, "spec", "metadata"), ""),
        (("replicas",), "spec.replicas"),
        (("spec", "template", "quantumTunnel"), ""),
    ],
)
def test_a_field_of_a_set_that_is_on_another_level_is_suggested_with_its_path(path: Path, nearest: str) -> None:
    assert nearest_field(path, PodCliqueSet) == nearest


@pytest.mark.parametrize(
    ("path", "nearest"),
    [
        (("replcas",), "replicas"),
        (("extraPodSpec", "image"), "mainContainer.image"),
        (("extraPodSpec", "mainConatiner"), "mainContainer"),
        (("extraPodSpec", "mainContainer", "nodeSelector"), "spec.services[Frontend].extraPodSpec.nodeSelector"),
    ],
)
def test_fields_of_services_are_suggested(path: Path, nearest: str) -> None:
    within = "Container" if "mainContainer" in path else "PodSpec"
    finding = Issue(("spec", "services", "Frontend", *path), ErrorType.UNKNOWN, within=within)

    assert (suggestion(finding) if "extraPodSpec" in path else nearest_field(finding.path, DynamoGraphDeployment)) == nearest


def test_a_typing_error_of_a_field_that_only_the_cluster_has_is_recognised() -> None:
    (finding,) = unknown({"containers": [{**CONTAINER, "tunel": 1}]})

    assert (suggestion(finding), suggestion(finding, served(Container={"tunnel": {}}))) == ("", "tunnel")
