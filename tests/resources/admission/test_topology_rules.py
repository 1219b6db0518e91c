"""Rules for the topology constraints of new sets, with known and unknown bindings."""

from typing import Any

import pytest

from resources.ports.configuration import Configuration
from tests.resources.admission.requests import (
    GONE,
    RACKS,
    SCHEDULERS,
    TOPOLOGY,
    EmptyReferences,
    binding,
    clique,
    created,
    issues_of,
    put,
    references_to,
    small,
)

T = "spec.template"
WHOLE, A, B, G = (f"{T}{part}.topologyConstraint" for part in ("", ".cliques[0]", ".cliques[1]", ".podCliqueScalingGroups[0]"))
REQUIRED = "Required value: topologyName is required when topologyConstraint is set and cannot be inherited"
MATCH = "all topologyConstraint.topologyName values within a PodCliqueSet must match in the current implementation"
OFF = "topology constraints are not allowed when Topology Aware Scheduling is disabled"


def packed(name: str = "", **sides: str) -> dict[str, Any]:
    """A constraint."""
    return {"pack": sides} | ({"topologyName": name} if name else {})


def constrained(whole: Any = GONE, a: Any = GONE, b: Any = GONE, g: Any = GONE) -> dict[str, Any]:
    """A set with a clique `a` that stands alone and a clique `b` in a group `g`, with these constraints."""
    body = small(cliques=[clique("a"), clique("b")], podCliqueScalingGroups=[{"name": "g", "cliqueNames": ["b"]}])
    holders = {"": whole, "cliques.0.": a, "cliques.1.": b, "podCliqueScalingGroups.0.": g}
    return put(body, {f"{T}.{holder}topologyConstraint": said for holder, said in holders.items() if said is not GONE})


@pytest.mark.parametrize(
    ("body", "issues"),
    [
        pytest.param(
            constrained(packed("racks", required="zone", preferred="rack"), packed(required="rack")),
            [f'{WHOLE}: Invalid value: "zone, rack": {OFF}', f'{A}: Invalid value: "rack": {OFF}'],
            id="of the set and of a clique",
        ),
        pytest.param(constrained(g=packed(required="rack")), [f'{G}: Invalid value: "rack": {OFF}'], id="of a group"),
        pytest.param(constrained(), [], id="none"),
    ],
)
def test_constraints_are_rejected_if_topology_is_disabled(body: dict[str, Any], issues: list[str]) -> None:
    assert issues_of(created(body, Configuration(SCHEDULERS, "default-scheduler"), RACKS)) == issues


@pytest.mark.parametrize(
    ("body", "issues"),
    [
        pytest.param(constrained(packed(required="zone")), [f"{WHOLE}.topologyName: {REQUIRED}"], id="the set names it"),
        pytest.param(
            constrained(a=packed(required="rack"), g=packed("racks", required="rack")),
            [f"{A}.topologyName: {REQUIRED}"],
            id="a clique that stands alone inherits from nobody but the set",
        ),
        pytest.param(constrained(b=packed(required="rack"), g=packed("racks", required="rack")), [], id="a clique inherits from its group"),
        pytest.param(
            constrained(packed("racks", required="zone"), packed(required="rack"), packed(required="rack"), packed(required="rack")),
            [],
            id="all inherit from the set",
        ),
        pytest.param(
            constrained(packed("racks", required="zone"), a=packed("other", required="rack")),
            [f'{A}.topologyName: Invalid value: "other": {MATCH}'],
            id="nobody names another than the set",
        ),
        pytest.param(
            constrained(a=packed("racks", required="rack"), g=packed("other", required="rack")),
            [f'{G}.topologyName: Invalid value: "other": {MATCH}', f'{A}.topologyName: Invalid value: "racks": {MATCH}'],
            id="parts that name it themselves name the same",
        ),
    ],
)
def test_all_constraints_must_name_one_binding(body: dict[str, Any], issues: list[str]) -> None:
    assert issues_of(created(body, TOPOLOGY, RACKS)) == issues


NARROWER = "topology constraint domain"


@pytest.mark.parametrize(
    ("body", "issues"),
    [
        pytest.param(
            constrained(packed("nobody", required="zone")),
            [f'{WHOLE}.topologyName: Invalid value: "nobody": ClusterTopologyBinding "nobody" not found; there is racks'],
            id="the binding is there",
        ),
        pytest.param(
            constrained(a=packed("nobody", required="zone")),
            [f'{A}.topologyName: Invalid value: "nobody": ClusterTopologyBinding "nobody" not found; there is racks'],
            id="what is not there is told where it is named",
        ),
        pytest.param(
            constrained(packed("racks", required="host", preferred="cage"), packed(required="row")),
            [
                f'{WHOLE}.pack.preferred: Invalid value: "cage": '
                "topology domain 'cage' does not exist in cluster topology [zone rack host]",
                f"{A}.pack.required: Invalid value: \"row\": topology domain 'row' does not exist in cluster topology [zone rack host]",
            ],
            id="the domains are there, before anybody asks how narrow they are",
        ),
        pytest.param(
            constrained(packed("racks", required="host"), packed(required="rack"), packed(required="zone"), packed(required="rack")),
            [
                f"{WHOLE}: Invalid value: \"host\": PodCliqueSet {NARROWER} 'host' is narrower than "
                f"PodCliqueScalingGroup 'g' {NARROWER} 'rack'",
                f"{WHOLE}: Invalid value: \"host\": PodCliqueSet {NARROWER} 'host' is narrower than PodClique 'a' {NARROWER} 'rack'",
                f"{WHOLE}: Invalid value: \"host\": PodCliqueSet {NARROWER} 'host' is narrower than PodClique 'b' {NARROWER} 'zone'",
                f"{G}: Invalid value: \"rack\": PodCliqueScalingGroup 'g' {NARROWER} 'rack' is narrower than "
                f"PodClique 'b' {NARROWER} 'zone'",
            ],
            id="what the whole requires is not narrower than what a part requires",
        ),
        pytest.param(
            constrained(packed("racks", preferred="host"), packed(required="zone", preferred="rack")),
            [
                f"{WHOLE}.pack.preferred: Invalid value: \"host\": PodCliqueSet {NARROWER} 'host' is narrower than "
                f"PodClique 'a' {NARROWER} 'rack'"
            ],
            id="nor is what it prefers, while one is not held against the other",
        ),
        pytest.param(
            constrained(packed("racks", required="rack"), packed(required="rack"), packed(required="host"), packed(required="rack")),
            [],
            id="the same domain is narrow enough",
        ),
    ],
)
def test_constraints_must_match_the_binding(body: dict[str, Any], issues: list[str]) -> None:
    assert issues_of(created(body, TOPOLOGY, RACKS)) == issues


def test_a_preference_wider_than_the_requirement_is_redundant() -> None:
    decision = created(constrained(packed("racks", required="rack", preferred="zone")), TOPOLOGY, RACKS)

    assert (issues_of(decision), decision.warnings) == (
        [],
        (
            "spec.template.topologyConstraint.pack.preferred is coarser than spec.template.topologyConstraint.pack.required "
            "and is redundant",
        ),
    )


def test_without_known_bindings_constraints_are_not_checked_and_that_is_a_warning() -> None:
    decision = created(constrained(packed("racks", required="cage"), packed(required="zone")), TOPOLOGY)

    assert (issues_of(decision), decision.warnings) == (
        [],
        ('topology constraints were not checked against ClusterTopologyBinding "racks", which was not read',),
    )


def test_a_known_binding_is_used_even_if_not_all_bindings_are_known() -> None:
    beside = references_to(binding("zone"), kinds=())

    assert issues_of(created(constrained(packed("racks", required="zone")), TOPOLOGY, beside)) == []
    assert len(created(constrained(packed("racks", required="cage")), TOPOLOGY, beside).issues) == 1


def test_binding_names_are_checked_without_known_bindings() -> None:
    assert issues_of(created(constrained(packed(required="zone")), TOPOLOGY)) == [f"{WHOLE}.topologyName: {REQUIRED}"]


@pytest.mark.parametrize("spec", [None, "racks", {}, {"levels": None}, {"levels": "zone"}, {"levels": ["zone", {"domain": 1}]}])
def test_a_malformed_binding_has_no_domains(spec: Any) -> None:
    strange = references_to({**binding(), "spec": spec})

    (issue,) = issues_of(created(constrained(packed("racks", required="zone")), TOPOLOGY, strange))

    assert issue == f"{WHOLE}.pack.required: Invalid value: \"zone\": topology domain 'zone' does not exist in cluster topology []"


def test_a_set_without_constraints_needs_no_binding() -> None:
    assert (issues_of(created(constrained(), TOPOLOGY, EmptyReferences())), created(constrained(), TOPOLOGY).warnings) == ([], ())
