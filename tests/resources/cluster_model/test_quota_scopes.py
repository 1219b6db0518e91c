"""Quota scopes: which pods a ResourceQuota counts."""

from typing import Any

import pytest

from resources.cluster_model.quota_scopes import QuotaScope, is_in_scopes, scopes_of

PRIORITY = "PriorityClass"


def selected(name: str, operator: str, *values: str) -> dict[str, Any]:
    return {"scopeSelector": {"matchExpressions": [{"scopeName": name, "operator": operator, "values": list(values)}]}}


@pytest.mark.parametrize(
    "quota, pod, expected",
    [
        ({}, {}, True),
        ({"scopes": ["Terminating"]}, {"activeDeadlineSeconds": 60}, True),
        ({"scopes": ["Terminating"]}, {}, False),
        ({"scopes": ["NotTerminating"]}, {}, True),
        ({"scopes": ["BestEffort"]}, {"containers": [{"resources": {"limits": {"nvidia.com/gpu": "8"}}}]}, True),
        ({"scopes": ["BestEffort"]}, {"containers": [{"resources": {"limits": {"cpu": "1"}}}]}, False),
        ({"scopes": ["NotBestEffort", "NotTerminating"]}, {"initContainers": [{"resources": {"requests": {"memory": "1Gi"}}}]}, True),
        ({"scopes": ["NotBestEffort"]}, {"containers": [{"resources": {"requests": {"cpu": "0"}}}]}, False),
        ({"scopes": ["BestEffort"]}, {"resources": {"requests": {"cpu": "1"}}, "containers": [{}]}, False),
        ({"scopes": ["NotBestEffort"]}, {"resources": {"requests": {"cpu": "1"}}, "containers": [{}]}, True),
        ({"scopes": [PRIORITY]}, {"priorityClassName": "high"}, True),
        (selected(PRIORITY, "Exists"), {}, False),
        (selected(PRIORITY, "In", "high", "low"), {"priorityClassName": "high"}, True),
        (selected(PRIORITY, "In", "low"), {"priorityClassName": "high"}, False),
        (selected(PRIORITY, "In", "low"), {}, False),
        (selected(PRIORITY, "NotIn", "low"), {}, True),
        (selected(PRIORITY, "DoesNotExist"), {}, True),
        (selected(PRIORITY, "DoesNotExist"), {"priorityClassName": "high"}, False),
    ],
)
def test_a_pod_is_counted_where_it_is_in_all_scopes(quota: dict[str, Any], pod: dict[str, Any], expected: bool) -> None:
    scopes = scopes_of(quota)
    assert scopes is not None

    assert is_in_scopes(pod, scopes) is expected


def test_of_a_scope_that_is_not_known_it_is_not_known_what_it_counts() -> None:
    assert scopes_of({"scopes": ["Terminating", "New"]}) is None
    assert scopes_of(selected("New", "In", "a")) is None
    assert scopes_of({"scopes": ["Terminating"]}) == (QuotaScope("Terminating", "Exists"),)
