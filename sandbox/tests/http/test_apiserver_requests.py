"""What a client sends is read as a real API server reads it, refusals word for word."""

import base64
from typing import Any

import pytest

from grove_sandbox.api import options
from grove_sandbox.api.request import Deletion, Selection
from grove_sandbox.http import bodies, protobuf
from grove_sandbox.http.negotiation import Form, negotiate, wants_aggregated
from grove_sandbox.http.routes import Route, route
from grove_sandbox.types.status import StatusError


def refused(error: pytest.ExceptionInfo[StatusError]) -> tuple[int, str, str]:
    return error.value.code, error.value.reason, error.value.message


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("/api/v1/pods", Route("", "v1", "pods")),
        ("/api/v1/namespaces", Route("", "v1", "namespaces")),
        ("/api/v1/namespaces/a", Route("", "v1", "namespaces", "", "a")),
        ("/api/v1/namespaces/a/status", Route("", "v1", "namespaces", "", "a", "status")),
        ("/api/v1/namespaces/a/finalize", Route("", "v1", "namespaces", "", "a", "finalize")),
        ("/api/v1/namespaces/a/pods", Route("", "v1", "pods", "a")),
        ("/api/v1/namespaces/a/pods/b/status", Route("", "v1", "pods", "a", "b", "status")),
        ("/apis/apps/v1/namespaces/a/deployments/b/scale", Route("apps", "v1", "deployments", "a", "b", "scale")),
        ("/apis/grove.io/v1alpha1/podcliquesets", Route("grove.io", "v1alpha1", "podcliquesets")),
        ("/apis/apps/v1", None),
        ("/api/v1/namespaces/a/pods/b/status/c", None),
        ("/api/v1/namespaces//pods", None),
        ("/metrics", None),
    ],
)
def test_a_path_names_a_resource(path: str, found: Route | None) -> None:
    assert found == route(path)


@pytest.mark.parametrize(
    ("accept", "form"),
    [
        ("", Form()),
        ("*/*", Form()),
        ("application/json", Form()),
        ("application/yaml", Form(yaml=True)),
        ("application/vnd.kubernetes.protobuf,application/json", Form()),
        ("application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json", Form("Table")),
        ("application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json", Form()),
        ("application/json; as=PartialObjectMetadata; g=meta.k8s.io; v=v1", Form("PartialObjectMetadata")),
        ("application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1", Form("PartialObjectMetadataList")),
    ],
)
def test_the_first_form_that_we_can_give_is_given(accept: str, form: Form) -> None:
    assert form == negotiate(accept)


@pytest.mark.parametrize("accept", ["text/html", "application/vnd.kubernetes.protobuf", "application/json;as=Other;g=meta.k8s.io;v=v1"])
def test_a_form_that_we_cannot_give_is_not_acceptable(accept: str) -> None:
    with pytest.raises(StatusError) as error:
        negotiate(accept)

    assert (406, "NotAcceptable") == refused(error)[:2]


V2, V2BETA1 = (f"application/json;g=apidiscovery.k8s.io;v={version};as=APIGroupDiscoveryList" for version in ("v2", "v2beta1"))


@pytest.mark.parametrize(
    ("accept", "wanted"),
    [
        (f"{V2},{V2BETA1},application/json", True),
        ("application/json; as=APIGroupDiscoveryList; v=v2; g=apidiscovery.k8s.io", True),
        (f"{V2BETA1},application/json", False),
        (f"application/json,{V2}", False),
        ("", False),
    ],
)
def test_discovery_is_aggregated_for_those_who_prefer_it(accept: str, wanted: bool) -> None:
    assert wanted is wants_aggregated(accept)


@pytest.mark.parametrize(
    ("content_type", "text"),
    [
        ("application/json", '{"metadata": {"name": "a"}}'),
        ("application/json; charset=utf-8", '{"metadata": {"name": "a"}}'),
        ("", '{"metadata": {"name": "a"}}'),
        ("application/yaml", "metadata:\n  name: a\n"),
        ("application/yaml", '{"metadata": {"name": "a"}}'),
    ],
)
def test_bodies_are_json_or_yaml(content_type: str, text: str) -> None:
    assert {"metadata": {"name": "a"}} == bodies.read_object(content_type, text.encode(), "ConfigMap")


def test_a_time_in_yaml_stays_the_text_that_was_written() -> None:
    assert {"when": "2026-11-21T12:00:00Z"} == bodies.read_object("application/yaml", b"when: 2026-11-21T12:00:00Z", "Lease")


@pytest.mark.parametrize(
    ("content_type", "data", "code", "message"),
    [
        ("text/plain", b"x", 415, "the body of the request was in an unknown format - accepted media types include: application/json"),
        (
            "application/json",
            b"{x",
            400,
            "the object provided is unrecognized (must be of type ConfigMap): couldn't get version/kind; json parse",
        ),
        ("application/json", b"", 400, "unexpected end of JSON input (<empty>)"),
        ("application/json", b"[]", 400, "must be of type ConfigMap"),
        ("application/yaml", b"a: b\n  c: d", 400, "yaml: line 2: mapping values are not allowed here (613a20620a2020633a2064)"),
        ("application/yaml", b"a: &x [1]\nb: *x", 400, "yaml: aliases are not accepted here"),
        ("application/yaml", b"a: !!python/object:os.system {}", 400, "could not determine a constructor"),
        ("application/yaml", b"? [a]\n: b", 400, "unhashable"),
    ],
)
def test_what_cannot_be_read_is_refused_with_the_reason(content_type: str, data: bytes, code: int, message: str) -> None:
    with pytest.raises(StatusError) as error:
        bodies.read_object(content_type, data, "ConfigMap")

    assert code == error.value.code
    assert message in error.value.message


@pytest.mark.parametrize(
    ("content_type", "how"),
    [
        ("application/json-patch+json", "json"),
        ("application/merge-patch+json", "merge"),
        ("application/strategic-merge-patch+json", "strategic"),
        ("application/apply-patch+yaml", "apply"),
    ],
)
def test_the_content_type_says_what_sort_of_patch_it_is(content_type: str, how: str) -> None:
    assert (how, {"a": 1}) == bodies.read_patch(content_type, b'{"a": 1}')


def test_other_sorts_of_patches_are_unsupported() -> None:
    with pytest.raises(StatusError) as error:
        bodies.read_patch("application/json", b"{}")

    assert (415, "UnsupportedMediaType", "415: Unsupported Media Type") == refused(error)


def test_a_selection_is_read_from_the_query() -> None:
    query = options.parse(
        b"labelSelector=a%3Db&fieldSelector=x%3Dy&limit=5&continue=t&resourceVersion=7&resourceVersionMatch=Exact&timeoutSeconds=9"
    )

    assert Selection("a=b", "x=y", 5, "t", "7", "Exact", 9.0) == options.selection(query)


@pytest.mark.parametrize(
    ("query", "message"),
    [
        (b"limit=abc", 'strconv.ParseInt: parsing "abc": invalid syntax'),
        (b"sendInitialEvents=maybe", 'strconv.ParseBool: parsing "maybe": invalid syntax'),
    ],
)
def test_a_number_that_is_none_is_a_bad_request(query: bytes, message: str) -> None:
    with pytest.raises(StatusError) as error:
        options.selection(options.parse(query))

    assert (400, "BadRequest", message) == refused(error)


def test_a_dry_run_is_of_all_stages_or_of_none() -> None:
    with pytest.raises(StatusError) as error:
        options.dry_run(["Foo"], "CreateOptions")

    message = 'CreateOptions.meta.k8s.io "" is invalid: dryRun: Unsupported value: ["Foo"]: supported values: "All"'
    assert (422, "Invalid", message) == refused(error)
    assert options.dry_run(["All"], "CreateOptions")
    assert not options.dry_run([], "CreateOptions")


def test_there_are_three_ways_to_take_unknown_fields() -> None:
    with pytest.raises(StatusError) as error:
        options.validation(options.parse(b"fieldValidation=Bar"), "CreateOptions")

    supported = 'Unsupported value: "Bar": supported values: "", "Ignore", "Strict", "Warn"'
    assert (422, "Invalid", f'CreateOptions.meta.k8s.io "" is invalid: fieldValidation: {supported}') == refused(error)
    assert "Strict" == options.validation(options.parse(b"fieldValidation=Strict"), "CreateOptions")
    assert "Warn" == options.validation(options.parse(b""), "CreateOptions")


@pytest.mark.parametrize(
    ("query", "body", "deletion"),
    [
        (b"", {}, Deletion()),
        (b"gracePeriodSeconds=0&propagationPolicy=Orphan", {}, Deletion(grace=0, propagation="Orphan")),
        (b"propagationPolicy=Orphan", {"propagationPolicy": "Foreground"}, Deletion(propagation="Foreground")),
        (b"", {"orphanDependents": False}, Deletion(propagation="Background")),
        (b"", {"preconditions": {"uid": "u", "resourceVersion": "3"}}, Deletion(uid="u", revision="3")),
    ],
)
def test_a_deletion_is_told_by_its_body_and_otherwise_by_the_query(query: bytes, body: dict[str, Any], deletion: Deletion) -> None:
    assert deletion == options.deletion(options.parse(query), body)


@pytest.mark.parametrize(
    ("body", "code", "message"),
    [
        (
            {"propagationPolicy": "Foo"},
            422,
            'DeleteOptions.meta.k8s.io "" is invalid: propagationPolicy: Unsupported value: "Foo": '
            'supported values: "Foreground", "Background", "Orphan", "nil"',
        ),
        (
            {"gracePeriodSeconds": "x"},
            400,
            "json: cannot unmarshal string into Go struct field DeleteOptions.gracePeriodSeconds of type int64",
        ),
    ],
)
def test_a_deletion_that_makes_no_sense_is_refused(body: dict[str, Any], code: int, message: str) -> None:
    with pytest.raises(StatusError) as error:
        options.check_deletion(body)
        options.deletion({}, body)

    assert (code, message) == (error.value.code, error.value.message)


def field(number: int, value: bytes | int) -> bytes:
    if isinstance(value, int):
        return bytes([number << 3, value])
    return bytes([number << 3 | 2, len(value)]) + value


def enveloped(api_version: str, kind: str, raw: bytes) -> bytes:
    about = field(1, api_version.encode()) + field(2, kind.encode())
    return b"k8s\x00" + field(1, about) + field(2, raw) + field(3, b"") + field(4, b"")


def test_the_bodies_that_kubectl_sends_in_protobuf_alone_are_read() -> None:
    metadata = field(1, b"a") + field(2, b"") + field(8, b"") + field(11, field(1, b"k") + field(2, b"v"))
    secret = field(1, metadata) + field(2, field(1, b"p") + field(2, b"\x00\xff")) + field(3, b"Opaque") + field(5, 1)

    assert {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "a", "labels": {"k": "v"}},
        "data": {"p": base64.b64encode(b"\x00\xff").decode()},
        "type": "Opaque",
        "immutable": True,
    } == bodies.read_object(protobuf.MEDIA_TYPE, enveloped("v1", "Secret", secret), "Secret")


def test_a_list_in_protobuf_keeps_its_order() -> None:
    spec = field(1, b"second") + field(1, b"first")

    found = protobuf.decode(enveloped("v1", "Namespace", field(2, spec)))

    assert ["second", "first"] == found["spec"]["finalizers"]


@pytest.mark.parametrize(
    ("data", "code", "message"),
    [
        (b"nothing", 400, "magic bytes"),
        (b"k8s\x00\x0a\x7f", 400, "broken"),
        (
            enveloped("apps/v1", "Deployment", b""),
            415,
            "protobuf is not read for Deployment (apps/v1): write it with --dry-run=client -o yaml",
        ),
        (enveloped("v1", "ConfigMap", field(9, b"new")), 415, "field 9 of ConfigMap"),
    ],
)
def test_protobuf_that_we_do_not_read_is_refused_and_never_half_read(data: bytes, code: int, message: str) -> None:
    with pytest.raises(StatusError) as error:
        protobuf.decode(data)

    assert code == error.value.code
    assert message in error.value.message
