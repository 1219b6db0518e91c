"""What a server would put into a pod by itself says nothing; everything else does."""

from typing import Any

import pytest

from resources.schema.published import POD_SPEC, definitions, pod_defaults, pull_policy, without_defaults

SPELLED: dict[str, Any] = {
    "restartPolicy": "Always",
    "dnsPolicy": "ClusterFirst",
    "serviceAccountName": "",
    "hostNetwork": False,
    "terminationGracePeriodSeconds": 30,
    "securityContext": {"sysctls": []},
    "nodeSelector": {"zone": ""},
    "volumes": [{"name": "v", "configMap": {"name": "c", "defaultMode": 420, "items": []}}, {"name": "e", "emptyDir": {"medium": ""}}],
    "containers": [
        {
            "name": "main",
            "image": "model:1",
            "imagePullPolicy": "IfNotPresent",
            "terminationMessagePath": "/dev/termination-log",
            "resources": {"limits": {}},
            "env": [{"name": "A", "value": ""}],
            "livenessProbe": {"httpGet": {"port": 80, "path": "/", "scheme": "HTTP"}, "periodSeconds": 10, "initialDelaySeconds": 0},
        }
    ],
}


def test_what_a_server_puts_there_by_itself_says_nothing() -> None:
    assert without_defaults(SPELLED) == {
        "nodeSelector": {"zone": ""},
        "volumes": [{"name": "v", "configMap": {"name": "c"}}, {"name": "e"}],
        "containers": [{"name": "main", "image": "model:1", "env": [{"name": "A"}], "livenessProbe": {"httpGet": {"port": 80}}}],
    }


@pytest.mark.parametrize(
    ("image", "policy"),
    [
        ("model", "Always"),
        ("model:latest", "Always"),
        ("registry:5000/model", "Always"),
        ("registry:5000/model:1", "IfNotPresent"),
        ("model@sha256:0", "IfNotPresent"),
        ("model:latest@sha256:0", "Always"),
        ("", ""),
        (7, ""),
    ],
)
def test_the_pull_policy_follows_the_tag(image: object, policy: str) -> None:
    assert pull_policy(image) == policy


@pytest.mark.parametrize(
    "value",
    [
        {"hostUsers": False},
        {"automountServiceAccountToken": False},
        {"affinity": {}},
        {"terminationGracePeriodSeconds": 31},
        {"terminationGracePeriodSeconds": 0},
        {"securityContext": {"runAsUser": 0}},
        {"shareProcessNamespace": False},
        {"enableServiceLinks": False},
        {"imgaePullSecrets": []},
        {"containers": "none"},
    ],
)
def test_zero_values_of_fields_where_absent_means_something_else_are_kept(value: dict[str, Any]) -> None:
    assert without_defaults(value) == value


def test_every_recorded_field_is_one_of_the_recorded_types() -> None:
    recorded = pod_defaults()

    named = {(type_, field) for fields in (recorded.defaults, recorded.zero) for type_, names in fields.items() for field in names}

    assert {(type_, field) for type_, field in named if field not in definitions()[type_]["properties"]} == set()
    assert "containers" not in recorded.zero[POD_SPEC]
