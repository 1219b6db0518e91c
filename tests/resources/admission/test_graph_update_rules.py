"""Changes of DynamoGraphDeployments: what is forbidden, and what is announced."""

from typing import Any

import pytest

from tests.resources.admission.graphs import WITHOUT_GROVE, created_graph, graph, updated_graph, wide, worker
from tests.resources.admission.requests import issues_of

REMEDY = 'sync does it only with --allow-replace or the annotation engine.grove.io/allow-replace: "true"'


def test_the_framework_cannot_be_changed() -> None:
    old, new = (
        graph({"decode": {**worker(), "extraPodSpec": {"mainContainer": {"image": "i"}}}}, backendFramework=name)
        for name in ("vllm", "sglang")
    )

    decision = updated_graph(old, new)

    assert issues_of(decision) == ["spec.backendFramework is immutable and cannot be changed after creation"]
    assert "Changing spec.backendFramework may cause unexpected behavior" in decision.warnings


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        pytest.param({"a": wide()}, {"a": wide(nodes=3)}, "a has 3 nodes instead of 2", id="nodes"),
        pytest.param({"a": worker()}, {"a": wide()}, "a has 2 nodes instead of 1", id="from one node"),
        pytest.param({"a": wide()}, {"a": wide(), "b": wide()}, "service b is added", id="a service more"),
        pytest.param({"a": wide(), "b": wide()}, {"a": wide()}, "service b is removed", id="a service less"),
        pytest.param({"a": wide(), "b": wide()}, {"a": wide(), "b": wide(replicas=0)}, "b is scaled down to 0", id="down to 0"),
        pytest.param({"a": wide(), "b": wide(replicas=0)}, {"a": wide(), "b": wide()}, "b is scaled up from 0", id="up from 0"),
    ],
)
def test_a_change_that_replaces_the_set_is_admitted_with_a_warning(old: Any, new: Any, reason: str) -> None:
    decision = updated_graph(graph(old), graph(new))

    assert decision.allowed
    assert f"this change replaces the PodCliqueSet g and restarts all of its pods: {reason}; {REMEDY}" in decision.warnings


@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param({"a": wide(replicas=2)}, {"a": wide(replicas=3)}, id="replicas"),
        pytest.param({"a": wide("--tp", "8", "--x")}, {"a": wide("--tp", "8", "--y")}, id="arguments"),
        pytest.param({"a": wide()}, {"a": wide(gpus="8")}, id="GPUs"),
    ],
)
def test_other_changes_roll_without_a_warning(old: Any, new: Any) -> None:
    decision = updated_graph(graph(old), graph(new))

    assert decision.allowed
    assert decision.warnings == ()


def test_without_grove_no_set_is_replaced() -> None:
    old, new = (graph({"a": wide(nodes=nodes)}, annotations=WITHOUT_GROVE) for nodes in (2, 3))

    assert updated_graph(old, new).warnings == ()


def test_a_change_of_the_orchestrator_is_announced() -> None:
    decision = updated_graph(graph(), graph(annotations=WITHOUT_GROVE))

    assert decision.warnings == (
        "changing the annotation nvidia.com/enable-grove may change what runs the services, which replaces all of their pods: "
        'sync does it only with --allow-replace or the annotation engine.grove.io/allow-replace: "true"',
    )


def test_an_update_is_judged_by_itself_if_the_stored_graph_is_invalid() -> None:
    assert updated_graph({"spec": 1}, graph()).allowed
    assert updated_graph(graph({"a": wide(nodes=1)}), graph()).warnings == ()


def test_a_graph_that_is_being_deleted_may_be_changed_in_any_way_and_any_graph_may_be_deleted() -> None:
    terminating = graph()
    terminating["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"

    assert updated_graph(terminating, graph({})).allowed
    assert created_graph(graph({})).allowed is False


def test_what_was_admitted_before_in_pods_does_not_prevent_other_changes() -> None:
    faulty = {"mainContainer": {"image": "i", "ports": [{"containerPort": "x"}]}}

    assert updated_graph(graph({"a": worker(extraPodSpec=faulty)}), graph({"a": worker(extraPodSpec=faulty, replicas=2)})).allowed


def test_another_queue_is_announced_because_gangs_that_exist_keep_theirs() -> None:
    old, new = (graph({"a": wide()}, annotations={"nvidia.com/kai-scheduler-queue": queue}) for queue in ("one", "two"))

    decision = updated_graph(old, new)

    assert decision.allowed
    assert any("nvidia.com/kai-scheduler-queue restarts pods" in warning for warning in decision.warnings)
    assert not updated_graph(old, old).warnings
