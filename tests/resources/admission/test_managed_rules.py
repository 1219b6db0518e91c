"""Managed objects: who may touch what we have made, what they are told, and what is nobody's business."""

from typing import Any

import pytest

from engine.ids import Kind
from resources.admission.admit import UNSEEN, admit
from resources.admission.managed_rules import Protection
from resources.admission.request import Act, Request
from resources.base import kinds
from tests.resources.admission.asking import SETUP, around, done_by, put, small

OPERATOR, EXEMPT = "system:serviceaccount:grove-system:grove-operator", "system:serviceaccount:kube-system:cleaner"
GUARDED = Protection(enabled=True, operator=OPERATOR, exempt=frozenset({EXEMPT}))
LIFTED = put(small(), {"metadata.annotations": {"grove.io/disable-managed-resource-protection": "true"}})
SET = around(small())

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
)


def child(kind: Kind = kinds.PODCLIQUE, root: str = "web") -> dict[str, Any]:
    """An object that is part of a set."""
    labels = {"app.kubernetes.io/managed-by": "grove-operator", "app.kubernetes.io/part-of": root}
    return {"apiVersion": kind.api_version, "kind": kind.name, "metadata": {"name": "web-0-a", "namespace": "ml", "labels": labels}}


def denial(act: Act) -> str:
    """What who must not is told."""
    what = "deletion" if act is Act.DELETE else "creation/updation"
    return f"admission denied, {what} of resource: ml/web-0-a is not allowed"


@pytest.mark.parametrize("act", list(Act))
@pytest.mark.parametrize(("kind", "guarded"), RULES, ids=[f"{kind.name}/{kind.version}" for kind, _ in RULES])
def test_what_a_stranger_may_not_do_to_which_kind(kind: Kind, guarded: set[Act], act: Act) -> None:
    decision = done_by("ann", act, child(kind), SET, GUARDED)

    assert (decision.denial, decision.warnings) == (denial(act) if act in guarded else "", ())


@pytest.mark.parametrize("act", [C, U, D])
@pytest.mark.parametrize(("user", "denied"), [(OPERATOR, False), (EXEMPT, False), ("ann", True), ("", True)])
def test_who_may(user: str, denied: bool, act: Act) -> None:
    assert done_by(user, act, child(), SET, GUARDED).denial == (denial(act) if denied else "")


def test_nobody_is_the_operator_where_nobody_is_named() -> None:
    assert done_by("", U, child(), SET, Protection(enabled=True)).denial == denial(U)


@pytest.mark.parametrize("subresource", ["scale", "status", "eviction"])
def test_subresources_are_free_for_all(subresource: str) -> None:
    assert done_by("ann", U, child(), SET, GUARDED, subresource).allowed


def test_nothing_is_guarded_where_that_is_switched_off() -> None:
    assert done_by("ann", D, child(), SET, Protection(operator=OPERATOR)).allowed


def test_a_set_may_give_up_the_protection_of_its_children() -> None:
    assert done_by("ann", D, child(), around(LIFTED), GUARDED).allowed
    other = put(LIFTED, {"metadata.annotations": {"grove.io/disable-managed-resource-protection": "yes"}})
    assert done_by("ann", D, child(), around(other), GUARDED).denial == denial(D)


@pytest.mark.parametrize("act", [C, U, D])
def test_a_child_of_nobody_is_free_with_a_warning(act: Act) -> None:
    body = child()
    del body["metadata"]["labels"]["app.kubernetes.io/part-of"]

    decision = done_by("ann", act, body, SET, GUARDED)

    assert decision.allowed
    assert decision.warnings == (
        "missing required label app.kubernetes.io/part-of on resource ml/web-0-a, could not determine parent PodCliqueSet",
    )


@pytest.mark.parametrize("act", [C, U, D])
def test_a_child_of_a_set_that_has_gone_is_free_with_a_warning(act: Act) -> None:
    decision = done_by("ann", act, child(root="gone"), SET, GUARDED)

    assert decision.allowed
    assert decision.warnings == ("parent PodCliqueSet gone not found for resource: ml/web-0-a",)


def test_where_nobody_has_looked_for_the_set_its_children_are_protected_and_that_is_said() -> None:
    decision = done_by("ann", D, child(), UNSEEN, GUARDED)

    assert decision.denial == denial(D)
    assert decision.warnings == ("whether PodCliqueSet web has given up the protection of ml/web-0-a was not looked at",)
    assert done_by(OPERATOR, D, child(), UNSEEN, GUARDED).warnings == ()


def test_what_is_not_ours_is_free() -> None:
    body = child()
    body["metadata"]["labels"]["app.kubernetes.io/managed-by"] = "Helm"

    assert done_by("ann", D, body, SET, GUARDED).allowed


def test_nobody_gets_past_by_taking_the_label_off_or_by_naming_another_set() -> None:
    id = kinds.PODCLIQUE.id("ml", "web-0-a")
    for labels in ({}, {"app.kubernetes.io/managed-by": "ann"}, {**child()["metadata"]["labels"], "app.kubernetes.io/part-of": "gone"}):
        new = put(child(), {"metadata.labels": labels})
        assert admit(Request(U, id, new, child(), "ann"), SETUP, SET, GUARDED).denial == denial(U)


@pytest.mark.parametrize(
    "body", [None, [], "x", 1, {}, {"metadata": []}, {"metadata": {"labels": [1]}}, {"metadata": {"labels": {"a": 1}}}]
)
@pytest.mark.parametrize("act", list(Act))
def test_what_makes_no_sense_is_nobody_s_child(body: Any, act: Act) -> None:
    assert admit(Request(act, kinds.PODGANG.id("ml", "x"), body, body, "ann"), SETUP, SET, GUARDED).allowed


def test_the_set_itself_is_its_author_s() -> None:
    body = put(small(), {"metadata.labels": child()["metadata"]["labels"]})

    assert done_by("ann", U, body, SET, GUARDED).allowed
