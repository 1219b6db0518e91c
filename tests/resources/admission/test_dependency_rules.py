"""Rules for startsAfter."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resources.admission.dependency_rules import circles
from tests.resources.admission.requests import clique, created, issues_of, put, small

T = "spec.template"
CIRCLE = "clique must not have circular dependencies"
TWO: dict[str, Any] = {f"{T}.cliques.+": clique("b")}
EXPLICIT: dict[str, Any] = {f"{T}.cliqueStartupType": "CliqueStartupTypeExplicit", **TWO}

ORDER = [
    pytest.param(
        {f"{T}.cliqueStartupType": "InOrder"},
        [
            f'{T}.cliqueStartupType: Unsupported value: "InOrder": supported values: '
            '"CliqueStartupTypeAnyOrder", "CliqueStartupTypeInOrder", "CliqueStartupTypeExplicit"'
        ],
        id="an order is one of three",
    ),
    pytest.param(
        {**EXPLICIT, f"{T}.cliques.1.spec.startsAfter": ["a", ""]},
        [f"{T}.cliques[1].spec.startsAfter[1]: Required value: clique dependency must not be empty"],
        id="a clique starts after somebody",
    ),
    pytest.param(
        {**EXPLICIT, f"{T}.cliques.1.spec.startsAfter": ["b"]},
        [f'{T}.cliques[1].spec.startsAfter[0]: Invalid value: "b": clique dependency cannot refer to itself'],
        id="a clique does not start after itself",
    ),
    pytest.param(
        {**EXPLICIT, f"{T}.cliques.1.spec.startsAfter": ["a", "a"]},
        [f'{T}.cliques[1].spec.startsAfter[1]: Duplicate value: "a"'],
        id="a clique starts once after another",
    ),
    pytest.param(
        {**EXPLICIT, f"{T}.cliques.1.spec.startsAfter": ["x", "a", "y"]},
        [
            f'{T}.cliques[1].spec.startsAfter: Invalid value: "x,y": '
            "unknown clique names found, all clique dependencies must be defined as cliques; there is a"
        ],
        id="a clique starts after those that are there",
    ),
    pytest.param(
        {f"{T}.cliqueStartupType": "CliqueStartupTypeExplicit", f"{T}.cliques.0.spec.startsAfter": ["x"]},
        [
            f'{T}.cliques[0].spec.startsAfter: Invalid value: "x": '
            "unknown clique names found, all clique dependencies must be defined as cliques; there is no clique besides a"
        ],
        id="the only clique starts after none",
    ),
    pytest.param(
        {**EXPLICIT, f"{T}.cliques.0.spec.startsAfter": ["b"], f"{T}.cliques.1.spec.startsAfter": ["a"]},
        [f'{T}.cliques: Invalid value: "a, b": {CIRCLE}'],
        id="cliques do not wait for one another",
    ),
    pytest.param({**TWO, f"{T}.cliques.1.spec.startsAfter": ["b", "nobody"]}, [], id="an order counts only where it is asked for"),
]


@pytest.mark.parametrize(("changes", "issues"), ORDER)
def test_the_start_order(changes: dict[str, Any], issues: list[str]) -> None:
    assert issues_of(created(put(small(), changes))) == issues


def test_thousands_of_dependencies_are_checked_quickly() -> None:
    names = [f"c{number}" for number in range(5_000)]
    ring = [clique(name, spec={"startsAfter": [names[number - 1]]}) for number, name in enumerate(names)]

    (issue,) = created(small(cliques=ring, cliqueStartupType="CliqueStartupTypeExplicit")).issues

    assert issue.message == CIRCLE
    assert str(issue.value).startswith("c0, c1, c2, ") and str(issue.value).endswith(", c4999")


ARROWS = st.integers(1, 9).flatmap(lambda size: st.lists(st.sets(st.integers(0, size - 1)), min_size=size, max_size=size))


@given(ARROWS)
def test_circles_are_the_strongly_connected_components(leads: list[set[int]]) -> None:
    names = [f"c{number}" for number in range(len(leads))]
    reach = [{number} | others for number, others in enumerate(leads)]
    for _ in names:
        reach = [set().union(*(reach[other] for other in reached)) for reached in reach]
    together = {tuple(names[other] for other in sorted(reach[number]) if number in reach[other]) for number in range(len(names))}

    found = circles({name: [names[other] for other in others] for name, others in zip(names, leads, strict=True)})

    assert found == sorted(circle for circle in together if len(circle) > 1)


@pytest.mark.parametrize("order", ["CliqueStartupTypeAnyOrder", "CliqueStartupTypeInOrder"])
@pytest.mark.parametrize(
    ("after", "subject"),
    [
        (["aa", "x"], ': no clique is called "aa, x"; there is a; startsAfter'),
        (["a"], ""),
        ([], None),
    ],
)
def test_an_order_that_nothing_asks_for_is_warned_about(order: str, after: list[str], subject: str | None) -> None:
    decision = created(put(small(), {**TWO, f"{T}.cliqueStartupType": order, f"{T}.cliques.1.spec.startsAfter": after}))

    assert decision.allowed
    expected = f"{T}.cliques[1].spec.startsAfter{subject} has no effect unless cliqueStartupType is CliqueStartupTypeExplicit"
    assert [warning for warning in decision.warnings if "startsAfter" in warning] == [expected] * (subject is not None)
