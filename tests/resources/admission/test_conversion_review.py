"""ConversionReviews: an API server asks for graphs in the other version."""

from typing import Any

import pytest

from resources.admission.conversion_review import converted
from resources.admission.review import MalformedReview
from tests.resources.dynamo.versions.beta_graphs import alpha, beta, component


def review(objects: Any, desired: Any = "nvidia.com/v1beta1", **more: Any) -> dict[str, Any]:
    """A ConversionReview."""
    request = {"uid": "u", "desiredAPIVersion": desired, "objects": objects}
    return {"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview", "request": request, **more}


def test_all_objects_are_answered_in_the_version_that_is_asked_for() -> None:
    old, new = alpha({"A": {"componentType": "frontend"}}), beta(component("A"))

    answer = converted(review([old, new]))["response"]

    assert (answer["uid"], answer["result"]) == ("u", {"status": "Success"})
    assert [each["apiVersion"] for each in answer["convertedObjects"]] == ["nvidia.com/v1beta1"] * 2
    assert answer["convertedObjects"][1] == new


@pytest.mark.parametrize(
    ("document", "message"),
    [
        (review([], "nvidia.com/v2"), "request.desiredAPIVersion: must be one of nvidia.com/v1alpha1, nvidia.com/v1beta1"),
        (review(5), "request.objects: must be a list, got 5"),
        (review([{"kind": "Pod"}]), "request.objects[0]: only DynamoGraphDeployments of nvidia.com/v1alpha1 and nvidia.com/v1beta1"),
        (review([], kind="AdmissionReview"), 'kind: must be "ConversionReview"'),
    ],
)
def test_what_cannot_be_converted_is_answered_with_the_reason(document: Any, message: str) -> None:
    answer = converted(document)["response"]

    assert answer["convertedObjects"] == []
    assert answer["result"]["status"] == "Failure" and answer["result"]["message"].startswith(message)


def test_a_review_without_a_uid_cannot_be_answered() -> None:
    with pytest.raises(MalformedReview):
        converted({"request": {}})


@pytest.mark.parametrize(
    "spec", [5, [], {"services": 5}, {"services": {"a": [1]}, "pvcs": 3}, {"services": {"a": {"envs": 3, "volumeMounts": [1]}}}]
)
def test_a_graph_of_any_shape_is_converted(spec: Any) -> None:
    graph = {**alpha({}), "spec": spec}

    assert converted(review([graph]))["response"]["result"]["status"] == "Success"


@pytest.mark.parametrize(
    "spec",
    [5, [], {"components": 5}, {"components": [5]}, {"components": [{"name": "a", "podTemplate": {"spec": {"containers": 3}}}]}],
)
def test_a_newer_graph_of_any_shape_is_converted(spec: Any) -> None:
    graph = {**beta(), "spec": spec}

    assert converted(review([graph], "nvidia.com/v1alpha1"))["response"]["result"]["status"] == "Success"
