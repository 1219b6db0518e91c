"""Claims from templates of other namespaces: made with the consent of these namespaces, and kept and repaired without it."""

from collections.abc import Mapping
from typing import Any

import pytest

from engine.operation import body_of
from engine.plan import Alarm, Plan
from engine.reason import Reason
from engine.resource import Body
from engine.verb import Verb
from resources.base import kinds, labels
from resources.ports.references import claim_spec, spec_digest
from tests.builders import clique, group, podcliqueset, share
from tests.laws.toy import Toy
from tests.resources.blueprints.test_lifecycle import scale
from tests.resources.children.test_resource_claims import claims, external

WHY = "ResourceClaimTemplate vault/by-others is not shared with namespace ml; do: add ml to its annotation engine.grove.io/shared-with"
TEMPLATE = kinds.RESOURCE_CLAIM_TEMPLATE.id("vault", "by-others")
SET = kinds.PODCLIQUESET.id("ml", "demo")
ENTRY = share("by-others", "PerReplica", namespace="vault")


def demo(**entry: Any) -> dict[str, Any]:
    """A set with a clique that uses claims by the template of another namespace, and one that uses none."""
    return podcliqueset("demo", clique("a", 2, resourceSharing=[{**ENTRY, **entry}]), clique("b"), namespace="ml")


def passes(toy: Toy, count: int = 3) -> Plan:
    """Make some passes; returns the plan of the next one."""
    for _ in range(count):
        (made,) = toy.plans()
        toy.apply(made.operations)
        toy.live()
    (made,) = toy.plans()
    return made


def shared(toy: Toy, value: str | None) -> None:
    """Set the annotation of the template to that value; None removes it."""
    toy.write(TEMPLATE, {"metadata": {"annotations": {labels.SHARED_WITH: value}}})


def settled(*manifests: Mapping[str, Any], shared_with: str = "ml") -> Toy:
    """A cluster in which the sets run with claims from the template."""
    toy = Toy()
    toy.put(external(namespace="vault", shared_with=shared_with))
    for manifest in manifests or (demo(),):
        toy.put(manifest)
    toy.settle()
    return toy


def from_before(toy: Toy) -> Toy:
    """The same cluster as an engine leaves it that asks for no consent."""
    shared(toy, None)
    toy.write(SET, {"metadata": {"annotations": {labels.COPIED_CLAIMS: None}}})
    return toy


def conditions(toy: Toy) -> dict[str, Body]:
    """The conditions of the set by type."""
    return {each["type"]: each for each in (toy.objects[SET].get("status") or {}).get("conditions") or ()}


@pytest.mark.parametrize("value", [None, "", "other", "ml-2", "m", "xml"])
def test_without_consent_only_the_claims_and_the_pods_that_use_them_wait(value: str | None) -> None:
    toy = Toy()
    toy.put(external(namespace="vault", shared_with=value))
    toy.put(demo())

    made = passes(toy)

    assert [pod.name.startswith("demo-0-b-") for pod in toy.pods()] == [True]
    assert claims(toy) == []
    blocked = {wait.id: wait for wait in made.blocked}
    claim = blocked[kinds.RESOURCE_CLAIM.id("ml", "demo-0-a-0-by-others")]
    assert (claim.why, claim.reason) == (WHY, Reason.NOT_SHARED)
    assert sum(wait.why == f"needs {claim.id.name[:-11]}{index}-by-others: {WHY}" for wait in made.blocked for index in (0, 1)) == 2
    assert made.alarms == (Alarm("ClaimTemplateNotShared", WHY, blocking=True, may_pass=True),)
    condition = conditions(toy)["ClaimTemplateNotShared"]
    assert (condition["status"], condition["reason"], condition["message"]) == ("True", "NotShared", WHY)


@pytest.mark.parametrize("value", ["ml", "other, ml", "*"])
def test_when_consent_is_given_the_set_goes_on_and_nothing_is_deleted(value: str) -> None:
    toy = Toy()
    toy.put(external(namespace="vault"))
    toy.put(demo())
    passes(toy)
    before = set(toy.objects)

    shared(toy, value)
    toy.settle()

    assert before <= set(toy.objects)
    assert (len(toy.pods()), claims(toy)) == (3, ["demo-0-a-0-by-others", "demo-0-a-1-by-others"])
    assert "ClaimTemplateNotShared" not in conditions(toy)


@pytest.mark.parametrize("where", ["set", "group", "clique"])
@pytest.mark.parametrize("scope", ["AllReplicas", "PerReplica"])
def test_the_same_holds_at_every_level(where: str, scope: str) -> None:
    entry: dict[str, Any] = {"resourceSharing": [{**ENTRY, "scope": scope}]}
    nothing: dict[str, Any] = {}
    of_set, of_group, of_clique = (entry if where == level else nothing for level in ("set", "group", "clique"))
    manifest = podcliqueset("demo", clique("a", **of_clique), groups=(group("g", "a", **of_group),), namespace="ml", **of_set)
    toy = Toy()
    toy.put(external(namespace="vault"))
    toy.put(manifest)

    made = passes(toy)
    assert ({alarm.text for alarm in made.alarms}, toy.pods(), claims(toy)) == ({WHY}, [], [])

    shared(toy, "ml")
    toy.settle()
    assert (len(toy.pods()), len(claims(toy))) == (1, 1)


def test_a_pass_that_does_not_observe_the_other_namespace_leaves_the_condition_alone() -> None:
    toy = Toy()
    template = toy.put(external(namespace="vault"))
    toy.put(demo())
    passes(toy)
    del toy.objects[TEMPLATE]

    made = passes(toy)
    assert conditions(toy)["ClaimTemplateNotShared"]["message"] == WHY
    assert "not found in the namespaces that are observed" in {
        wait.why.rpartition(": ")[2] for wait in made.blocked if wait.id.kind == "ResourceClaim"
    }

    toy.put(template)
    shared(toy, "ml")
    toy.settle()
    assert "ClaimTemplateNotShared" not in conditions(toy)


def test_what_a_set_may_copy_is_recorded_with_its_finalizer() -> None:
    toy = Toy()
    template = toy.put(external(namespace="vault", shared_with="ml"))
    toy.put(demo())

    (made,) = toy.plans()

    (patch,) = [operation for operation in made.operations if operation.id == SET and operation.verb is Verb.PATCH]
    metadata = body_of(patch)["metadata"]
    assert metadata["annotations"] == {labels.COPIED_CLAIMS: spec_digest(claim_spec(template))}
    assert labels.SET_FINALIZER in metadata["finalizers"]


def test_when_consent_is_withdrawn_copies_stay_and_are_repaired() -> None:
    toy = settled()
    shared(toy, None)
    assert [made.operations for made in toy.plans()] == [()]

    for claim in claims(toy):
        del toy.objects[kinds.RESOURCE_CLAIM.id("ml", claim)]
    for pod in toy.pods():
        toy.delete(pod)
    toy.settle()
    assert (len(toy.pods()), claims(toy)) == (3, ["demo-0-a-0-by-others", "demo-0-a-1-by-others"])

    scale(toy, kinds.PODCLIQUE.id("ml", "demo-0-a"), 3)
    assert (len(toy.pods()), len(claims(toy))) == (4, 3)
    assert "ClaimTemplateNotShared" not in conditions(toy)


def test_a_template_that_is_made_anew_after_consent_was_withdrawn_is_not_copied() -> None:
    toy = settled()
    changed = external(namespace="vault")
    changed["spec"]["spec"]["devices"]["requests"][0]["name"] = "secret"
    toy.put(changed)
    assert [made.operations for made in toy.plans()] == [()]
    assert "ClaimTemplateNotShared" not in conditions(toy)

    toy.write(kinds.PODCLIQUE.id("ml", "demo-0-a"), {"spec": {"replicas": 3}, "metadata": {"generation": 2}})
    passes(toy)

    assert claims(toy) == ["demo-0-a-0-by-others", "demo-0-a-1-by-others"]
    assert len(toy.pods()) == 3
    assert conditions(toy)["ClaimTemplateNotShared"]["message"] == WHY


def test_over_copies_of_an_engine_that_asked_for_no_consent_only_the_record_is_written() -> None:
    toy = from_before(settled())
    before = {id: body["metadata"]["uid"] for id, body in toy.objects.items()}

    (made,) = toy.plans()
    assert [(operation.verb, operation.id) for operation in made.operations] == [(Verb.PATCH, SET)]
    assert (made.deferred, made.alarms) == ((), ())
    assert list(body_of(made.operations[0])["metadata"]["annotations"]) == [labels.COPIED_CLAIMS]

    toy.apply(made.operations)
    assert [made.operations for made in toy.plans()] == [()]
    assert {id: body["metadata"]["uid"] for id, body in toy.objects.items()} == before


@pytest.mark.parametrize("loses", ["one", "all"])
def test_copies_of_such_an_engine_are_repaired(loses: str) -> None:
    toy = from_before(settled())
    if loses == "all":
        passes(toy, 1)
    for claim in claims(toy)[: 1 if loses == "one" else None]:
        del toy.objects[kinds.RESOURCE_CLAIM.id("ml", claim)]
    toy.delete(toy.pods()[0])
    toy.settle()

    assert (len(toy.pods()), claims(toy)) == (3, ["demo-0-a-0-by-others", "demo-0-a-1-by-others"])


def test_a_claim_that_others_made_up_does_not_get_the_parameters_of_the_template() -> None:
    toy = Toy()
    toy.put(external(namespace="vault"))
    stored = toy.put(demo())
    owner = {
        "apiVersion": "grove.io/v1alpha1",
        "kind": "PodCliqueSet",
        "name": "demo",
        "uid": stored["metadata"]["uid"],
        "controller": True,
    }
    metadata = {
        "name": "demo-all-by-others",
        "namespace": "ml",
        "labels": labels.child("demo", "resource-claim"),
        "ownerReferences": [owner],
    }
    request = {"name": "guess", "exactly": {"deviceClassName": "gpu.example.com"}}
    spec = {"devices": {"requests": [request]}}
    toy.put({"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": metadata, "spec": spec})

    passes(toy)

    assert not any("theirs" in str(toy.objects[id]) for id in toy.objects if id != TEMPLATE)


@pytest.mark.parametrize("value", ["*", ",".join("0123456789abcdef"), "0" * 64, "x" * 200_000])
def test_a_record_that_a_user_makes_up_gives_nothing(value: str) -> None:
    toy = Toy()
    toy.put(external(namespace="vault"))
    manifest = demo()
    toy.put({**manifest, "metadata": {**manifest["metadata"], "annotations": {labels.COPIED_CLAIMS: value}}})

    assert {wait.why for wait in passes(toy).blocked if wait.id.kind == "ResourceClaim"} == {WHY}


@pytest.mark.parametrize("namespace", [{}, {"namespace": "ml"}])
def test_inside_one_namespace_nothing_is_asked_for_and_nothing_recorded(namespace: Mapping[str, str]) -> None:
    toy = Toy()
    toy.put(external())
    toy.put(podcliqueset("demo", clique("a", resourceSharing=[share("by-others", **namespace)]), namespace="ml"))
    toy.settle()

    assert claims(toy) == ["demo-0-a-all-by-others"]
    assert labels.COPIED_CLAIMS not in toy.objects[SET]["metadata"].get("annotations", {})
