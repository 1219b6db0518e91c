"""Which references to templates of other namespaces a request adds, and what is said about them."""

from collections.abc import Mapping
from typing import Any

import pytest

from engine.ids import ResourceId
from resources.admission.consent_rules import TemplateAccess, new_references, with_consent
from resources.admission.request import Act, Decision, Request
from resources.base import kinds, labels
from resources.schema.issues import Path
from tests.builders import clique, group, podcliqueset, share

GPU = kinds.RESOURCE_CLAIM_TEMPLATE.id("vault", "gpu")
OF_SET: Path = ("spec", "template", "resourceSharing", 0, "namespace")
SHARED = {"metadata": {"annotations": {labels.SHARED_WITH: "ml"}}}
FIELD = "spec.template.resourceSharing[0].namespace: Forbidden: "


def web(*entries: dict[str, Any], namespace: str = "ml", **metadata: Any) -> dict[str, Any]:
    """A set with these entries of its own."""
    body = podcliqueset("web", resourceSharing=list(entries), namespace=namespace)
    return {**body, "metadata": {**body["metadata"], **metadata}}


def asked(new: Any, old: Any = None, **fields: Any) -> Request:
    """The request that creates a set, or changes it."""
    act = Act.CREATE if old is None else Act.UPDATE
    return Request(**{"act": act, "id": kinds.PODCLIQUESET.id("ml", "web"), "body": new, "old": old, "user": "ann", **fields})


def of_vault(name: str = "gpu") -> dict[str, Any]:
    """An entry that names a template of another namespace."""
    return share(name, namespace="vault")


def test_the_references_of_a_new_set_are_new_at_every_level_and_each_is_named_once() -> None:
    body = podcliqueset(
        "web",
        clique("a"),
        clique("b", resourceSharing=[of_vault("of-clique"), of_vault("of-clique")]),
        groups=(group("g", "a", resourceSharing=[of_vault("of-group")]),),
        namespace="ml",
        resourceSharing=[share("own"), of_vault()],
    )

    assert new_references(asked(body)) == {
        GPU: ("spec", "template", "resourceSharing", 1, "namespace"),
        kinds.RESOURCE_CLAIM_TEMPLATE.id("vault", "of-group"): (
            *("spec", "template", "podCliqueScalingGroups", 0),
            *("resourceSharing", 0, "namespace"),
        ),
        kinds.RESOURCE_CLAIM_TEMPLATE.id("vault", "of-clique"): ("spec", "template", "cliques", 1, "resourceSharing", 0, "namespace"),
    }


@pytest.mark.parametrize("entry", [share("gpu"), share("gpu", namespace=""), share("gpu", namespace="ml"), share("gpu", namespace=None)])
def test_inside_one_namespace_there_is_none(entry: dict[str, Any]) -> None:
    assert new_references(asked(web(entry))) == {}


@pytest.mark.parametrize(
    ("old", "new", "added"),
    [
        (web(of_vault()), web(of_vault()), 0),
        (web(of_vault()), web(of_vault(), finalizers=[]), 0),
        (web(of_vault()), web(share("gpu", "PerReplica", namespace="vault")), 0),
        (web(of_vault(), of_vault("b")), web(of_vault("b")), 0),
        (web(), web(of_vault()), 1),
        (web(of_vault("other")), web(of_vault("other"), of_vault()), 1),
        (web(share("gpu")), web(of_vault()), 1),
        (web(share("gpu", namespace="elsewhere")), web(of_vault()), 1),
        (web(deletionTimestamp="2026-01-01T00:00:00Z"), web(of_vault()), 0),
        ({"spec": "text"}, web(of_vault()), 1),
        ("text", web(of_vault()), 1),
    ],
)
def test_of_an_update_only_what_it_adds_is_new(old: Any, new: Any, added: int) -> None:
    assert len(new_references(asked(new, old))) == added


@pytest.mark.parametrize(
    "fields",
    [
        {"subresource": "status"},
        {"subresource": "scale"},
        {"act": Act.DELETE},
        {"act": Act.CONNECT},
        {"id": kinds.PODCLIQUE.id("ml", "web")},
        {"user": "engine"},
    ],
)
def test_other_requests_and_those_of_the_engine_add_none(fields: Mapping[str, Any]) -> None:
    assert new_references(asked(web(of_vault()), **fields), "engine") == {}


def test_a_user_without_a_name_is_not_the_engine() -> None:
    assert new_references(asked(web(of_vault()), user="")) == {GPU: OF_SET}


@pytest.mark.parametrize(
    "body",
    [
        None,
        [],
        "text",
        {},
        {"spec": None},
        {"spec": {"template": []}},
        {"spec": {"template": {"resourceSharing": "x", "cliques": [7, None]}}},
    ]
    + [web({"name": 1, "namespace": "vault"}), web({"name": "gpu", "namespace": ["vault"]}), web({"namespace": "vault"})],
)
def test_what_has_another_shape_adds_none(body: Any) -> None:
    assert new_references(asked(body)) == {}


def said(access: Mapping[ResourceId, TemplateAccess], user: str = "ann", added: Mapping[ResourceId, Path] | None = None) -> Decision:
    """The decision about a set with one reference."""
    return with_consent(Decision(), asked(web(of_vault()), user=user), added or {GPU: OF_SET}, access)


def test_a_user_who_may_read_a_shared_template_may_refer_to_it() -> None:
    assert said({GPU: TemplateAccess(SHARED, is_permitted=True)}) == Decision()


@pytest.mark.parametrize("template", [None, SHARED, {}])
def test_a_user_who_may_not_read_it_learns_nothing_about_it(template: Any) -> None:
    decision = said({GPU: TemplateAccess(template, is_permitted=False)})

    assert [str(issue) for issue in decision.issues] == [
        f"{FIELD}user ann may not get resourceclaimtemplates.resource.k8s.io vault/gpu; "
        "do: ask for that right, or let a user who has it create the set"
    ]
    assert decision.warnings == ()


def test_a_template_that_is_not_shared_is_refused_with_the_way_out() -> None:
    decision = said({GPU: TemplateAccess({}, is_permitted=True)})

    assert [str(issue) for issue in decision.issues] == [
        f"{FIELD}ResourceClaimTemplate vault/gpu is not shared with namespace ml; do: add ml to its annotation engine.grove.io/shared-with"
    ]


def test_a_check_that_failed_refuses() -> None:
    decision = said({GPU: TemplateAccess(SHARED, is_permitted=True, unchecked="Unreachable")})

    assert [str(issue) for issue in decision.issues] == [
        f"{FIELD}whether user ann may get resourceclaimtemplates.resource.k8s.io vault/gpu could not be checked (Unreachable); "
        "do: try again"
    ]


@pytest.mark.parametrize("unread", ["does not exist", "could not be read (Forbidden)"])
def test_a_template_that_cannot_be_read_is_no_reason_to_refuse_and_is_told(unread: str) -> None:
    decision = said({GPU: TemplateAccess(None, unread, is_permitted=True)})

    assert decision.allowed
    assert decision.warnings == (f"ResourceClaimTemplate vault/gpu {unread}: the pods that need it wait until it is there and shared",)


def test_where_no_api_server_is_asked_the_annotation_alone_decides_and_that_is_told() -> None:
    shared, other = said({GPU: TemplateAccess(SHARED)}), said({GPU: TemplateAccess({})})

    assert (shared.allowed, other.allowed) == (True, False)
    assert "was not checked" in shared.warnings[0]


def test_what_comes_in_is_shown_as_text_and_cut() -> None:
    id = kinds.RESOURCE_CLAIM_TEMPLATE.id("va\x1b[31mult", "gpu\n" * 500)
    for access in (TemplateAccess(is_permitted=False), TemplateAccess(unchecked="x" * 5000), TemplateAccess(), TemplateAccess({})):
        decision = said({id: access}, user="ann\x1b[2J\u202e" * 100, added={id: OF_SET})
        for text in (*map(str, decision.issues), *decision.warnings):
            assert text.isprintable() and len(text) < 500
