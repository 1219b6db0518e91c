"""Rules for metadata, in the words of an API server."""

from typing import Any

import pytest

from tests.resources.admission.requests import GONE, created, issues_of, put, small

A = "spec.template.cliques[0]"
T = "spec.template"
SUBDOMAIN = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an "
    "alphanumeric character (e.g. 'example.com', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
LABEL = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric "
    "character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)
QUALIFIED = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. "
    "'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
VALUE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "
    "alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
    "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)

METADATA = [
    pytest.param({"metadata.name": GONE}, ["metadata.name: Required value: name or generateName is required"], id="it has a name"),
    pytest.param({"metadata.name": "Web"}, [f'metadata.name: Invalid value: "Web": {SUBDOMAIN}'], id="its name is a DNS subdomain"),
    pytest.param(
        {"metadata.name": "", "metadata.generateName": "_x-"},
        [f'metadata.generateName: Invalid value: "_x-": {SUBDOMAIN}'],
        id="so is a name that is to be completed",
    ),
    pytest.param({"metadata.namespace": "M.L"}, [f'metadata.namespace: Invalid value: "M.L": {LABEL}'], id="its namespace is a DNS label"),
    pytest.param(
        {"metadata.labels": {"-a": "b"}}, [f'metadata.labels: Invalid value: "-a": {QUALIFIED}'], id="keys of labels are qualified"
    ),
    pytest.param(
        {"metadata.labels": {"a": "-b"}}, [f'metadata.labels.a: Invalid value: "-b": {VALUE}'], id="values of labels are short words"
    ),
    pytest.param(
        {"metadata.annotations": {"a b": ""}}, [f'metadata.annotations: Invalid value: "a b": {QUALIFIED}'], id="so are keys of annotations"
    ),
    pytest.param(
        {"metadata.annotations": {"a": "x" * 262_144}},
        ["metadata.annotations: Too long: may not be more than 262144 bytes"],
        id="annotations weigh at most 256 KiB",
    ),
    pytest.param(
        {"metadata.finalizers": ["-"]}, [f'metadata.finalizers[0]: Invalid value: "-": {QUALIFIED}'], id="finalizers have qualified names"
    ),
    pytest.param(
        {"metadata.creationTimestamp": "yesterday"},
        ['metadata.creationTimestamp: Invalid value: "yesterday": must be a time'],
        id="moments are moments",
    ),
    pytest.param(
        {"spec.replicas": -1},
        ["spec.replicas: Invalid value: -1: must be greater than or equal to 0"],
        id="there are at least zero replicas",
    ),
]

CLIQUES = [
    pytest.param(
        {f"{T}.cliques.0.labels": {"grove.io/": "x"}},
        [f'{A}.labels: Invalid value: "grove.io/": name part must be non-empty', f'{A}.labels: Invalid value: "grove.io/": {QUALIFIED}'],
        id="keys of a clique's labels are qualified",
    ),
    pytest.param(
        {f"{T}.cliques.0.labels": {"example.com/x": "y" * 64}},
        [f'{A}.labels[example.com/x]: Invalid value: "{"y" * 64}": must be no more than 63 characters'],
        id="values of a clique's labels are short",
    ),
    pytest.param(
        {f"{T}.cliques.0.annotations": {"/x": ""}},
        [f'{A}.annotations: Invalid value: "/x": prefix part must be non-empty'],
        id="keys of a clique's annotations are qualified",
    ),
]


@pytest.mark.parametrize(("changes", "issues"), [*METADATA, *CLIQUES])
def test_metadata(changes: dict[str, Any], issues: list[str]) -> None:
    assert issues_of(created(put(small(), changes))) == issues
