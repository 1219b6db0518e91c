"""Protection of managed objects: operations, users, warnings."""

from typing import Any

import pytest

from engine.ids import Kind
from providers.fabrics.nvidia.names import COMPUTE_DOMAIN
from resources.admission.admit import NO_REFERENCES, admit
from resources.admission.managed_rules import Protection
from resources.admission.request import Act, Request
from resources.base import kinds
from resources.children.table import CHILDREN
from tests.resources.admission.requests import SETUP, put, references_to, requested_by, small

OPERATOR, EXEMPT = "system:serviceaccount:grove-system:grove-operator", "system:serviceaccount:kube-system:cleaner"
PROTECTION = Protection(CHILDREN.protected(SETUP), operator=OPERATOR, exempt=frozenset({EXEMPT}))
UNPROTECTED = put(small(), {"metadata.annotations": {"grove.io/disable-managed-resource-protection": "true"}})
SET = references_to(small())

C, U, D = Act.CREATE, Act.UPDATE, Act.DELETE
AUTOSCALER_V1 = Kind("autoscaling", "v1", "HorizontalPodAutoscaler", "horizontalpodautoscalers")
RULES: tuple[tuple[Kind, set[Act]], ...] = (
    (kinds.SECRET, {U, D}),
    (kinds.SERVICE_ACCOUNT, {U, D}),
    (kinds.SERVICE, {U, D}),
    (kinds.POD, {U}),
    (kinds.ROLE, {U, D}),
    (kinds.ROLE_BINDING, {U, D}),
    (kinds.AUTOSCALER, {U, D}),
    (AUTOSCALER_V1, {U, D}),
    (kinds.PODCLIQUE, {C, U, D}),
    (kinds.SCALING_GROUP, {C, U, D}),
    (kinds.PODGANG, {C, U, D}),
    (kinds.RESOURCE_CLAIM, set()),
    (COMPUTE_DOMAIN, {D}),
)


def child(kind: Kind = kinds.PODCLIQUE, root: str = "web") -> dict[str, Any]:
    """An object that is part of a set."""
    labels = {"app.kubernetes.io/managed-by": "grove-operator", "app.kubernetes.io/part-of": root}
    return {"apiVersion": kind.api_version, "kind": kind.name, "metadata": {"name": "web-0-a", "namespace": "ml", "labels": labels}}


def denial(act: Act) -> str:
    """The denial of an operation."""
    what = "deletion" if act is Act.DELETE else "creation/updation"
    return f"admission denied, {what} of resource: ml/web-0-a is not allowed"


@pytest.mark.parametrize("act", list(Act))
@pytest.mark.parametrize(("kind", "protected"), RULES, ids=[f"{kind.name}/{kind.version}" for kind, _ in RULES])
def test_the_protected_operations_of_each_kind(kind: Kind, protected: set[Act], act: Act) -> None:
    decision = requested_by("ann", act, child(kind), SET, PROTECTION)

    assert (decision.denial, decision.warnings) == (denial(act) if act in protected else "", ())


@pytest.mark.parametrize("act", [C, U, D])
@pytest.mark.parametrize(("user", "denied"), [(OPERATOR, False), (EXEMPT, False), ("ann", True), ("", True)])
def test_the_users_who_may_change_managed_objects(user: str, denied: bool, act: Act) -> None:
    assert requested_by(user, act, child(), SET, PROTECTION).denial == (denial(act) if denied else "")


def test_an_unknown_user_is_not_the_operator() -> None:
    assert requested_by("", U, child(), SET, Protection(CHILDREN.protected(SETUP))).denial == denial(U)


@pytest.mark.parametrize("subresource", ["scale", "status", "eviction"])
def test_subresources_are_not_protected(subresource: str) -> None:
    assert requested_by("ann", U, child(), SET, PROTECTION, subresource).allowed


def test_nothing_is_protected_if_protection_is_disabled() -> None:
    assert requested_by("ann", D, child(), SET, Protection(operator=OPERATOR)).allowed


def test_a_set_can_disable_the_protection_of_its_children() -> None:
    assert requested_by("ann", D, child(), references_to(UNPROTECTED), PROTECTION).allowed
    other = put(UNPROTECTED, {"metadata.annotations": {"grove.io/disable-managed-resource-protection": "yes"}})
    assert requested_by("ann", D, child(), references_to(other), PROTECTION).denial == denial(D)


@pytest.mark.parametrize("act", [C, U, D])
def test_a_child_without_a_set_is_not_protected_and_that_is_a_warning(act: Act) -> None:
    body = child()
    del body["metadata"]["labels"]["app.kubernetes.io/part-of"]

    decision = requested_by("ann", act, body, SET, PROTECTION)

    assert decision.allowed
    assert decision.warnings == (
        "missing required label app.kubernetes.io/part-of on resource ml/web-0-a, could not determine parent PodCliqueSet",
    )


@pytest.mark.parametrize("act", [C, U, D])
def test_a_child_of_a_deleted_set_is_not_protected_and_that_is_a_warning(act: Act) -> None:
    decision = requested_by("ann", act, child(root="gone"), SET, PROTECTION)

    assert decision.allowed
    assert decision.warnings == ("parent PodCliqueSet gone not found for resource: ml/web-0-a",)


def test_children_of_an_unknown_set_are_protected_and_that_is_a_warning() -> None:
    decision = requested_by("ann", D, child(), NO_REFERENCES, PROTECTION)

    assert decision.denial == denial(D)
    assert decision.warnings == ("PodCliqueSet web was not read: whether it disables the protection of ml/web-0-a is not known",)
    assert requested_by(OPERATOR, D, child(), NO_REFERENCES, PROTECTION).warnings == ()


def test_foreign_objects_are_not_protected() -> None:
    body = child()
    body["metadata"]["labels"]["app.kubernetes.io/managed-by"] = "Helm"

    assert requested_by("ann", D, body, SET, PROTECTION).allowed


def test_changing_the_labels_does_not_remove_the_protection() -> None:
    id = kinds.PODCLIQUE.id("ml", "web-0-a")
    for labels in ({}, {"app.kubernetes.io/managed-by": "ann"}, {**child()["metadata"]["labels"], "app.kubernetes.io/part-of": "gone"}):
        new = put(child(), {"metadata.labels": labels})
        assert admit(Request(U, id, new, child(), "ann"), SETUP, SET, PROTECTION).denial == denial(U)


@pytest.mark.parametrize(
    "body", [None, [], "x", 1, {}, {"metadata": []}, {"metadata": {"labels": [1]}}, {"metadata": {"labels": {"a": 1}}}]
)
@pytest.mark.parametrize("act", list(Act))
def test_a_malformed_object_is_not_protected(body: Any, act: Act) -> None:
    assert admit(Request(act, kinds.PODGANG.id("ml", "x"), body, body, "ann"), SETUP, SET, PROTECTION).allowed


def test_a_set_itself_is_not_protected() -> None:
    body = put(small(), {"metadata.labels": child()["metadata"]["labels"]})

    assert requested_by("ann", U, body, SET, PROTECTION).allowed
