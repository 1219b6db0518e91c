"""AdmissionReviews: requests, answers, malformed input."""

import base64
import copy
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grove_sandbox.apply.patches import PatchFault, patched
from providers.schedulers.kube import KubeScheduler
from resources.admission.admit import admit
from resources.admission.request import Act, Decision, Request
from resources.admission.review import MalformedReview, PatchOperation, answered, json_patch
from resources.base.kinds import PODCLIQUESET
from resources.ports.configuration import Configuration
from resources.schema.issues import ErrorType, Issue
from tests.resources.manifests import JSON, paths, pcs, put

SETUP = Configuration({"default-scheduler": KubeScheduler()}, "default-scheduler")


def review(**request: Any) -> dict[str, Any]:
    """A review of the creation of a set; `request` overrides fields."""
    fields = {
        "uid": "u-1",
        "kind": {"group": "grove.io", "version": "v1alpha1", "kind": "PodCliqueSet"},
        "resource": {"group": "grove.io", "version": "v1alpha1", "resource": "podcliquesets"},
        "operation": "CREATE",
        "namespace": "ml",
        "name": "d",
        "userInfo": {"username": "ann", "groups": ["system:authenticated"]},
        "object": pcs(),
        "oldObject": None,
        "dryRun": False,
        **request,
    }
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": fields}


def rules(request: Request) -> Decision:
    """The decision of the admission rules."""
    return admit(request, SETUP)


def response(document: Any, decision: Decision | None = None) -> Any:
    """The response in the answer."""
    answer = answered(document, rules if decision is None else lambda _: decision)
    assert (answer["apiVersion"], answer["kind"]) == ("admission.k8s.io/v1", "AdmissionReview")
    return answer["response"]


def test_an_admitted_set_gets_its_defaults_by_a_patch() -> None:
    document = review()

    answer = response(document)

    assert (answer["uid"], answer["allowed"], answer["patchType"]) == ("u-1", True, "JSONPatch")
    stored = patched(document["request"]["object"], json.loads(base64.b64decode(answer["patch"])))
    assert stored == rules(Request(Act.CREATE, PODCLIQUESET.id("ml", "d"), pcs())).body
    assert stored["spec"]["template"]["terminationDelay"] == "4h0m0s"


def test_an_answer_without_changes_has_no_patch() -> None:
    answer = response(review(), Decision(body=None))

    assert answer == {"uid": "u-1", "allowed": True}


def test_every_issue_is_a_cause_and_part_of_the_message() -> None:
    issues = (
        Issue(("spec", "replicas"), ErrorType.INVALID, "must be greater than or equal to 0", -1),
        Issue(("spec", "template", "cliques", 0, "name"), ErrorType.REQUIRED, "field cannot be empty"),
        Issue(("spec", "template", "cliques", "name"), ErrorType.DUPLICATE, value="a"),
    )

    answer = response(review(), Decision(issues, ("mind the gap",)))

    texts = [
        "spec.replicas: Invalid value: -1: must be greater than or equal to 0",
        "spec.template.cliques[0].name: Required value: field cannot be empty",
        'spec.template.cliques.name: Duplicate value: "a"',
    ]
    assert answer["status"] == {
        "metadata": {},
        "status": "Failure",
        "code": 422,
        "reason": "Invalid",
        "message": f'PodCliqueSet.grove.io "d" is invalid: [{", ".join(texts)}]',
        "details": {
            "name": "d",
            "group": "grove.io",
            "kind": "PodCliqueSet",
            "causes": [
                {"reason": "FieldValueInvalid", "message": texts[0].partition(": ")[2], "field": "spec.replicas"},
                {"reason": "FieldValueRequired", "message": texts[1].partition(": ")[2], "field": "spec.template.cliques[0].name"},
                {"reason": "FieldValueDuplicate", "message": texts[2].partition(": ")[2], "field": "spec.template.cliques.name"},
            ],
        },
    }
    assert (answer["allowed"], answer["warnings"], "patch" in answer) == (False, ["mind the gap"], False)


def test_a_single_issue_has_no_brackets() -> None:
    answer = response(review(), Decision((Issue(("spec",), ErrorType.FORBIDDEN, "not now"),)))

    assert answer["status"]["message"] == 'PodCliqueSet.grove.io "d" is invalid: spec: Forbidden: not now'


@pytest.mark.parametrize(
    ("type_", "reason"),
    [
        (ErrorType.REQUIRED, "FieldValueRequired"),
        (ErrorType.INVALID, "FieldValueInvalid"),
        (ErrorType.DUPLICATE, "FieldValueDuplicate"),
        (ErrorType.NOT_FOUND, "FieldValueNotFound"),
        (ErrorType.UNSUPPORTED, "FieldValueNotSupported"),
        (ErrorType.FORBIDDEN, "FieldValueForbidden"),
        (ErrorType.TOO_LONG, "FieldValueTooLong"),
        (ErrorType.MALFORMED, "FieldValueTypeInvalid"),
        (ErrorType.UNKNOWN, "FieldValueInvalid"),
    ],
)
def test_each_error_type_has_a_cause_of_kubernetes(type_: ErrorType, reason: str) -> None:
    (cause,) = response(review(), Decision((Issue(("spec",), type_),)))["status"]["details"]["causes"]

    assert cause["reason"] == reason


def test_a_denial_is_answered_as_forbidden() -> None:
    denial = "admission denied, deletion of resource: ml/d-0 is not allowed"

    status = response(review(), Decision(denial=denial))["status"]

    assert (status["code"], status["reason"], status["message"]) == (403, "Forbidden", denial)


def test_the_number_of_causes_is_limited() -> None:
    issues = tuple(Issue(("spec", at), ErrorType.INVALID, "x" * 500, "y" * 500) for at in range(5000))

    answer = response(review(), Decision(issues))

    assert len(answer["status"]["details"]["causes"]) == 1000
    assert answer["status"]["message"].endswith("and 4000 more]")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"apiVersion": "admission.k8s.io/v1beta1"}, 'apiVersion: must be "admission.k8s.io/v1", got "admission.k8s.io/v1beta1"'),
        ({"kind": "Review"}, 'kind: must be "AdmissionReview", got "Review"'),
    ],
)
def test_another_kind_of_document_is_answered_with_the_expected_kind(changes: Any, message: str) -> None:
    answer = response({**review(), **changes})

    assert (answer["allowed"], answer["status"]["code"], answer["status"]["message"]) == (False, 400, message)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"operation": "PATCH"}, 'request.operation: must be one of CREATE, UPDATE, DELETE, CONNECT, got "PATCH"'),
        ({"operation": ["CREATE"]}, "request.operation: must be one of CREATE, UPDATE, DELETE, CONNECT, got a list"),
        ({"object": None}, "request.object: is missing"),
        ({"object": "x"}, 'request.object: must be an object, got "x"'),
        ({"operation": "UPDATE"}, "request.oldObject: is missing"),
        ({"kind": None}, "request.kind: is missing"),
        ({"kind": {"kind": 3}}, "request.kind.kind: must be a string, got 3"),
        ({"namespace": {}}, "request.namespace: must be a string, got an object"),
        ({"userInfo": {"username": True}}, "request.userInfo.username: must be a string, got true"),
    ],
)
def test_a_malformed_request_is_answered_with_the_field(changes: Any, message: str) -> None:
    assert response(review(**changes))["status"]["message"] == message


@pytest.mark.parametrize(
    ("document", "message"),
    [
        (None, "not an AdmissionReview with a request, but null"),
        ([], "not an AdmissionReview with a request, but a list"),
        ({"request": []}, "not an AdmissionReview with a request, but an object"),
        ({"request": {}}, "request.uid: is missing"),
        ({"request": {"uid": 7}}, "request.uid: must be text that is not empty, got 7"),
    ],
)
def test_a_document_without_uid_is_not_answered(document: Any, message: str) -> None:
    with pytest.raises(MalformedReview) as malformed:
        answered(document, rules)

    assert (str(malformed.value), malformed.value.uid) == (message, "")


def test_a_document_that_is_nested_too_deeply_is_rejected() -> None:
    body: Any = {}
    for _ in range(900):
        body = {"spec": body}

    assert "nested deeper than 100 levels" in response(review(object=body))["status"]["message"]


@given(st.data(), JSON)
def test_any_input_is_answered(data: st.DataObject, junk: Any) -> None:
    whole = review(oldObject=pcs(), operation=data.draw(st.sampled_from(["CREATE", "UPDATE", "DELETE", "CONNECT"])))
    place = data.draw(st.sampled_from([path for path in paths(whole) if path and path != ("request", "uid") and path != ("request",)]))
    document = put(copy.deepcopy(whole), place, junk)

    answer = response(document)

    assert answer["uid"] == "u-1"
    assert answer["allowed"] or answer["status"]["message"]
    json.dumps(answer, allow_nan=True)


KEYS = st.sampled_from(["a", "b", "~", "/", "~1", "", "0", "-"])
DOCUMENTS = st.recursive(
    JSON | st.sampled_from([0, 0.0, 1, 1.0, True, False, "1", None]),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(KEYS, inner, max_size=5),
    max_leaves=20,
)
OBJECTS = st.dictionaries(KEYS, DOCUMENTS, max_size=5)


def exactly(value: Any) -> str:
    """A document as text, in which `true` is not 1 and 1 is not 1.0."""
    return json.dumps(value, sort_keys=True)


@given(OBJECTS, OBJECTS)
def test_applying_the_patch_gives_the_new_document(old: Any, new: Any) -> None:
    assert exactly(patched(old, json_patch(old, new))) == exactly(new)


@given(OBJECTS)
def test_equal_documents_need_no_patch(document: Any) -> None:
    assert json_patch(document, json.loads(json.dumps(document))) == []


@given(OBJECTS, OBJECTS)
def test_no_operation_can_be_left_out(old: Any, new: Any) -> None:
    steps = json_patch(old, new)

    for left_out in range(len(steps)):
        assert not leads_to(old, [*steps[:left_out], *steps[left_out + 1 :]], new)


def leads_to(old: Any, steps: list[PatchOperation], new: Any) -> bool:
    """Whether these steps can be taken, and make the new document."""
    try:
        return exactly(patched(old, steps)) == exactly(new)
    except PatchFault:
        return False


@pytest.mark.parametrize(
    ("old", "new", "steps"),
    [
        ({"a": {"b": 1, "c": 2}}, {"a": {"b": 1, "c": 3}}, [{"op": "replace", "path": "/a/c", "value": 3}]),
        ({"a": 1}, {}, [{"op": "remove", "path": "/a"}]),
        ({}, {"grove.io/auto-mnnvl~": "x"}, [{"op": "add", "path": "/grove.io~1auto-mnnvl~0", "value": "x"}]),
        ({"a": True}, {"a": 1}, [{"op": "replace", "path": "/a", "value": 1}]),
        ({"l": [1, 2, 3]}, {"l": [1, 3]}, [{"op": "remove", "path": "/l/1"}]),
        ({"l": [1, 3]}, {"l": [1, 2, 3]}, [{"op": "add", "path": "/l/1", "value": 2}]),
        ({"l": [1, 2, 3, 4]}, {"l": []}, [{"op": "remove", "path": f"/l/{at}"} for at in (3, 2, 1, 0)]),
        ({"l": [{"a": 1}, {"b": 1}]}, {"l": [{"a": 1, "c": 2}, {"b": 1}]}, [{"op": "add", "path": "/l/0/c", "value": 2}]),
        ({"a": None}, {"a": {}}, [{"op": "replace", "path": "/a", "value": {}}]),
    ],
)
def test_only_differences_are_patched(old: Any, new: Any, steps: list[PatchOperation]) -> None:
    assert json_patch(old, new) == steps
