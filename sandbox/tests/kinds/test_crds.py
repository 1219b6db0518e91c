"""Custom kinds come and go, and their objects with them."""

import pytest

from grove_sandbox.types.status import StatusError
from sandbox.tests.in_memory import CRD, TOY, about, fresh, toy, toys


def test_a_kind_is_served_as_soon_as_it_is_defined() -> None:
    api = fresh()
    revision = api.catalogue.revision

    api.create(about(api, CRD), toys())
    api.create(about(api, TOY), toy("a"))

    conditions = api.get(about(api, CRD, "toys.example.com")).body["status"]["conditions"]
    assert {one["type"]: one["status"] for one in conditions} == {"NamesAccepted": "True", "Established": "True"}
    assert api.catalogue.revision > revision


def test_a_kind_waits_for_the_last_of_its_objects() -> None:
    api = fresh()
    api.create(about(api, CRD), toys())
    api.create(about(api, TOY), toy("free"))
    api.create(about(api, TOY), toy("held", finalizers=["example.com/hold"]))

    api.delete(about(api, CRD, "toys.example.com"))

    assert [item.body["metadata"]["name"] for item in api.list(about(api, TOY)).items] == ["held"]
    api.patch(about(api, TOY, "held"), {"metadata": {"finalizers": None}}, "merge")
    with pytest.raises(StatusError, match="could not find the requested resource"):
        about(api, TOY)
    with pytest.raises(StatusError, match="not found"):
        api.get(about(api, CRD, "toys.example.com"))


def test_every_version_shows_the_same_objects() -> None:
    api = fresh()
    definition = toys()
    second = {**definition["spec"]["versions"][0], "name": "v1beta1", "storage": False}
    definition["spec"]["versions"].append(second)
    api.create(about(api, CRD), definition)
    api.create(about(api, TOY), toy("a"))

    beta = api.catalogue.find("example.com", "v1beta1", "toys")
    shown = api.list(about(api, beta.kind)).items[0].body

    assert (shown["apiVersion"], shown["metadata"]["name"]) == ("example.com/v1beta1", "a")
    assert [served.kind.version for served in api.catalogue if served.kind.plural == "toys" and served.preferred] == ["v1"]


def test_a_kind_that_somebody_holds_goes_when_it_is_let_go() -> None:
    api = fresh()
    definition = toys()
    definition["metadata"]["finalizers"] = ["example.com/hold"]
    api.create(about(api, CRD), definition)
    held = api.delete(about(api, CRD, "toys.example.com")).body["metadata"]["finalizers"]

    remaining = [one for one in held if one != "example.com/hold"]
    api.patch(about(api, CRD, "toys.example.com"), {"metadata": {"finalizers": remaining}}, "merge")

    with pytest.raises(StatusError, match="not found"):
        api.get(about(api, CRD, "toys.example.com"))


@pytest.mark.parametrize(("word", "value"), [("type", "text"), ("pattern", "(")])
def test_a_definition_by_whose_schema_nothing_can_be_judged_is_refused(word: str, value: str) -> None:
    api = fresh()
    definition = toys()
    definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"] = {"spec": {word: value}}

    with pytest.raises(StatusError, match=r"spec\.versions\[0\]\.schema\.openAPIV3Schema: Invalid value"):
        api.create(about(api, CRD), definition)


def test_a_definition_without_a_name_for_its_kind_is_refused() -> None:
    api = fresh()
    definition = toys()
    definition["spec"]["names"]["kind"] = ""

    with pytest.raises(StatusError, match=r"spec\.names\.kind: Required value"):
        api.create(about(api, CRD), definition)
