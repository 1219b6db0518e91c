"""Served kinds are listed in both forms of discovery and in OpenAPI, and new kinds at once."""

from collections.abc import Iterator
from typing import Any

import orjson
import pytest

from engine.ids import Kind
from grove_sandbox.http import discovery
from grove_sandbox.http.openapi import OpenApi
from grove_sandbox.kinds.served import Catalogue, ScalePaths, Served

SCHEMA = {
    "type": "object",
    "description": "A toy.",
    "properties": {"spec": {"type": "object", "properties": {"replicas": {"type": "integer", "default": 1}}}},
}


def widgets(version: str = "v1", *, preferred: bool = True) -> Served:
    return Served(
        Kind("toys.example.com", version, "Widget", "widgets", status=True),
        singular="widget",
        list_name="WidgetList",
        short_names=("wd",),
        categories=("toys",),
        subresources=("status", "scale"),
        scale=ScalePaths(),
        custom=True,
        schema=SCHEMA,
        preferred=preferred,
    )


def catalogue(*custom: Served) -> Catalogue:
    made = Catalogue()
    made.replace("toys.example.com", "widgets", custom)
    return made


def entries(document: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for group in document["items"]:
        for version in group["versions"]:
            for resource in version["resources"]:
                yield group["metadata"].get("name", ""), version["version"], resource


def test_both_forms_of_discovery_tell_the_same() -> None:
    served = catalogue(widgets())
    listed = [entry for core in (True, False) for entry in entries(discovery.aggregated(served, core=core))]

    for group, version, entry in listed:
        document = discovery.resource_list(served, group, version)
        assert document is not None
        older = {resource["name"]: resource for resource in document["resources"]}[entry["resource"]]
        assert (entry["verbs"], entry["singularResource"], entry.get("shortNames"), entry.get("categories")) == (
            older["verbs"],
            older["singularName"],
            older.get("shortNames"),
            older.get("categories"),
        )
    assert {served.kind.plural for served in served} <= {entry["resource"] for _, _, entry in listed}


def test_the_core_group_and_the_others_are_told_apart() -> None:
    served = catalogue()

    assert {""} == {group for group, _, _ in entries(discovery.aggregated(served, core=True))}
    assert "" not in {group for group, _, _ in entries(discovery.aggregated(served, core=False))}


def test_a_custom_kind_is_told_as_a_real_server_tells_it() -> None:
    document = [entry for group, _, entry in entries(discovery.aggregated(catalogue(widgets()), core=False)) if group == "toys.example.com"]

    assert [
        {
            "resource": "widgets",
            "responseKind": {"group": "toys.example.com", "version": "v1", "kind": "Widget"},
            "scope": "Namespaced",
            "singularResource": "widget",
            "verbs": ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"],
            "shortNames": ["wd"],
            "categories": ["toys"],
            "subresources": [
                {
                    "subresource": "status",
                    "responseKind": {"group": "toys.example.com", "version": "v1", "kind": "Widget"},
                    "verbs": ["get", "patch", "update"],
                },
                {
                    "subresource": "scale",
                    "responseKind": {"group": "autoscaling", "version": "v1", "kind": "Scale"},
                    "verbs": ["get", "patch", "update"],
                },
            ],
        }
    ] == document


def test_the_preferred_version_comes_first() -> None:
    document = discovery.group(catalogue(widgets("v1beta1", preferred=False), widgets("v1")), "toys.example.com")

    assert document is not None
    assert "v1" == document["preferredVersion"]["version"]
    assert ["v1", "v1beta1"] == [version["version"] for version in document["versions"]]


def test_what_is_not_served_is_not_told() -> None:
    served = catalogue()

    assert discovery.group(served, "toys.example.com") is None
    assert discovery.resource_list(served, "apps", "v9") is None
    assert OpenApi(served).document("apis/toys.example.com/v1") is None


def test_a_new_kind_is_in_openapi_at_once_and_the_hash_tells_who_has_read_it() -> None:
    served = catalogue()
    openapi = OpenApi(served)
    before = openapi.index()["paths"]
    served.replace("toys.example.com", "widgets", (widgets(),))
    after = openapi.index()["paths"]

    assert {"apis/toys.example.com/v1"} == set(after) - set(before)
    assert before["apis/apps/v1"] == after["apis/apps/v1"]


def written(served: Catalogue, path: str) -> dict[str, Any]:
    text = OpenApi(served).document(path)
    assert text is not None
    document: dict[str, Any] = orjson.loads(text)
    return document


def test_the_schema_of_a_custom_kind_is_its_own_with_the_head_of_every_object() -> None:
    schema = written(catalogue(widgets()), "apis/toys.example.com/v1")["components"]["schemas"]["com.example.toys.v1.Widget"]

    assert "A toy." == schema["description"]
    assert {"apiVersion", "kind", "metadata", "spec"} == set(schema["properties"])
    assert {"type": "integer", "default": 1} == schema["properties"]["spec"]["properties"]["replicas"]
    assert [{"group": "toys.example.com", "version": "v1", "kind": "Widget"}] == schema["x-kubernetes-group-version-kind"]


def references(document: Any) -> Iterator[str]:
    if isinstance(document, dict):
        if isinstance(document.get("$ref"), str):
            yield document["$ref"].rpartition("/")[2]
        for value in document.values():
            yield from references(value)
    elif isinstance(document, list):
        for value in document:
            yield from references(value)


PATHS = sorted(OpenApi(catalogue(widgets())).index()["paths"])


@pytest.mark.parametrize("path", PATHS)
def test_every_type_that_is_pointed_at_is_there(path: str) -> None:
    document = written(catalogue(widgets()), path)

    assert set(references(document)) <= set(document["components"]["schemas"])


@pytest.mark.parametrize("path", PATHS)
def test_every_patch_takes_field_validation_without_which_kubectl_refuses_to_apply(path: str) -> None:
    patches = [operations["patch"] for operations in written(catalogue(widgets()), path)["paths"].values() if "patch" in operations]

    assert patches
    assert all("fieldValidation" in {parameter["name"] for parameter in patch["parameters"]} for patch in patches)


def test_lists_say_how_they_merge() -> None:
    schemas = written(catalogue(), "api/v1")["components"]["schemas"]

    containers = schemas["io.k8s.PodSpec"]["properties"]["containers"]

    assert ("map", ["name"]) == (containers["x-kubernetes-list-type"], containers["x-kubernetes-list-map-keys"])
