"""Admission as a whole: defaults, issues, warnings, and decisions on any input."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engine.ids import Kind
from engine.memo import Memo
from engine.observed import live
from engine.proposal import propose
from engine.world import empty
from resources.admission.admit import admit
from resources.admission.request import Act, Request
from resources.base import kinds
from resources.ports.configuration import Configuration
from resources.ports.references import References, known_references
from resources.ports.scheduler import Scheduler
from resources.schema.issues import ErrorType, Issue
from resources.schema.podcliqueset import PodCliqueSet
from tests.laws.toy import START
from tests.resources.admission.mutations import BINDINGS, BLUEPRINT, EXAMPLES, SEEDS, SETUPS, mutated, nested
from tests.resources.admission.requests import (
    GONE,
    RACKS,
    SCHEDULERS,
    SETUP,
    created,
    decided,
    issues_of,
    put,
    small,
    updated,
)

T = "spec.template"
GPU = {f"{T}.cliques.0.spec.podSpec.containers.0.resources": {"limits": {"nvidia.com/gpu": 1}}}


def test_a_new_set_gets_its_defaults_and_those_of_a_fabric() -> None:
    body = created(put(small(), GPU)).body

    assert body is not None
    assert body["metadata"]["annotations"] == {"grove.io/auto-mnnvl": "enabled"}
    assert body["spec"]["template"]["terminationDelay"] == "4h0m0s"


def test_an_existing_set_does_not_get_the_defaults_of_a_fabric() -> None:
    body = updated(put(small(), GPU), put(small(), {**GPU, "spec.replicas": 2})).body

    assert body is not None
    assert "annotations" not in body["metadata"]


def test_a_new_set_whose_gangs_are_not_scheduled_has_a_remark_that_is_no_warning_of_the_webhook() -> None:
    several = put(small(), {f"{T}.cliques.0.spec.replicas": 2, f"{T}.cliques.0.spec.minAvailable": 2})
    of_one, new, edited = created(small()), created(several), updated(several, put(several, {"spec.replicas": 2}))

    assert new.gangs.startswith("default-scheduler does not schedule gangs: the pods of this set are placed one by one; ")
    assert new.all_warnings == ()
    assert (of_one.gangs, edited.gangs) == ("", "")


def test_a_set_with_all_defaults_is_returned_itself() -> None:
    body = created(small()).body

    assert body is not None
    assert created(body).body is body
    assert updated(body, body).body is body


def test_issues_of_a_fabric_are_reported_with_all_others() -> None:
    body = put(small(), {"metadata.annotations": {"grove.io/auto-mnnvl": "yes"}, "spec.replicas": -1})

    assert issues_of(created(body)) == [
        "spec.replicas: Invalid value: -1: must be greater than or equal to 0",
        'metadata.annotations.grove.io/auto-mnnvl: Invalid value: "yes": must be "enabled" or "disabled"',
    ]


def test_warnings_of_a_fabric_are_reported() -> None:
    body = put(small(), {"metadata.annotations": {"nvidia.com/computedomain": "shared"}})

    assert created(body).warnings == (
        "metadata.annotations[nvidia.com/computedomain] has no effect: it is read from spec.template.cliques[].annotations",
    )


class Queueing(Scheduler):
    """A scheduler that requires an existing queue."""

    name = "queueing"

    def issues(self, model: PodCliqueSet, references: References) -> Iterator[Issue]:
        """The queue must exist."""
        queue = (model.metadata.labels or {}).get("queue")
        if not queue:
            yield Issue(("metadata", "labels"), ErrorType.REQUIRED, "no queue")
        elif references.knows("Namespace") and references.find(kinds.NAMESPACE.id("", queue)) is None:
            yield Issue(("metadata", "labels", "queue"), ErrorType.NOT_FOUND, value=queue)

    def warnings(self, model: PodCliqueSet, references: References) -> Iterator[str]:
        """The queues may be unknown."""
        if not references.knows("Namespace"):
            yield "queues were not read"


def test_the_rules_of_a_scheduler_apply_to_sets_that_name_it() -> None:
    setup = Configuration({**SCHEDULERS, "queueing": Queueing()}, "default-scheduler")
    body = put(small(), {f"{T}.cliques.0.spec.podSpec.schedulerName": "queueing"})
    queued = put(body, {"metadata.labels": {"queue": "q"}})

    assert issues_of(created(small(), setup)) == []
    assert issues_of(created(body, setup)) == ["metadata.labels: Required value: no queue"]
    assert issues_of(updated(body, body, setup)) == ["metadata.labels: Required value: no queue"]
    assert issues_of(created(queued, setup, RACKS)) == ['metadata.labels.queue: Not found: "q"']
    assert created(queued, setup).warnings == ("queues were not read",)


def test_an_unknown_field_is_a_warning() -> None:
    body = put(small(), {"spec.replcas": 1, f"{T}.cliques.0.spec.podSpec.containers.0.imagee": "x", "sttaus": {}})

    decision = created(body)

    assert decision.allowed
    assert set(decision.all_warnings) == {
        'unknown field "sttaus"',
        'unknown field "spec.replcas"',
        'unknown field "spec.template.cliques[0].spec.podSpec.containers[0].imagee"',
    }


def test_issues_of_pod_specs_are_reported_with_all_others() -> None:
    body = put(small(), {"spec.replicas": -1, f"{T}.cliques.0.spec.podSpec.hostNetwork": "yes"})

    assert [issue.field for issue in created(body).issues] == ["spec.template.cliques[0].spec.podSpec.hostNetwork", "spec.replicas"]


def test_if_a_set_has_the_wrong_shape_only_that_is_reported() -> None:
    body = put(small(), {"spec.replicas": "2", f"{T}.cliques.0.spec.minAvailable": [1], "metadata.name": "Web"})

    assert issues_of(created(body)) == [
        'spec.replicas: must be an integer, got "2"',
        "spec.template.cliques[0].spec.minAvailable: must be an integer, got a list",
    ]


def test_wrong_types_in_a_pod_spec_are_reported_with_those_of_the_set() -> None:
    container = f"{T}.cliques.0.spec.podSpec.containers.0"
    body = put(small(), {"spec.replicas": "2", f"{container}.env": "x", f"{container}.stdin": 1, f"{container}.imagee": "x"})

    decision = created(body)

    assert {issue.field for issue in decision.issues} == {
        "spec.replicas",
        *(f"{T}.cliques[0].spec.podSpec.containers[0].{field}" for field in ("env", "stdin")),
    }
    assert len(decision.issues) == 3
    assert decision.all_warnings == (f'unknown field "{T}.cliques[0].spec.podSpec.containers[0].imagee"',)


@pytest.mark.parametrize(
    ("changes", "issue"),
    [
        ({"kind": "PodClique"}, 'kind: must be "PodCliqueSet", got "PodClique"'),
        ({"apiVersion": GONE}, 'apiVersion: must be "grove.io/v1alpha1", got null'),
    ],
)
def test_an_object_must_have_its_api_version_and_kind(changes: dict[str, Any], issue: str) -> None:
    assert issues_of(created(put(small(), changes))) == [issue]


def test_any_set_may_be_deleted() -> None:
    broken = put(small(), {f"{T}.cliques": []})

    assert decided(Act.DELETE, None, broken).allowed


def test_a_set_that_is_being_deleted_may_be_changed_so_that_its_finalizers_can_be_removed() -> None:
    terminating = put(small(), {f"{T}.cliques": [], "metadata.deletionTimestamp": "2026-01-01T00:00:00Z", "metadata.finalizers": ["a/b"]})
    freed = put(terminating, {"metadata.finalizers": []})

    decision = updated(terminating, freed)

    assert decision.allowed
    assert decision.body is freed


@pytest.mark.parametrize("subresource", ["status", "scale"])
def test_requests_for_subresources_are_admitted(subresource: str) -> None:
    body = put(small(), {f"{T}.cliques": []})

    assert admit(Request(Act.UPDATE, kinds.PODCLIQUESET.id("ml", "web"), body, body, subresource=subresource), SETUP).body is body


def test_objects_of_other_kinds_are_admitted() -> None:
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}}

    assert admit(Request(Act.CREATE, Kind("", "v1", "ConfigMap", "configmaps").id("ml", "x"), body), SETUP).body is body


def test_a_kind_of_the_same_name_in_another_group_is_admitted() -> None:
    foreign = Kind("example.com", "v1", "PodCliqueSet", "podcliquesets")

    assert decided(Act.CREATE, {"spec": 1}, kind=foreign).allowed


# Invalid input.


@pytest.mark.parametrize(
    ("value", "issue"),
    [
        pytest.param(nested(5_000), "must not be nested more than 100 levels deep", id="too deep"),
        pytest.param([0] * 500_001, "must not have more than 500000 values", id="too much"),
        pytest.param(2**63, "must fit 64 bits, got 9223372036854775808", id="a number beyond 64 bits"),
        pytest.param(10**5_000, "must fit 64 bits, got a number of 16610 bits", id="a number beyond reason"),
        pytest.param(float("nan"), "must be a finite number, got NaN", id="not a number"),
        pytest.param(float("inf"), "must be a finite number, got Infinity", id="infinity"),
        pytest.param("\ud800", 'must be text that can be encoded, got "\\ud800"', id="half a character"),
        pytest.param({1: 2}, "must have text for keys, got 1", id="a key that is no text"),
        pytest.param({"\udfff": 2}, 'must have text for keys, got "\\udfff"', id="a key of half a character"),
        pytest.param({1, 2}, "must be JSON", id="no JSON"),
    ],
)
def test_if_an_object_is_not_json_only_that_is_reported(value: Any, issue: str) -> None:
    body = put(small(), {"spec.replicas": -1})
    body["spec"]["template"]["cliques"][0]["spec"]["podSpec"]["future"] = value

    (text,) = issues_of(created(body))

    assert text.endswith(issue)


def test_issues_and_warnings_are_printable_and_short_for_any_input() -> None:
    nasty = "\x1b[2J\u202e" * 1_000
    body = put(small(), {"metadata.name": nasty, "metadata.labels": {nasty: nasty}, f"{T}.cliques.0.name": nasty, f"{T}.{nasty}": 1})

    decision = created(body)

    assert len(decision.issues) > 4
    assert all(text.isprintable() and len(text) < 1_000 for text in (*issues_of(decision), *decision.warnings))


@settings(max_examples=500, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(mutated(), st.sampled_from(SETUPS), st.sampled_from(SEEDS))
def test_any_input_gets_a_decision_and_an_admitted_set_can_be_computed(body: Any, setup: Configuration, other: Any) -> None:
    for decision in (
        created(body, setup, RACKS),
        updated(other, body, setup, RACKS),
        updated(body, other, setup),
        updated(body, body, setup, RACKS),
        created(body, setup, kind=kinds.TOPOLOGY_BINDING),
        created(body, setup, kind=kinds.PODGANG),
    ):
        json.dumps([issues_of(decision), decision.warnings, decision.denial])
    decision = created(body, setup, RACKS)
    if decision.allowed and decision.body is not None:
        (observed,) = propose(empty(), [decision.body]).roots
        desired = BLUEPRINT.desire(observed, START, setup, Memo())
        assert desired.problems or desired.graph.resources


@pytest.mark.parametrize("body", EXAMPLES, ids=lambda body: str(body["metadata"]["name"]))
def test_every_example_is_admitted_without_warnings_in_some_configuration(body: dict[str, Any]) -> None:
    bindings = known_references([*RACKS.objects.values(), *map(live, BINDINGS)], RACKS.kinds)
    decisions = (created(body, setup, bindings) for setup in SETUPS)
    assert any(decision.allowed and not decision.warnings for decision in decisions)
