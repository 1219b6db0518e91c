"""Admission of the annotations of graphs that say what runs them, in which queue of a scheduler, and how their sets are updated."""

import pytest

from providers.schedulers.volcano import VolcanoScheduler
from resources.ports.configuration import Configuration
from tests.resources.admission.graphs import KAI, WITHOUT_GROVE, created_graph, graph, updated_graph, wide
from tests.resources.admission.requests import SCHEDULERS, SETUP, issues_of

QUEUE, STRATEGY = "nvidia.com/volcano-queue", "nvidia.com/grove-update-strategy"
PROVIDER, DISAGGREGATED = "nvidia.com/workload-provider", "nvidia.com/enable-disaggregatedset"
KAI_QUEUE, FORM = "nvidia.com/kai-scheduler-queue", "engine.grove.io/pod-form"
VOLCANO = Configuration({**SCHEDULERS, "volcano": VolcanoScheduler()}, "default-scheduler")
NO_SETS = "Forbidden: DisaggregatedSets are not supported by the engine"


@pytest.mark.parametrize(
    ("annotations", "issue"),
    [
        ({DISAGGREGATED: "true"}, f"metadata.annotations[{DISAGGREGATED}]: {NO_SETS}"),
        ({PROVIDER: "disaggregatedset"}, f"metadata.annotations[{PROVIDER}]: {NO_SETS}"),
        ({PROVIDER: "lws"}, f'metadata.annotations[{PROVIDER}]: Unsupported value: "lws": supported values: "grove", "component"'),
        ({STRATEGY: "Coherent"}, f"metadata.annotations[{STRATEGY}]: Unsupported value: "
                                 '"Coherent": supported values: "RollingRecreate", "OnDelete"'),
        ({QUEUE: "a", KAI_QUEUE: "b"}, f"metadata.annotations[{QUEUE}]: Forbidden: kai-scheduler and volcano scheduler integrations cannot "
                                       f"both be enabled for Grove: {KAI_QUEUE} names a queue as well"),
    ],
)  # fmt: skip
def test_what_the_engine_cannot_do_is_refused_by_its_name_for_new_graphs_only(annotations: dict[str, str], issue: str) -> None:
    old, new = (graph(annotations={**annotations, FORM: form}) for form in ("3", "4"))

    assert issues_of(created_graph(graph(annotations=annotations))) == [issue]
    assert issues_of(updated_graph(old, old)) == []
    assert issues_of(updated_graph(new, new)) == [issue]


@pytest.mark.parametrize(
    "annotations",
    [{DISAGGREGATED: "false"}, {PROVIDER: "component"}, {STRATEGY: "OnDelete"}, {QUEUE: "a", KAI_QUEUE: "b"} | WITHOUT_GROVE],
)
def test_everything_else_is_admitted(annotations: dict[str, str]) -> None:
    assert issues_of(created_graph(graph(annotations=annotations))) == []


def warned(annotations: dict[str, str], setup: Configuration) -> list[str]:
    """The warnings about annotations that have no effect."""
    return [warning for warning in created_graph(graph(annotations=annotations), setup).warnings if "has no effect" in warning]


def test_annotations_without_effect_are_told_with_the_reason() -> None:
    assert warned({QUEUE: "a"}, VOLCANO) == []
    no_effect = f"the annotation {QUEUE} has no effect: "
    assert warned({QUEUE: "a"}, SETUP) == [f"{no_effect}the configuration does not enable the scheduler profile volcano"]
    assert warned({QUEUE: "a", FORM: "3"}, VOLCANO) == [f"{no_effect}the graph keeps the scheduler that it was made with"]
    without_grove = f"{no_effect}without Grove, Volcano schedules services on several nodes in its queue default"
    assert warned({QUEUE: "a", STRATEGY: "OnDelete"} | WITHOUT_GROVE, VOLCANO) == [
        without_grove,
        f"the annotation {STRATEGY} has no effect without Grove",
    ]


def test_a_service_with_another_scheduler_cannot_be_in_the_gang_of_volcano() -> None:
    service = wide()
    service["extraPodSpec"]["schedulerName"] = "default-scheduler"

    (issue,) = issues_of(created_graph(graph({"a": service, "b": wide()}, annotations={QUEUE: "q"}), VOLCANO))

    assert "must be that of the other services: b names none and has volcano" in issue


def test_the_queue_of_volcano_is_judged_as_that_of_the_set() -> None:
    (issue,) = issues_of(created_graph(graph(annotations={QUEUE: "Q_1"}), VOLCANO))

    assert "scheduling.grove.io/volcano-queue" in issue and "Q_1" in issue


def test_kai_is_used_where_no_queue_of_volcano_is_named() -> None:
    assert warned({KAI_QUEUE: "b"}, KAI) == []
