"""KAI: queues, PodGroups with sub-groups, the metadata of pods, and Topologies."""

from typing import Any

import pytest
from msgspec.structs import replace

from engine.diff import Rules, compare
from engine.observed import Live, live
from engine.operation import Cause
from providers.schedulers.kai import KaiPodGroups, KaiScheduler, KaiTopologies
from resources.base import kinds, labels
from resources.ports.configuration import Configuration
from resources.ports.scheduler import CliqueOfGang, GangFacts, LabelsAndAnnotations, Levels
from tests.providers.schedulers.podgangs import metadata, packed, pod_group, podgang
from tests.resources.admission.requests import clique, created, issues_of, put, small, updated

KAI, POD_GROUPS, TOPOLOGIES = KaiScheduler(), KaiPodGroups(), KaiTopologies()
QUEUE = "kai.scheduler/queue"
SETUP = Configuration({KAI.name: KAI}, KAI.name)
IN_Q = metadata({QUEUE: "q"})
ZONE, RACK = "topology.kubernetes.io/zone", "example.com/rack"


def pod_group_of(body: dict[str, Any], **spec: Any) -> Live:
    """The PodGroup of that manifest as the server stores it, with other fields in its spec."""
    return live({**body, "spec": {**body["spec"], **spec}})


def test_a_pod_names_its_pod_group_its_sub_group_and_its_queue() -> None:
    assert KAI.decorate_pod({"containers": []}) == {"containers": [], "schedulerName": "kai-scheduler"}
    assert POD_GROUPS.pod_metadata("d-0", "d-0-fe", None, IN_Q) == LabelsAndAnnotations(
        {QUEUE: "q", "kai.scheduler/subgroup-name": "d-0-fe"}, {"kai.scheduler/skip-podgrouper": "true", "pod-group-name": "d-0"}
    )


def test_a_pod_is_in_the_queue_of_its_pod_group_even_if_the_set_asks_for_another_one() -> None:
    existing = pod_group_of(dict(POD_GROUPS.object_for(podgang(pod_group("d-0-fe", 1)), None, IN_Q).body), queue="old")

    assert POD_GROUPS.pod_metadata("d-0", "d-0-fe", existing, IN_Q).labels[QUEUE] == "old"


def test_a_queue_that_is_no_label_value_is_not_put_on_pods() -> None:
    named = metadata(annotations={QUEUE: "team/a"})

    assert POD_GROUPS.pod_metadata("d-0", "d-0-fe", None, named).labels == {"kai.scheduler/subgroup-name": "d-0-fe"}


def test_a_pod_group_has_the_sum_of_the_minimums_and_a_sub_group_for_each_clique() -> None:
    annotations = {"team": "x", **POD_GROUPS.podgang_annotations}
    gang = podgang(pod_group("d-0-fe", 1), pod_group("d-0-be", 4), annotations=annotations, priorityClassName="high")

    mapped = POD_GROUPS.object_for(gang, None, IN_Q)

    assert mapped.problem == ""
    assert mapped.body == {
        "apiVersion": "scheduling.run.ai/v2alpha2",
        "kind": "PodGroup",
        "metadata": {
            "name": "d-0",
            "namespace": "ml",
            "labels": {"app": "d", "app.kubernetes.io/part-of": "d"},
            "annotations": {"team": "x", "kai.scheduler/skip-podgrouper": "true"},
        },
        "spec": {
            "queue": "q",
            "minMember": 5,
            "priorityClassName": "high",
            "subGroups": [{"name": "d-0-fe", "minMember": 1}, {"name": "d-0-be", "minMember": 4}],
        },
    }


def placed_by(scheduler: str, name: str) -> Live:
    """A pod of that scheduler."""
    metadata = {"namespace": "ml", "name": name, "uid": name, "resourceVersion": "1"}
    return live({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"schedulerName": scheduler}})


def test_pods_that_another_scheduler_has_placed_are_not_waited_for() -> None:
    gang = podgang(pod_group("d-0-fe", 1), pod_group("d-0-be", 3))
    gang["metadata"]["labels"][labels.SCHEDULER_NAME] = KAI.name
    front, *backs = (placed_by("default-scheduler", name) for name in ("fe", "be-1", "be-2"))

    def minimums(*cliques: CliqueOfGang) -> tuple[int, dict[str, int]]:
        facts = GangFacts(kinds.PODGANG.id("ml", "d-0"), None, {}, cliques, ())
        spec = POD_GROUPS.plan_for(gang, facts, IN_Q).objects[0].body["spec"]
        return spec["minMember"], {each["name"]: each["minMember"] for each in spec["subGroups"]}

    fe, be = CliqueOfGang("d-0-fe", 1, (front,)), CliqueOfGang("d-0-be", 3, tuple(backs))
    assert minimums(fe, replace(be, pods=(*backs, placed_by("default-scheduler", "be-0")))) == (4, {"d-0-fe": 1, "d-0-be": 3})
    assert minimums(fe, replace(be, new=(0,))) == (1, {"d-0-be": 1})
    assert minimums(fe, replace(be, pods=(*backs, placed_by(KAI.name, "be-0")))) == (1, {"d-0-be": 1})
    assert minimums(replace(fe, pods=(), new=(0,)), replace(be, pods=(), new=(0, 1, 2))) == (4, {"d-0-fe": 1, "d-0-be": 3})


def test_constraints_become_topology_levels_and_constrained_groups_come_first() -> None:
    gang = podgang(
        pod_group("d-0-fe", 1, **packed(preferred=RACK)),
        pod_group("d-0-dec-0-ld", 1),
        pod_group("d-0-dec-0-wk", 4),
        annotations={"grove.io/topology-name": "hall"},
        topologyConstraintGroupConfigs=[
            {"name": "d-0-dec-0", "podGroupNames": ["d-0-dec-0-ld", "d-0-dec-0-wk"], **packed(required=RACK)},
            {"name": "d-0-none", "podGroupNames": []},
        ],
        **packed(required=ZONE, preferred=RACK),
    )

    spec = POD_GROUPS.object_for(gang, None, IN_Q).body["spec"]

    assert spec["topologyConstraint"] == {"topology": "hall", "requiredTopologyLevel": ZONE, "preferredTopologyLevel": RACK}
    assert spec["subGroups"] == [
        {"name": "d-0-dec-0", "minSubGroup": 2, "topologyConstraint": {"topology": "hall", "requiredTopologyLevel": RACK}},
        {"name": "d-0-fe", "minMember": 1, "topologyConstraint": {"topology": "hall", "preferredTopologyLevel": RACK}},
        {"name": "d-0-dec-0-ld", "minMember": 1, "parent": "d-0-dec-0"},
        {"name": "d-0-dec-0-wk", "minMember": 4, "parent": "d-0-dec-0"},
    ]


def test_the_annotation_of_kai_names_the_topology_where_groves_does_not() -> None:
    gang = podgang(pod_group("d-0-fe", 1), annotations={"kai.scheduler/topology": "own"}, **packed(required=ZONE))

    assert POD_GROUPS.object_for(gang, None, IN_Q).body["spec"]["topologyConstraint"]["topology"] == "own"


@pytest.mark.parametrize(
    "gang",
    [
        podgang(pod_group("d-0-fe", 1), **packed(required=ZONE)),
        podgang(pod_group("d-0-fe", 1, **packed(preferred=RACK))),
        podgang(
            pod_group("d-0-fe", 1), topologyConstraintGroupConfigs=[{"name": "g", "podGroupNames": ["d-0-fe"], **packed(required=RACK)}]
        ),
    ],
)
def test_a_constraint_without_the_name_of_a_topology_cannot_be_mapped(gang: dict[str, Any]) -> None:
    assert POD_GROUPS.object_for(gang, None, IN_Q).problem == "topology name cannot be empty when topology constraints are defined"


@pytest.mark.parametrize(
    ("of_set", "problem"),
    [
        (metadata(), "no KAI queue is configured on PodCliqueSet ml/d or its PodClique templates"),
        (
            metadata(a=LabelsAndAnnotations({QUEUE: "y"}), b=LabelsAndAnnotations({QUEUE: "x"})),
            "conflicting KAI queues on PodCliqueSet ml/d PodClique templates: [x y]",
        ),
    ],
)
def test_a_pod_group_without_an_agreed_queue_is_not_created_but_an_existing_one_keeps_its_own(of_set: Any, problem: str) -> None:
    gang = podgang(pod_group("d-0-fe", 1))
    existing = pod_group_of(dict(POD_GROUPS.object_for(gang, None, IN_Q).body))

    assert POD_GROUPS.object_for(gang, None, of_set).problem == problem
    assert POD_GROUPS.object_for(gang, existing, of_set).body["spec"]["queue"] == "q"


def test_what_others_own_of_a_pod_group_is_kept() -> None:
    gang = podgang(pod_group("d-0-fe", 1))
    gang["metadata"]["labels"] |= {QUEUE: "q"}
    stored = dict(POD_GROUPS.object_for(gang, None, IN_Q).body)
    stored["metadata"] = {**stored["metadata"], "labels": {**stored["metadata"]["labels"], QUEUE: "z", "kai.scheduler/node-pool": "n"}}
    existing = pod_group_of(stored, queue="z", markUnschedulable=True, schedulingBackoff=-1, preemptibility="preemptible")
    gang["metadata"]["labels"] |= {"kai.scheduler/node-pool": "m"}

    mapped = POD_GROUPS.object_for(gang, existing, IN_Q)

    assert compare(mapped.body, existing.body, Rules(mapped.policy, Cause.DRIFT)).changes == ()


def test_a_pod_group_that_lost_its_queue_gets_it_again() -> None:
    gang = podgang(pod_group("d-0-fe", 1))
    existing = pod_group_of(dict(POD_GROUPS.object_for(gang, None, IN_Q).body), queue="")

    mapped = POD_GROUPS.object_for(gang, existing, IN_Q)

    assert compare(mapped.body, existing.body, Rules(mapped.policy, Cause.DRIFT)).patch == {"spec": {"queue": "q"}}


def test_a_minimum_of_sub_groups_that_the_server_dropped_is_not_sent_again() -> None:
    config = {"name": "g", "podGroupNames": ["d-0-fe"], **packed(required=RACK)}
    gang = podgang(pod_group("d-0-fe", 1), annotations={"grove.io/topology-name": "hall"}, topologyConstraintGroupConfigs=[config])
    first = dict(POD_GROUPS.object_for(gang, None, IN_Q).body)
    dropped = [{key: value for key, value in group.items() if key != "minSubGroup"} for group in first["spec"]["subGroups"]]

    assert "minSubGroup" in first["spec"]["subGroups"][0]
    for stored in (pod_group_of(first), pod_group_of(first, subGroups=dropped)):
        mapped = POD_GROUPS.object_for(gang, stored, IN_Q)
        assert compare(mapped.body, stored.body, Rules(mapped.policy, Cause.DRIFT)).changes == ()


def test_where_the_minimum_is_dropped_cliques_beside_groups_get_a_group_of_their_own() -> None:
    config = {"name": "d-0-g-0", "podGroupNames": ["d-0-g-0-w"], **packed(required=RACK)}
    pod_groups = (pod_group("d-0-fe", 1), pod_group("d-0-g-0-w", 2))
    gang = podgang(*pod_groups, annotations={"grove.io/topology-name": "hall"}, topologyConstraintGroupConfigs=[config])
    first = POD_GROUPS.object_for(gang, None, IN_Q)
    dropped = [{key: value for key, value in group.items() if key != "minSubGroup"} for group in first.body["spec"]["subGroups"]]
    old = pod_group_of(dict(first.body), subGroups=dropped)

    second = POD_GROUPS.object_for(gang, old, IN_Q)

    assert [group.get("parent") for group in first.body["spec"]["subGroups"]] == [None, None, "d-0-g-0"]
    assert [(group["name"], group.get("parent")) for group in second.body["spec"]["subGroups"]] == [
        ("d-0-g-0", None),
        ("d-0", None),
        ("d-0-fe", "d-0"),
        ("d-0-g-0-w", "d-0-g-0"),
    ]
    third = POD_GROUPS.object_for(gang, live(second.body), IN_Q)
    assert third.body == second.body
    assert first.provisional and not POD_GROUPS.object_for(podgang(*pod_groups), None, IN_Q).provisional


@pytest.mark.parametrize("spec", [None, [], {"queue": 7, "subGroups": "x"}, {"subGroups": [None, {"name": 1}]}])
def test_a_pod_group_of_any_shape_is_read(spec: Any) -> None:
    stored = dict(POD_GROUPS.object_for(podgang(pod_group("d-0-fe", 1)), None, IN_Q).body)

    assert POD_GROUPS.object_for(podgang(pod_group("d-0-fe", 1)), live({**stored, "spec": spec}), IN_Q).body["spec"]["queue"] == "q"


def queued(changes: dict[str, Any]) -> dict[str, Any]:
    """A set of the cliques `a` and `b` with labels and annotations."""
    return put(small(cliques=[clique("a"), clique("b")]), changes)


A, B = "spec.template.cliques.0", "spec.template.cliques.1"


@pytest.mark.parametrize(
    "changes",
    [
        {"metadata.labels": {QUEUE: "q"}},
        {"metadata.annotations": {QUEUE: "q"}},
        {"metadata.labels": {QUEUE: "q"}, "metadata.annotations": {QUEUE: "other"}},
        {"metadata.labels": {QUEUE: "q"}, f"{A}.annotations": {QUEUE: "q"}},
        {f"{A}.labels": {QUEUE: "q"}},
        {f"{A}.labels": {QUEUE: "q"}, f"{B}.annotations": {QUEUE: "q"}},
        {f"{A}.labels": {QUEUE: "q"}, f"{A}.annotations": {QUEUE: "other"}},
    ],
)
def test_a_set_with_one_queue_is_admitted(changes: dict[str, Any]) -> None:
    assert issues_of(created(queued(changes), SETUP)) == []


@pytest.mark.parametrize(
    ("changes", "issue"),
    [
        (
            {},
            "metadata.labels[kai.scheduler/queue]: Required value: no KAI queue is configured on PodCliqueSet ml/web or its "
            "PodClique templates",
        ),
        (
            {"metadata.labels": {QUEUE: "q"}, f"{B}.labels": {QUEUE: "r"}},
            'spec.template.cliques[1].labels[kai.scheduler/queue]: Invalid value: "r": KAI queue on PodCliqueSet ml/web is "q" '
            'but PodClique template "b" resolves to "r"',
        ),
        (
            {"metadata.annotations": {QUEUE: "q"}, f"{A}.annotations": {QUEUE: "r"}},
            'spec.template.cliques[0].annotations[kai.scheduler/queue]: Invalid value: "r": KAI queue on PodCliqueSet ml/web is "q" '
            'but PodClique template "a" resolves to "r"',
        ),
        (
            {f"{A}.labels": {QUEUE: "r"}, f"{B}.annotations": {QUEUE: "q"}},
            "spec.template.cliques: Invalid value: conflicting KAI queues on PodCliqueSet ml/web PodClique templates: [q r]",
        ),
    ],
)
def test_queues_that_are_missing_or_disagree_deny_the_set(changes: dict[str, Any], issue: str) -> None:
    assert issues_of(created(queued(changes), SETUP)) == [issue]
    assert issues_of(updated(queued({}), queued(changes), SETUP)) == [issue]


@pytest.mark.parametrize("shape", [7, ["q"], {QUEUE: 7}, {QUEUE: None}, None])
def test_metadata_of_any_shape_is_judged(shape: Any) -> None:
    body = queued({"metadata.labels": shape, f"{A}.labels": shape, f"{B}.annotations": shape})

    assert not created(body, SETUP).allowed


def test_a_topology_has_the_levels_of_the_binding() -> None:
    assert TOPOLOGIES.object_for(Levels("hall", (ZONE, RACK))) == {
        "apiVersion": "kai.scheduler/v1alpha1",
        "kind": "Topology",
        "metadata": {"name": "hall"},
        "spec": {"levels": [{"nodeLabel": ZONE}, {"nodeLabel": RACK}]},
    }
    assert (TOPOLOGIES.kind, TOPOLOGIES.policy.immutable) == (kinds.KAI_TOPOLOGY, (("spec", "levels"),))


@pytest.mark.parametrize("spec", [{"levels": [{"nodeLabel": RACK}, {"nodeLabel": ZONE}]}, {"levels": [ZONE]}, {"levels": 7}, None, [], {}])
def test_a_topology_that_differs_from_the_binding_has_drifted(spec: Any) -> None:
    levels = Levels("hall", (ZONE, RACK))
    topology = dict(TOPOLOGIES.object_for(levels))

    assert TOPOLOGIES.drift("hall", live(topology), levels) == ""
    assert TOPOLOGIES.drift("hall", None, levels) == 'KAI Topology "hall" not found'
    drift = TOPOLOGIES.drift("hall", live({**topology, "spec": spec}), levels)
    assert drift == "KAI Topology levels differ from ClusterTopologyBinding levels"


def test_a_foreign_topology_is_named_with_the_binding() -> None:
    conflict = TOPOLOGIES.conflict("hall", Levels("hall", (ZONE,)))

    assert conflict.startswith("KAI Topology hall is not owned by ClusterTopologyBinding hall. ")
