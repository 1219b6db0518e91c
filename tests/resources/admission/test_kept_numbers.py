"""Numbers of a template count for objects that are created later: an edit is told with what scales the objects that exist."""

from typing import Any

import pytest

from resources.schema.issues import Located
from tests.resources.admission.requests import GONE, RACKS, TOPOLOGY, Body, clique, created, put, small, updated, whole

T = "spec.template"
GROUPED = {f"{T}.podCliqueScalingGroups": [{"name": "m", "cliqueNames": ["b"], "replicas": 2}], f"{T}.cliques.+": clique("b")}
BASE = put(small(), GROUPED)


def number_warnings(old: Body, new: Body) -> list[tuple[str, str]]:
    """The place and the advice of each warning about a number."""
    warnings = [warning for warning in updated(old, new, TOPOLOGY, RACKS).warnings if "keep their number" in warning]
    assert all(isinstance(warning, Located) and warning.path[-1] == "replicas" for warning in warnings)
    return [(warning.partition(": ")[0], warning.rpartition("scale them by ")[2]) for warning in warnings]


@pytest.mark.parametrize(
    ("edit", "expected"),
    [
        ({f"{T}.cliques.0.spec.replicas": 5}, [(f"{T}.cliques[0].spec.replicas", "`kubectl scale pclq/web-0-a --replicas=5`")]),
        (
            {f"{T}.podCliqueScalingGroups.0.replicas": 3},
            [(f"{T}.podCliqueScalingGroups[0].replicas", "`kubectl scale pcsg/web-0-m --replicas=3`")],
        ),
        (
            {f"{T}.cliques.1.spec.replicas": 1},
            [(f"{T}.cliques[1].spec.replicas", "`kubectl scale pclq/web-0-m-0-b --replicas=1`, and so in each other replica")],
        ),
        (
            {f"{T}.cliques.0.spec.replicas": 1, "spec.replicas": 2},
            [(f"{T}.cliques[0].spec.replicas", "`kubectl scale pclq/web-0-a --replicas=1`, and so in each other replica")],
        ),
        ({"spec.replicas": 3}, []),
        ({f"{T}.cliques.0.spec.podSpec.containers.0.image": "example/worker:2"}, []),
    ],
)
def test_an_edit_of_a_number_in_a_template_is_told_with_what_scales_the_objects(edit: Body, expected: list[tuple[str, str]]) -> None:
    assert number_warnings(BASE, put(BASE, edit)) == expected


@pytest.mark.parametrize(
    "before",
    [
        {"spec.replicas": 0},
        {"metadata.ownerReferences": [{"apiVersion": "nvidia.com/v1alpha1", "kind": "DynamoGraphDeployment", "name": "web", "uid": "u"}]},
        {f"{T}.cliques.0.spec.autoScalingConfig": {"maxReplicas": 5}},
    ],
    ids=["no replicas", "the set of a graph", "scaled by an autoscaler"],
)
def test_nothing_is_told_where_the_number_has_no_objects_or_another_owner(before: dict[str, Any]) -> None:
    old = put(BASE, before)

    assert number_warnings(old, put(old, {f"{T}.cliques.0.spec.replicas": 5})) == []


def test_a_new_set_has_nothing_that_keeps_a_number() -> None:
    body = put(whole(), {f"{T}.cliques.0.spec.autoScalingConfig": GONE})

    assert not any("keep their number" in warning for warning in created(body, TOPOLOGY, RACKS).warnings)
