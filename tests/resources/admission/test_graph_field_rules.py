"""Admission of fields of graphs: what an order of `spec.restart` must name, and what is refused or has no effect."""

from typing import Any

import pytest

from tests.resources.admission.graphs import WITHOUT_GROVE, created_graph, graph, updated_graph, wide, worker
from tests.resources.admission.requests import issues_of

FORM = "engine.grove.io/pod-form"
ORDER = "spec.restart.strategy.order"


def made(strategy: dict[str, Any] | None = None, form: str = "4", id: str = "a") -> dict[str, Any]:
    """A graph with two services and a restart."""
    restart = {"id": id, **({"strategy": strategy} if strategy else {})}
    return graph({"prefill": worker(), "decode": wide()}, annotations={FORM: form}, restart=restart)


@pytest.mark.parametrize(
    ("strategy", "fault"),
    [
        ({"type": "Parallel", "order": ["decode", "prefill"]}, "cannot be specified when strategy is parallel"),
        ({"order": ["decode", "decode"]}, "must be unique"),
        ({"order": ["decode"]}, "must have the same number of unique components as the deployment"),
        ({"order": ["decode", "Prefill"]}, "names no component of the deployment: Prefill"),
    ],
)
def test_an_order_names_every_component_once(strategy: dict[str, Any], fault: str) -> None:
    new, old = made(strategy), made(strategy, "3")

    assert issues_of(updated_graph(new, new)) == [f"{ORDER} {fault}"]
    of_old = updated_graph(old, old)
    assert issues_of(of_old) == []
    assert f"{ORDER}: {fault}" in of_old.warnings


@pytest.mark.parametrize("strategy", [None, {"type": "Parallel"}, {"type": "Sequential", "order": ["prefill", "decode"]}])
def test_a_restart_is_admitted_and_a_new_graph_is_told_that_it_has_nothing_to_restart(strategy: dict[str, Any] | None) -> None:
    created, updated = created_graph(made(strategy)), updated_graph(made(strategy, id="b"), made(strategy))

    assert issues_of(created) == issues_of(updated) == []
    text = "spec.restart must be unset on create; set spec.restart.id after creation to request a restart: "
    assert [warning for warning in created.warnings if "restart" in warning] == [f"{text}the id a of a new graph counts as carried out"]
    assert [warning for warning in updated.warnings if "restart" in warning] == []


@pytest.mark.parametrize("field", ["componentGroups", "elastic"])
def test_experimental_fields_of_a_graph_are_refused_by_their_names(field: str) -> None:
    found = issues_of(created_graph(graph(experimental={field: {"a": 1}})))

    assert found == [f"spec.experimental.{field}: Forbidden: is not supported by the engine"]


def test_without_grove_a_topology_has_no_effect_and_overrides_are_refused() -> None:
    topology = {"clusterTopologyName": "racks", "packDomain": "rack"}
    decision = created_graph(graph(annotations=WITHOUT_GROVE, topologyConstraint=topology))
    override = {"apiVersion": "grove.io/v1alpha1", "target": "PodCliqueSet", "value": {}}

    assert issues_of(decision) == []
    assert "spec.topologyConstraint has no effect without Grove" in decision.warnings
    assert any("need Grove" in issue for issue in issues_of(created_graph(graph(annotations=WITHOUT_GROVE, providerOverride=override))))
