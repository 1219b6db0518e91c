"""Rules for claim templates and resource sharing."""

from typing import Any

import pytest

from tests.resources.admission.requests import clique, created, issues_of, put, small

T = "spec.template"
A = f"{T}.cliques[0]"
ONE_GROUP: dict[str, Any] = {f"{T}.cliques.+": clique("b"), f"{T}.podCliqueScalingGroups": [{"name": "g", "cliqueNames": ["a"]}]}
OWN = {"name": "own", "templateSpec": {"spec": {"devices": {"requests": [{"name": "gpu"}]}}}}


def shares(*entries: dict[str, Any]) -> list[dict[str, Any]]:
    """Entries of `resourceSharing` for all replicas."""
    return [{"scope": "AllReplicas", **entry} for entry in entries]


SHARING = [
    pytest.param(
        {f"{T}.resourceClaimTemplates": [{**OWN, "name": ""}]},
        [f"{T}.resourceClaimTemplates[0].name: Required value: template name is required"],
        id="a claim template has a name",
    ),
    pytest.param(
        {f"{T}.resourceClaimTemplates": [{"name": "own", "templateSpec": {"spec": {"devices": {"requests": []}}}}]},
        [f"{T}.resourceClaimTemplates[0].templateSpec.spec.devices.requests: Required value: at least one device request is required"],
        id="a claim template asks for a device",
    ),
    pytest.param(
        {f"{T}.resourceClaimTemplates": [OWN, OWN, OWN]},
        [f'{T}.resourceClaimTemplates[{again}].name: Duplicate value: "own"' for again in (1, 2)],
        id="no two claim templates have one name",
    ),
    pytest.param(
        {f"{T}.resourceSharing": shares({"name": ""})},
        [f"{T}.resourceSharing[0].name: Required value: reference name is required"],
        id="what is shared has a name",
    ),
    pytest.param(
        {f"{T}.cliques.0.resourceSharing": shares({"name": "x"}, {"name": "x"})},
        [f'{A}.resourceSharing[1].name: Duplicate value: "x"'],
        id="nothing is shared twice at one level",
    ),
    pytest.param(
        {f"{T}.resourceClaimTemplates": [OWN], f"{T}.resourceSharing": shares({"name": "own", "namespace": "ml"})},
        [
            f'{T}.resourceSharing[0].namespace: Invalid value: "ml": '
            "namespace must be empty when name matches an internal resourceClaimTemplate"
        ],
        id="a template of the set is in no namespace",
    ),
    pytest.param(
        {f"{T}.resourceSharing": [{"name": "x", "scope": "Some"}]},
        [f'{T}.resourceSharing[0].scope: Unsupported value: "Some": supported values: "AllReplicas", "PerReplica"'],
        id="a scope is one of two",
    ),
    pytest.param(
        {f"{T}.resourceSharing": shares({"name": "x", "filter": {"childCliqueNames": []}})},
        [
            f"{T}.resourceSharing[0].filter: Required value: "
            "filter must specify at least one childCliqueNames or childScalingGroupNames entry"
        ],
        id="a filter of the set names somebody",
    ),
    pytest.param(
        {f"{T}.resourceSharing": shares({"name": "x", "filter": {"childCliqueNames": ["a", "no"], "childScalingGroupNames": ["a"]}})},
        [
            f'{T}.resourceSharing[0].filter.childCliqueNames[1]: Not found: "no": no clique here has this name; there is a',
            f'{T}.resourceSharing[0].filter.childScalingGroupNames[0]: Not found: "a": no scaling group has this name; there are none',
        ],
        id="a filter of the set names nobody who is not there",
    ),
    pytest.param(
        {**ONE_GROUP, f"{T}.podCliqueScalingGroups.0.resourceSharing": shares({"name": "x", "filter": {}})},
        [
            f"{T}.podCliqueScalingGroups[0].resourceSharing[0].filter: Required value: "
            "filter must specify at least one childCliqueNames entry"
        ],
        id="a filter of a group names somebody",
    ),
    pytest.param(
        {**ONE_GROUP, f"{T}.podCliqueScalingGroups.0.resourceSharing": shares({"name": "x", "filter": {"childCliqueNames": ["b"]}})},
        [
            f'{T}.podCliqueScalingGroups[0].resourceSharing[0].filter.childCliqueNames[0]: Not found: "b": '
            "no clique here has this name; there is a"
        ],
        id="a filter of a group names its own cliques",
    ),
]


@pytest.mark.parametrize(("changes", "issues"), SHARING)
def test_sharing(changes: dict[str, Any], issues: list[str]) -> None:
    assert issues_of(created(put(small(), changes))) == issues
