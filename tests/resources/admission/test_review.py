"""AdmissionReviews: what the API server is told, and that nothing it could be sent breaks who answers."""

import base64
import copy
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from providers.sandbox.apply.patches import patched
from providers.schedulers.kube import KubeScheduler
from resources.admission.admit import admit
from resources.admission.request import Act, Decision, Request
from resources.admission.review import Misread, answered
from resources.base.kinds import PODCLIQUESET
from resources.ports.configuration import Configuration
from resources.schema.issues import Fault, Issue
from tests.resources.manifests import JSON, paths, pcs, put

SETUP = Configuration({"default-scheduler": KubeScheduler()}, "default-scheduler")


def review(**request: Any) -> dict[str, Any]:
    """A review of a set that is being created, unless the request says otherwise."""
    asked = {
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
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": asked}


def rules(request: Request) -> Decision:
    """What our rules say."""
    return admit(request, SETUP)


def response(document: Any, decision: Decision | None = None) -> Any:
    """The heart of the answer."""
    said = answered(document, rules if decision is None else lambda _: decision)
    assert (said["apiVersion"], said["kind"]) == ("admission.k8s.io/v1", "AdmissionReview")
    return said["response"]


def test_a_set_that_may_be_made_gets_its_defaults_by_a_patch_that_an_api_server_applies() -> None:
    asked = review()

    said = response(asked)

    assert (said["uid"], said["allowed"], said["patchType"]) == ("u-1", True, "JSONPatch")
    stored = patched(asked["request"]["object"], json.loads(base64.b64decode(said["patch"])))
    assert stored == rules(Request(Act.CREATE, PODCLIQUESET.id("ml", "d"), pcs())).body
    assert stored["spec"]["template"]["terminationDelay"] == "4h0m0s"


def test_nothing_to_change_is_no_patch() -> None:
    said = response(review(), Decision(body=None))

    assert said == {"uid": "u-1", "allowed": True}


def test_every_fault_is_a_cause_with_its_field_and_all_of_them_are_in_the_message() -> None:
    issues = (
        Issue(("spec", "replicas"), Fault.INVALID, "must be greater than or equal to 0", -1),
        Issue(("spec", "template", "cliques", 0, "name"), Fault.REQUIRED, "field cannot be empty"),
        Issue(("spec", "template", "cliques", "name"), Fault.DUPLICATE, value="a"),
    )

    said = response(review(), Decision(issues, ("mind the gap",)))

    texts = [
        "spec.replicas: Invalid value: -1: must be greater than or equal to 0",
        "spec.template.cliques[0].name: Required value: field cannot be empty",
        'spec.template.cliques.name: Duplicate value: "a"',
    ]
    assert said["status"] == {
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
    assert (said["allowed"], said["warnings"], "patch" in said) == (False, ["mind the gap"], False)


def test_a_single_fault_stands_without_brackets() -> None:
    said = response(review(), Decision((Issue(("spec",), Fault.FORBIDDEN, "not now"),)))

    assert said["status"]["message"] == 'PodCliqueSet.grove.io "d" is invalid: spec: Forbidden: not now'


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        (Fault.REQUIRED, "FieldValueRequired"),
        (Fault.INVALID, "FieldValueInvalid"),
        (Fault.DUPLICATE, "FieldValueDuplicate"),
        (Fault.NOT_FOUND, "FieldValueNotFound"),
        (Fault.UNSUPPORTED, "FieldValueNotSupported"),
        (Fault.FORBIDDEN, "FieldValueForbidden"),
        (Fault.TOO_LONG, "FieldValueTooLong"),
        (Fault.MALFORMED, "FieldValueTypeInvalid"),
        (Fault.UNKNOWN, "FieldValueInvalid"),
    ],
)
def test_each_sort_of_fault_has_kubernetes_word_for_it(fault: Fault, reason: str) -> None:
    (cause,) = response(review(), Decision((Issue(("spec",), fault),)))["status"]["details"]["causes"]

    assert cause["reason"] == reason


def test_who_may_not_is_told_so_and_nothing_else() -> None:
    denial = "admission denied, deletion of resource: ml/d-0 is not allowed"

    status = response(review(), Decision(denial=denial))["status"]

    assert (status["code"], status["reason"], status["message"]) == (403, "Forbidden", denial)


def test_thousands_of_faults_do_not_make_an_answer_without_end() -> None:
    issues = tuple(Issue(("spec", at), Fault.INVALID, "x" * 500, "y" * 500) for at in range(5000))

    said = response(review(), Decision(issues))

    assert len(said["status"]["details"]["causes"]) == 1000
    assert said["status"]["message"].endswith("and 4000 more]")


@pytest.mark.parametrize(
    ("spoilt", "message"),
    [
        ({"apiVersion": "admission.k8s.io/v1beta1"}, 'apiVersion: must be "admission.k8s.io/v1", got "admission.k8s.io/v1beta1"'),
        ({"kind": "Review"}, 'kind: must be "AdmissionReview", got "Review"'),
    ],
)
def test_another_sort_of_document_is_answered_with_what_it_should_be(spoilt: Any, message: str) -> None:
    said = response({**review(), **spoilt})

    assert (said["allowed"], said["status"]["code"], said["status"]["message"]) == (False, 400, message)


@pytest.mark.parametrize(
    ("spoilt", "message"),
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
def test_a_question_that_makes_no_sense_is_answered_with_the_field(spoilt: Any, message: str) -> None:
    assert response(review(**spoilt))["status"]["message"] == message


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
def test_where_nobody_waits_for_an_answer_there_is_none(document: Any, message: str) -> None:
    with pytest.raises(Misread) as misread:
        answered(document, rules)

    assert (str(misread.value), misread.value.uid) == (message, "")


def test_a_document_without_a_bottom_is_refused_before_anybody_looks_into_it() -> None:
    body: Any = {}
    for _ in range(900):
        body = {"spec": body}

    assert "nested deeper than 100 levels" in response(review(object=body))["status"]["message"]


@given(st.data(), JSON)
def test_whatever_stands_anywhere_in_a_review_it_is_answered(data: st.DataObject, junk: Any) -> None:
    whole = review(oldObject=pcs(), operation=data.draw(st.sampled_from(["CREATE", "UPDATE", "DELETE", "CONNECT"])))
    place = data.draw(st.sampled_from([path for path in paths(whole) if path and path != ("request", "uid") and path != ("request",)]))
    asked = put(copy.deepcopy(whole), place, junk)

    said = response(asked)

    assert said["uid"] == "u-1"
    assert said["allowed"] or said["status"]["message"]
    json.dumps(said, allow_nan=True)
