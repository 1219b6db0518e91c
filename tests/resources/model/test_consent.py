"""Which values of the annotation of a claim template share it, and what a set records of what it was given."""

from typing import Any

import pytest

from engine.ids import ResourceId
from resources.base import kinds, labels
from resources.ports.references import copied, is_shared_with, record, spec_digest, why_refused

ID: ResourceId = kinds.RESOURCE_CLAIM_TEMPLATE.id("vault", "gpu")


def annotated(key: str, value: Any) -> dict[str, Any]:
    """An object with one annotation, whatever its value is."""
    return {"metadata": {"annotations": {key: value}}}


@pytest.mark.parametrize(
    "value",
    ["team-a", " team-a ", "team-b,team-a", "team-b , team-a,", "\tteam-a\n,x", "*", "team-b,*", " * ", "x," * 60_000 + "team-a"],
    ids=lambda value: repr(value)[:30],
)
def test_a_template_is_shared_with_the_namespaces_that_its_annotation_names(value: str) -> None:
    assert is_shared_with(annotated(labels.SHARED_WITH, value), "team-a")


@pytest.mark.parametrize(
    "value",
    [
        *("", ",", " ", "team", "team-", "team-a-b", "xteam-a", "Team-A", "team-a team-b", "team-a;team-b", "team-*", "*-a", "**", ".*"),
        *("team-a\x00", "team-\u200ba", "te\nam-a", '["team-a"]', "!team-a", "vault/team-a", "x," * 60_000),
        *(None, True, 7, ["team-a"], {"team-a": "*"}),
    ],
    ids=lambda value: repr(value)[:30],
)
def test_a_template_is_shared_with_no_namespace_whose_name_is_not_there_as_a_whole(value: Any) -> None:
    assert not is_shared_with(annotated(labels.SHARED_WITH, value), "team-a")


@pytest.mark.parametrize("body", [{}, {"metadata": None}, {"metadata": {"annotations": ["*"]}}, annotated("grove.io/shared-with", "*")])
def test_a_template_without_the_annotation_is_not_shared(body: dict[str, Any]) -> None:
    assert not is_shared_with(body, "team-a")


def test_no_value_shares_a_template_with_a_namespace_without_a_name() -> None:
    assert not is_shared_with(annotated(labels.SHARED_WITH, ","), "")
    assert not is_shared_with(annotated(labels.SHARED_WITH, "*"), "")


def test_a_refusal_says_which_annotation_of_which_object_gets_which_value() -> None:
    assert why_refused(ID, "team-a") == (
        "ResourceClaimTemplate vault/gpu is not shared with namespace team-a; do: add team-a to its annotation engine.grove.io/shared-with"
    )


def test_a_record_has_the_digests_of_specs_whatever_the_order_of_their_keys() -> None:
    one, other = spec_digest({"a": 1, "b": 2}), spec_digest({"a": 1})

    assert one == spec_digest({"b": 2, "a": 1}) != other
    assert copied(annotated(labels.COPIED_CLAIMS, record({one, other}))) == {one, other}


@pytest.mark.parametrize(
    "value", [None, 7, ["x"], "", "*", ",", "0" * 63, "0" * 65, "G" * 64, f" {'0' * 64}", f"{'0' * 64}\n", "\x00" * 64]
)
def test_what_is_no_digest_records_nothing(value: Any) -> None:
    assert copied(annotated(labels.COPIED_CLAIMS, value)) == frozenset()
