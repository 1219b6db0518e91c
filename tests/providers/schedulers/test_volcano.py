"""Volcano: queues, PodGroups with a policy for each clique, the annotations of pods, and what an installation needs."""

from typing import Any

import pytest

from engine.diff import Rules, compare
from engine.observed import live
from engine.operation import Cause
from providers.schedulers.volcano import CRD, VolcanoPodGroups, VolcanoScheduler
from resources.base import kinds
from resources.ports.checks import CheckResult, Installation, QueryResult, QueryResults, ServedApis
from resources.ports.configuration import Configuration
from resources.ports.references import KnownReferences, known_references
from resources.ports.scheduler import LabelsAndAnnotations
from tests.providers.schedulers.podgangs import metadata, pod_group, podgang
from tests.resources.admission.requests import clique, created, issues_of, put, small, updated

VOLCANO, POD_GROUPS = VolcanoScheduler(), VolcanoPodGroups()
QUEUE = "scheduling.grove.io/volcano-queue"
SETUP = Configuration({VOLCANO.name: VOLCANO}, VOLCANO.name, topology=True)
A, B = "spec.template.cliques.0", "spec.template.cliques.1"


def policy(podclique: str, size: int) -> dict[str, Any]:
    """The policy of a clique."""
    return {
        "name": podclique,
        "labelSelector": {"matchLabels": {"grove.io/podclique": podclique}},
        "matchLabelKeys": ["grove.io/podclique"],
        "subGroupSize": size,
        "minSubGroups": 1,
    }


def queue(name: str, **status: str) -> dict[str, Any]:
    """A Queue."""
    return {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "metadata": {"name": name}, "status": status}


def queues(*bodies: dict[str, Any]) -> KnownReferences:
    """All queues there are."""
    return known_references([live(body) for body in bodies], [kinds.VOLCANO_QUEUE.key])


OPEN = queues(queue("default", state="Open"), queue("q", state="Open"))


def two(changes: dict[str, Any]) -> dict[str, Any]:
    """A set of the cliques `a` and `b`."""
    return put(small(cliques=[clique("a"), clique("b")]), changes)


def test_a_pod_names_its_pod_group_twice() -> None:
    assert VOLCANO.decorate_pod({"containers": []}) == {"containers": [], "schedulerName": "volcano"}
    assert POD_GROUPS.pod_metadata("d-0", "d-0-fe", None, metadata()) == LabelsAndAnnotations(
        {}, {"scheduling.volcano.sh/group-name": "d-0", "scheduling.k8s.io/group-name": "d-0"}
    )


def test_a_pod_group_has_the_sum_of_the_minimums_and_a_policy_for_each_clique() -> None:
    gang = podgang(pod_group("d-0-fe", 1), pod_group("d-0-be", 4), annotations={"team": "x"}, priorityClassName="high")

    assert POD_GROUPS.object_for(gang, None, metadata()).body == {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": "d-0", "namespace": "ml", "labels": {"app": "d", "app.kubernetes.io/part-of": "d"}},
        "spec": {
            "queue": "default",
            "priorityClassName": "high",
            "minMember": 5,
            "subGroupPolicy": [policy("d-0-fe", 1), policy("d-0-be", 4)],
        },
    }


def test_a_minimum_is_at_least_one() -> None:
    spec = POD_GROUPS.object_for(podgang(pod_group("d-0-fe", 0)), None, metadata()).body["spec"]

    assert (spec["minMember"], spec["subGroupPolicy"]) == (1, [policy("d-0-fe", 1)])


def test_an_existing_minimum_stays_while_no_pod_group_has_one() -> None:
    gang = podgang(pod_group("d-0-fe", 3))
    existing = live(POD_GROUPS.object_for(gang, None, metadata()).body)
    empty = live({**existing.body, "spec": {"minMember": 0}})
    emptied = podgang(pod_group("d-0-fe", 0))

    mapped = POD_GROUPS.object_for(emptied, existing, metadata())
    assert compare(mapped.body, existing.body, Rules(mapped.policy, Cause.DRIFT)).changes == ()
    assert POD_GROUPS.object_for(emptied, empty, metadata()).body["spec"]["minMember"] == 1


@pytest.mark.parametrize(
    ("of_set", "name"),
    [
        (metadata(), "default"),
        (metadata(annotations={QUEUE: " q "}), "q"),
        (metadata(annotations={QUEUE: "  "}), "default"),
        (metadata(labels={QUEUE: "q"}), "default"),
        (metadata(a=LabelsAndAnnotations(annotations={QUEUE: "q"}), b=LabelsAndAnnotations()), "q"),
    ],
)
def test_the_queue_is_that_of_the_set_or_of_its_cliques_or_default(of_set: Any, name: str) -> None:
    assert POD_GROUPS.object_for(podgang(pod_group("d-0-fe", 1)), None, of_set).body["spec"]["queue"] == name


def test_cliques_with_different_queues_cannot_be_mapped() -> None:
    of_set = metadata(a=LabelsAndAnnotations(annotations={QUEUE: "y"}), b=LabelsAndAnnotations(annotations={QUEUE: "x"}))

    assert POD_GROUPS.object_for(podgang(pod_group("d-0-fe", 1)), None, of_set).problem == "conflicting volcano queues on PodCliques: [x y]"


def test_what_others_add_to_a_pod_group_is_kept_and_the_queue_follows_the_set() -> None:
    gang = podgang(pod_group("d-0-fe", 1))
    body = POD_GROUPS.object_for(gang, None, metadata()).body
    existing = live({**body, "spec": {**body["spec"], "minResources": {"cpu": "1"}, "minTaskMember": {"x": 1}}})

    same = POD_GROUPS.object_for(gang, existing, metadata())
    moved = POD_GROUPS.object_for(gang, existing, metadata(annotations={QUEUE: "q"}))

    assert compare(same.body, existing.body, Rules(same.policy, Cause.DRIFT)).changes == ()
    assert compare(moved.body, existing.body, Rules(moved.policy, Cause.DRIFT)).patch == {"spec": {"queue": "q"}}


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"metadata.annotations": {QUEUE: "q"}},
        {"metadata.annotations": {QUEUE: " q "}, f"{A}.annotations": {QUEUE: "q"}},
        {f"{A}.annotations": {QUEUE: "q"}},
    ],
)
def test_a_set_with_one_open_queue_is_admitted(changes: dict[str, Any]) -> None:
    assert issues_of(created(two(changes), SETUP, OPEN)) == []
    assert created(two(changes), SETUP, OPEN).warnings == ()


ON_SET = "metadata.annotations[scheduling.grove.io/volcano-queue]"
ON_B = "spec.template.cliques[1].annotations[scheduling.grove.io/volcano-queue]"


@pytest.mark.parametrize(
    ("changes", "references", "issue"),
    [
        (
            {"metadata.annotations": {QUEUE: "q"}, f"{B}.annotations": {QUEUE: "default"}},
            OPEN,
            f'{ON_B}: Invalid value: "default": volcano queue on PodCliqueSet is "q" but PodClique "b" has "default"',
        ),
        (
            {f"{A}.annotations": {QUEUE: "q"}, f"{B}.annotations": {QUEUE: "default"}},
            OPEN,
            "spec.template.cliques: Invalid value: conflicting volcano queues on PodCliques: [default q]",
        ),
        (
            {"metadata.annotations": {QUEUE: "other"}},
            OPEN,
            f'{ON_SET}: Invalid value: "other": volcano queue "other" does not exist',
        ),
        ({}, queues(), f'{ON_SET}: Invalid value: "default": volcano queue "default" does not exist'),
        (
            {f"{B}.annotations": {QUEUE: "q"}},
            queues(queue("q", state="Closed")),
            f'{ON_B}: Invalid value: "q": volcano queue "q" is not Open',
        ),
    ],
)
def test_queues_that_disagree_or_cannot_be_used_deny_the_set(changes: dict[str, Any], references: KnownReferences, issue: str) -> None:
    assert issues_of(created(two(changes), SETUP, references)) == [issue]
    assert issues_of(updated(two({}), two(changes), SETUP, references)) == [issue]


def test_the_name_of_a_queue_must_be_a_subdomain() -> None:
    (issue,) = issues_of(created(two({"metadata.annotations": {QUEUE: "Q_1"}}), SETUP, OPEN))

    assert issue.startswith(f'{ON_SET}: Invalid value: "Q_1": a lowercase RFC 1123 subdomain must consist of')


@pytest.mark.parametrize(
    ("references", "warning"),
    [
        (KnownReferences(), 'volcano queue "default" was not checked: queues were not read'),
        (queues(queue("default")), 'volcano queue "default" has no state yet'),
    ],
)
def test_a_queue_that_cannot_be_judged_is_a_warning(references: KnownReferences, warning: str) -> None:
    decision = created(two({}), SETUP, references)

    assert (issues_of(decision), decision.warnings) == ([], (warning,))


def test_no_topology_constraint_is_supported() -> None:
    constraint = {"topologyName": "racks", "pack": {"required": "zone"}}
    group = {"name": "g", "cliqueNames": ["b"], "topologyConstraint": constraint}
    body = two({"spec.template.topologyConstraint": constraint, f"{A}.topologyConstraint": constraint})
    body = put(body, {"spec.template.podCliqueScalingGroups": [group]})
    unsupported = "volcano scheduler backend does not support topologyConstraint on"

    assert issues_of(created(body, SETUP, OPEN)) == [
        f"spec.template.topologyConstraint: Invalid value: {unsupported} PodCliqueSet",
        f'spec.template.cliques[0].topologyConstraint: Invalid value: {unsupported} PodClique "a"',
        f'spec.template.podCliqueScalingGroups[0].topologyConstraint: Invalid value: {unsupported} PodCliqueScalingGroup "g"',
    ]


def crd(*properties: str) -> dict[str, Any]:
    """The CRD of PodGroups with these fields in the spec."""
    spec = {"properties": {name: {"type": "array"} for name in properties}}
    version = {"name": "v1beta1", "schema": {"openAPIV3Schema": {"properties": {"spec": spec}}}}
    metadata = {"name": "podgroups.scheduling.volcano.sh"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": metadata,
        "spec": {"versions": [version]},
    }


@pytest.mark.parametrize(
    ("result", "outcome"),
    [
        (QueryResult((live(crd("subGroupPolicy", "queue")),)), CheckResult.GOOD),
        (QueryResult((live(crd("queue")),)), CheckResult.BAD),
        (QueryResult((live({**crd(), "spec": {"versions": 7}}),)), CheckResult.BAD),
        (QueryResult(error="forbidden"), CheckResult.UNKNOWN),
    ],
)
def test_volcano_must_be_recent_enough_for_policies(result: QueryResult, outcome: CheckResult) -> None:
    kind = kinds.VOLCANO_POD_GROUP
    served = ServedApis(frozenset({(kind.group, kind.version, kind.plural)}))

    assert VOLCANO.installation_queries() == (CRD,)
    assert list(VOLCANO.checks(Installation(ServedApis(), QueryResults({CRD: result}), ()))) == []
    (check,) = VOLCANO.checks(Installation(served, QueryResults({CRD: result}), ()))
    assert check.outcome is outcome
    if outcome is CheckResult.BAD:
        assert check.finding == "volcano scheduler backend requires Volcano 1.14 or newer with PodGroup.spec.subGroupPolicy"
