"""Values of a manifest that are not used are told at their place: variables that the engine sets, and a clique without pods."""

from typing import Any

import pytest

from tests.resources.admission.requests import Body, clique, created, issues_of, put, small

T = "spec.template"
POD = f"{T}.cliques.0.spec.podSpec"
GROUPED = {f"{T}.podCliqueScalingGroups": [{"name": "m", "cliqueNames": ["a"], "replicas": 1}]}


def warnings_of(body: Body, text: str) -> list[str]:
    """The places of the warnings with this text."""
    decision = created(body)
    assert issues_of(decision) == []
    return [warning.partition(": ")[0] for warning in decision.warnings if text in warning]


@pytest.mark.parametrize(
    ("changes", "places"),
    [
        ({}, []),
        ({f"{POD}.containers.0.env": [{"name": "MODEL", "value": "x"}]}, []),
        ({f"{POD}.containers.0.env": [{"name": "A"}, {"name": "GROVE_PCS_NAME", "value": "x"}]}, ["containers[0].env[1].name"]),
        ({f"{POD}.containers.0.env": [{"name": "GROVE_PCSG_POD_INDEX", "value": "7"}]}, []),
        ({f"{POD}.containers.0.env": [{"name": "GROVE_PCSG_POD_INDEX", "value": "7"}], **GROUPED}, ["containers[0].env[0].name"]),
        (
            {f"{POD}.initContainers": [{"name": "i", "image": "i:1", "env": [{"name": "GROVE_PCS_INDEX", "value": "7"}]}]},
            ["initContainers[0].env[0].name"],
        ),
    ],
)
def test_a_variable_that_the_engine_sets_itself_is_told(changes: dict[str, Any], places: list[str]) -> None:
    prefix = f"{T}.cliques[0].spec.podSpec"

    assert warnings_of(put(small(), changes), "the engine sets it") == [f"{prefix}.{place}" for place in places]


def test_a_clique_with_0_pods_is_told_that_it_gets_one() -> None:
    two = put(small(), {f"{T}.cliques.+": clique("b")})

    assert warnings_of(two, "0 counts as 1") == []
    for zero in (0, 0.0):
        changed = put(two, {f"{T}.cliques.1.spec.replicas": zero})
        assert warnings_of(changed, "0 counts as 1") == [f"{T}.cliques[1].spec.replicas"]
