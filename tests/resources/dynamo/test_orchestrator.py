"""Which orchestrator runs a graph: every combination of what the cluster serves and what the graph asks for."""

from itertools import product

import pytest

from resources.base import kinds
from resources.dynamo.model.graph import InferenceGraph, Orchestrator
from resources.dynamo.orchestrator import NOT_AVAILABLE, choose, queue_of, uses_kai
from tests.resources.dynamo.reading import graph_in

GROVE, LWS, VOLCANO = kinds.PODCLIQUESET.key, kinds.LEADER_WORKER_SET.key, kinds.VOLCANO_POD_GROUP.key


def graph(annotations: dict[str, str] | None = None, nodes: int = 2) -> InferenceGraph:
    """A graph with one service on so many nodes."""
    service = {"componentType": "worker", **({"multinode": {"nodeCount": nodes}} if nodes > 1 else {})}
    return graph_in({"name": "g", "annotations": annotations or {}}, {"services": {"decode": service}})


def unserved(*served: str) -> frozenset[str]:
    return frozenset({GROVE, LWS, VOLCANO}) - set(served)


@pytest.mark.parametrize(("value", "nodes", "grove", "lws", "volcano"), list(product(("", "false", "true"), (1, 2), *[(False, True)] * 3)))
def test_grove_runs_everything_unless_disabled_then_lws_with_volcano_and_services_on_one_node_need_neither(
    value: str, nodes: int, grove: bool, lws: bool, volcano: bool
) -> None:
    annotations = {"nvidia.com/enable-grove": value} if value else {}
    served = [kind for kind, is_served in ((GROVE, grove), (LWS, lws), (VOLCANO, volcano)) if is_served]

    choice = choose(graph(annotations, nodes), unserved(*served))

    if grove and value != "false":
        expected: Orchestrator | None = Orchestrator.GROVE
    elif nodes == 1 or (lws and volcano):
        expected = Orchestrator.COMPONENTS
    else:
        expected = Orchestrator.GROVE if grove else None
    assert choice.orchestrator is expected
    assert bool(choice.error) is (expected is None)
    assert bool(choice.note) is (value == "false" and expected is Orchestrator.GROVE)


@pytest.mark.parametrize(
    ("value", "expected"), [("FALSE", Orchestrator.COMPONENTS), (" false", Orchestrator.GROVE), ("no", Orchestrator.GROVE)]
)
def test_the_annotation_is_compared_without_case_and_not_trimmed(value: str, expected: Orchestrator) -> None:
    assert choose(graph({"nvidia.com/enable-grove": value}), frozenset()).orchestrator is expected


def test_the_choice_is_that_of_the_whole_graph() -> None:
    services = {"one": {"componentType": "frontend"}, "two": {"componentType": "worker", "multinode": {"nodeCount": 2}}}
    mixed = graph_in({"name": "g"}, {"services": services})

    assert choose(mixed, unserved(LWS)).orchestrator is None
    assert choose(mixed, unserved(LWS, VOLCANO)).orchestrator is Orchestrator.COMPONENTS


@pytest.mark.parametrize(
    ("served", "annotation", "named"),
    [
        ((), "", ("does not serve grove.io", "leaderworkerset.x-k8s.io and scheduling.volcano.sh")),
        ((LWS,), "", ("does not serve grove.io", "need scheduling.volcano.sh")),
        ((VOLCANO,), "", ("does not serve grove.io", "need leaderworkerset.x-k8s.io")),
    ],
)
def test_the_error_names_what_is_missing(served: tuple[str, ...], annotation: str, named: tuple[str, ...]) -> None:
    annotations = {"nvidia.com/enable-grove": annotation} if annotation else {}

    error = choose(graph(annotations), unserved(*served)).error

    assert error.startswith(NOT_AVAILABLE)
    assert all(part in error for part in named)


@pytest.mark.parametrize(("value", "queue"), [(None, "dynamo"), ("  ", "dynamo"), (" team-a ", "team-a")])
def test_the_queue_is_that_of_the_annotation_trimmed_or_the_default(value: str | None, queue: str) -> None:
    assert queue_of(graph({} if value is None else {"nvidia.com/kai-scheduler-queue": value})) == queue


def test_kai_is_used_where_its_group_is_served_and_its_profile_is_enabled() -> None:
    assert uses_kai(("default-scheduler", "kai-scheduler"), frozenset())
    assert not uses_kai(("default-scheduler",), frozenset())
    assert not uses_kai(("kai-scheduler",), frozenset({kinds.KAI_QUEUE.key}))


@pytest.mark.parametrize("recorded", Orchestrator)
@pytest.mark.parametrize("value", ["", "false", "true"])
def test_what_runs_a_graph_stays_whatever_is_served_and_asked_until_it_may_be_replaced(recorded: Orchestrator, value: str) -> None:
    asked = graph({"nvidia.com/enable-grove": value} if value else {})
    wished = choose(asked, frozenset()).orchestrator

    kept = choose(asked, frozenset(), recorded)

    assert kept.orchestrator is recorded
    assert kept.asked is (wished if value and wished is not recorded else None)
    assert bool(kept.note) is (wished is not recorded)
    assert choose(asked, frozenset(), recorded, may_replace=True).orchestrator is wished


def test_components_are_not_replaced_by_grove_while_the_cluster_does_not_serve_them() -> None:
    error = choose(graph({"nvidia.com/enable-grove": "false"}), unserved(GROVE), Orchestrator.COMPONENTS).error

    assert error.startswith(f'{NOT_AVAILABLE}: Grove is disabled by nvidia.com/enable-grove: "false"')
    assert choose(graph({}), unserved(GROVE), Orchestrator.COMPONENTS).orchestrator is None


def test_grove_is_not_replaced_while_the_cluster_does_not_serve_it() -> None:
    error = choose(graph({}), unserved(LWS, VOLCANO), Orchestrator.GROVE).error

    assert error == f"{NOT_AVAILABLE}: Grove's objects run the graph, and the cluster does not serve grove.io"
