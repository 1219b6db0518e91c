"""Update rules: immutable fields, mutable fields, deprecated fields."""

from typing import Any

import pytest

from resources.ports.configuration import Configuration
from tests.resources.admission.graphs import KAI
from tests.resources.admission.requests import (
    GONE,
    RACKS,
    TOPOLOGY,
    binding,
    clique,
    created,
    issues_of,
    put,
    references_to,
    small,
    updated,
    whole,
)

SCHEDULERS_OF_TWO = ("default-scheduler", "kai-scheduler")
T = "spec.template"
FRONT, LEAD, WORK = (f"{T}.cliques[{number}]" for number in range(3))
MODEL = f"{T}.podCliqueScalingGroups[0]"
ORDER = "clique order cannot be changed when StartupType is InOrder or Explicit. Expected"
OTHER = {"name": "other", "cliqueNames": ["front"]}
CLIQUES = {entry["name"]: entry for entry in whole()["spec"]["template"]["cliques"]}
NO_SCALING = {f"{T}.cliques.0.spec.autoScalingConfig": GONE}

COMPOSITION = [
    pytest.param(
        {f"{T}.cliques.+": clique("new")},
        [
            f"{T}.cliques: Forbidden: not allowed to change clique composition",
            f"{T}.cliques[3].name: Forbidden: not allowed to change clique composition, new clique name 'new' is not allowed",
        ],
        id="no clique is added",
    ),
    pytest.param(
        {
            f"{T}.cliques": [CLIQUES["lead"], CLIQUES["work"]],
            f"{T}.cliques.1.spec.startsAfter": ["lead"],
            f"{T}.resourceSharing.0.filter.childCliqueNames": ["lead"],
        },
        [
            f"{T}.cliques: Forbidden: not allowed to change clique composition",
            f"{T}.cliques[0].name: Invalid value: \"lead\": {ORDER} 'front' at position 0, got 'lead'",
            f"{T}.cliques[1].name: Invalid value: \"work\": {ORDER} 'lead' at position 1, got 'work'",
            f"{T}.cliques[1].spec.startsAfter: Invalid value: a list: field is immutable",
            f"{T}.resourceSharing: Invalid value: a list: field is immutable",
        ],
        id="no clique is taken away",
    ),
    pytest.param(
        {f"{T}.cliques": [CLIQUES["lead"], CLIQUES["front"], CLIQUES["work"]]},
        [
            f"{T}.cliques[0].name: Invalid value: \"lead\": {ORDER} 'front' at position 0, got 'lead'",
            f"{T}.cliques[1].name: Invalid value: \"front\": {ORDER} 'lead' at position 1, got 'front'",
        ],
        id="an order that counts stays",
    ),
    pytest.param(
        {**NO_SCALING, f"{T}.podCliqueScalingGroups.+": OTHER},
        [
            f"{T}.podCliqueScalingGroups: Forbidden: not allowed to add or remove PodCliqueScalingGroupConfigs",
            f"{T}.podCliqueScalingGroups[1].name: Forbidden: "
            "not allowed to change scaling group composition, new scaling group name 'other' is not allowed",
        ],
        id="no group is added",
    ),
    pytest.param(
        {f"{T}.podCliqueScalingGroups": [], f"{T}.resourceSharing.0.filter.childScalingGroupNames": GONE},
        [
            f"{T}.podCliqueScalingGroups: Forbidden: not allowed to add or remove PodCliqueScalingGroupConfigs",
            f"{T}.resourceSharing: Invalid value: a list: field is immutable",
        ],
        id="no group is taken away",
    ),
    pytest.param(
        {f"{T}.podCliqueScalingGroups.0.name": "renamed", f"{T}.resourceSharing.0.filter.childScalingGroupNames": ["renamed"]},
        [
            f"{MODEL}.name: Forbidden: not allowed to change scaling group composition, new scaling group name 'renamed' is not allowed",
            f"{T}.resourceSharing: Invalid value: a list: field is immutable",
        ],
        id="no group gets another name",
    ),
]

FIELDS = [
    pytest.param(
        {f"{T}.cliqueStartupType": "CliqueStartupTypeInOrder"},
        [f'{T}.cliqueStartupType: Invalid value: "CliqueStartupTypeInOrder": field is immutable'],
        id="the kind of order",
    ),
    pytest.param(
        {f"{T}.cliques.0.spec.roleName": "other"}, [f'{FRONT}.spec.roleName: Invalid value: "other": field is immutable'], id="a role"
    ),
    pytest.param(
        {f"{T}.cliques.2.spec.minAvailable": 2},
        [f"{WORK}.spec.minAvailable: Invalid value: 2: field is immutable"],
        id="a clique's minimum",
    ),
    pytest.param(
        {f"{T}.cliques.2.spec.startsAfter": ["front", "lead"]},
        [f"{WORK}.spec.startsAfter: Invalid value: a list: field is immutable"],
        id="whom a clique starts after",
    ),
    pytest.param(
        {f"{T}.cliques.{number}.spec.podSpec.schedulerName": "default-scheduler" for number in range(3)},
        [],
        id="the scheduler that is the default",
    ),
    pytest.param(
        {f"{T}.cliques.0.resourceSharing": []},
        [f"{FRONT}.resourceSharing: Invalid value: a list: field is immutable"],
        id="what a clique shares",
    ),
    pytest.param(
        {f"{T}.podCliqueScalingGroups.0.cliqueNames": ["work", "lead"]},
        [f"{MODEL}.cliqueNames: Invalid value: a list: field is immutable"],
        id="the members of a group, and their order",
    ),
    pytest.param(
        {f"{T}.podCliqueScalingGroups.0.minAvailable": 2, f"{T}.podCliqueScalingGroups.0.scaleConfig.minReplicas": 2},
        [f"{MODEL}.minAvailable: Invalid value: 2: field is immutable"],
        id="a group's minimum",
    ),
    pytest.param(
        {f"{T}.podCliqueScalingGroups.0.resourceSharing.0.scope": "PerReplica"},
        [f"{MODEL}.resourceSharing: Invalid value: a list: field is immutable"],
        id="what a group shares",
    ),
    pytest.param(
        {f"{T}.resourceClaimTemplates.0.templateSpec.spec.devices.requests.0.name": "card"},
        [f"{T}.resourceClaimTemplates: Invalid value: a list: field is immutable"],
        id="the claim templates",
    ),
    pytest.param(
        {f"{T}.resourceSharing.1.scope": "AllReplicas"},
        [f"{T}.resourceSharing: Invalid value: a list: field is immutable"],
        id="what the set shares",
    ),
    pytest.param(
        {"metadata.annotations": {"grove.io/auto-mnnvl": "enabled"}},
        [
            'metadata.annotations.grove.io/auto-mnnvl: Invalid value: "enabled": annotation grove.io/auto-mnnvl is immutable and cannot be '
            'changed from "disabled" to "enabled"'
        ],
        id="what a fabric was told",
    ),
]

WHOLE, GROUP = f"{T}.topologyConstraint", f"{MODEL}.topologyConstraint"
TOPOLOGIES = [
    pytest.param(
        {f"{T}.cliques.1.topologyConstraint": {"pack": {"required": "host"}}},
        [f"{LEAD}.topologyConstraint: Forbidden: PodClique 'lead' topology constraint cannot be added after creation"],
        id="no constraint is added",
    ),
    pytest.param(
        {f"{T}.podCliqueScalingGroups.0.topologyConstraint": GONE},
        [f"{GROUP}: Forbidden: PodCliqueScalingGroup 'model' topology constraint cannot be removed after creation"],
        id="no constraint is taken away",
    ),
    pytest.param(
        {f"{T}.topologyConstraint": GONE},
        [f"{WHOLE}: Forbidden: PodCliqueSet topology constraint cannot be removed after creation"],
        id="nor that of the set",
    ),
    pytest.param(
        {f"{T}.topologyConstraint.topologyName": "other"},
        [f'{WHOLE}.topologyName: Forbidden: topologyName cannot be changed from "racks" to "other"'],
        id="the binding stays",
    ),
    pytest.param(
        {f"{T}.cliques.0.topologyConstraint.topologyName": "racks"},
        [f"{FRONT}.topologyConstraint: Forbidden: PodClique 'front' topology constraint topologyName cannot be changed from '' to 'racks'"],
        id="a part that has inherited the binding keeps to that",
    ),
    pytest.param(
        {f"{T}.topologyConstraint.pack": {"required": "zone"}},
        [
            f"{WHOLE}: Forbidden: PodCliqueSet topology constraint cannot be changed from "
            'required="zone" preferred="rack" to required="zone" preferred=""'
        ],
        id="the domains stay",
    ),
    pytest.param(
        {f"{T}.cliques.0.topologyConstraint": {"packDomain": "rack"}},
        [
            f"{FRONT}.topologyConstraint: Forbidden: PodClique 'front' topology constraint cannot be changed from "
            'required="rack" preferred="" to required="rack" preferred=""'
        ],
        id="nobody goes back to what is deprecated",
    ),
]


@pytest.mark.parametrize("default", SCHEDULERS_OF_TWO)
@pytest.mark.parametrize("named", SCHEDULERS_OF_TWO)
def test_the_default_scheduler_may_be_spelled_and_no_other_one(default: str, named: str) -> None:
    field = f"{T}.cliques.0.spec.podSpec.schedulerName"
    configuration = Configuration(KAI.schedulers, default)
    unnamed = put(small(), {"metadata.labels": {"kai.scheduler/queue": "a"}})
    spelled = put(unnamed, {field: named})
    refused = [] if named == default else [f'{T}.cliques[0].spec.podSpec.schedulerName: Invalid value: "{named}": field is immutable']

    assert issues_of(updated(unnamed, spelled, configuration)) == refused
    assert [issue.path[-1] for issue in updated(spelled, unnamed, configuration).issues] == (["schedulerName"] if refused else [])


@pytest.mark.parametrize(("changes", "issues"), [*COMPOSITION, *FIELDS, *TOPOLOGIES])
def test_immutable_fields(changes: dict[str, Any], issues: list[str]) -> None:
    assert issues_of(updated(whole(), put(whole(), changes), TOPOLOGY, RACKS)) == issues


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({}, id="nothing"),
        pytest.param({"spec.replicas": 7}, id="the replicas"),
        pytest.param({"spec.updateStrategy": GONE}, id="how edits reach the pods"),
        pytest.param({f"{T}.terminationDelay": "4h"}, id="the delay"),
        pytest.param({f"{T}.priorityClassName": "low"}, id="the priority"),
        pytest.param({f"{T}.headlessServiceConfig": {}}, id="the service"),
        pytest.param({f"{T}.cliques.0.spec.podSpec.containers.0.image": "example/worker:2"}, id="a pod spec"),
        pytest.param({f"{T}.cliques.0.labels": {}, f"{T}.cliques.0.annotations": {"x": "y"}}, id="labels and annotations of a clique"),
        pytest.param({f"{T}.cliques.0.spec.replicas": 4}, id="the replicas of a clique"),
        pytest.param({f"{T}.cliques.0.spec.autoScalingConfig.maxReplicas": 50}, id="the autoscaler of a clique"),
        pytest.param({f"{T}.podCliqueScalingGroups.0.replicas": 4}, id="the replicas of a group"),
        pytest.param({f"{T}.podCliqueScalingGroups.0.annotations": {}}, id="annotations of a group"),
        pytest.param({f"{T}.podCliqueScalingGroups.0.scaleConfig": GONE}, id="the autoscaler of a group"),
        pytest.param({"metadata.labels": {}}, id="labels of the set"),
    ],
)
def test_mutable_fields(changes: dict[str, Any]) -> None:
    assert issues_of(updated(whole(), put(whole(), changes), TOPOLOGY, RACKS)) == []


def test_the_order_of_cliques_may_change_if_they_start_in_any_order() -> None:
    old = small(cliques=[clique("a"), clique("b")])

    assert issues_of(updated(old, small(cliques=[clique("b"), clique("a")]))) == []


def test_a_version_with_issues_of_its_own_is_not_compared_with_the_stored_one() -> None:
    new = put(whole(), {"spec.replicas": -1, f"{T}.cliques.0.spec.roleName": "other"})

    assert issues_of(updated(whole(), new, TOPOLOGY, RACKS)) == ["spec.replicas: Invalid value: -1: must be greater than or equal to 0"]


def test_a_malformed_stored_set_may_be_replaced() -> None:
    broken = put(whole(), {f"{T}.cliques": "nothing", f"{T}.cliqueStartupType": "Whatever"})

    assert issues_of(updated(broken, whole(), TOPOLOGY, RACKS)) == []


def test_replicas_may_change_without_repeating_min_available() -> None:
    silent = put(small(), {f"{T}.cliques.0.spec.minAvailable": GONE})
    stored = created(silent).body

    decision = updated(stored, put(silent, {f"{T}.cliques.0.spec.replicas": 3}))

    assert issues_of(decision) == []
    assert decision.body is not None
    assert decision.body["spec"]["template"]["cliques"][0]["spec"]["minAvailable"] == 2


def test_stating_a_default_is_no_change() -> None:
    said = put(small(), {f"{T}.cliqueStartupType": "CliqueStartupTypeAnyOrder", f"{T}.cliques.0.spec.startsAfter": []})

    assert issues_of(updated(small(), said)) == []


def test_existing_constraints_are_kept_when_topology_is_disabled() -> None:
    assert len(created(whole()).issues) == 3
    assert issues_of(updated(whole(), put(whole(), {"spec.replicas": 3}))) == []


# What an old set may keep, and how it may be brought up to date.

LEGACY = put(
    small(),
    {
        f"{T}.topologyConstraint": {"topologyName": "racks", "packDomain": "zone", "pack": {"preferred": "rack"}},
        f"{T}.cliques.0.topologyConstraint": {"packDomain": "rack"},
    },
)
MIGRATION = (
    "deprecated packDomain migration can only move packDomain to pack.required without changing the required or preferred topology domain"
)


def test_a_deprecated_field_is_kept_with_a_warning() -> None:
    decision = updated(LEGACY, put(LEGACY, {"spec.replicas": 2}), TOPOLOGY, RACKS)

    assert issues_of(decision) == []
    assert decision.warnings == (
        "spec.template.topologyConstraint.packDomain is deprecated; use spec.template.topologyConstraint.pack.required instead",
        "spec.template.cliques[0].topologyConstraint.packDomain is deprecated; "
        "use spec.template.cliques[0].topologyConstraint.pack.required instead",
    )


@pytest.mark.parametrize(
    ("constraint", "issues"),
    [
        pytest.param({"topologyName": "racks", "pack": {"required": "zone", "preferred": "rack"}}, [], id="to the same domains"),
        pytest.param(
            {"topologyName": "racks", "pack": {"required": "rack", "preferred": "rack"}},
            [
                f"{WHOLE}: Forbidden: PodCliqueSet topology constraint {MIGRATION} "
                '(old required="zone" preferred="rack", new required="rack" preferred="rack")'
            ],
            id="not to another domain",
        ),
        pytest.param(
            {"topologyName": "other", "pack": {"required": "zone", "preferred": "rack"}},
            [f'{WHOLE}.topologyName: Forbidden: topologyName cannot be changed from "racks" to "other"'],
            id="not to another binding",
        ),
    ],
)
def test_a_deprecated_field_may_be_migrated(constraint: dict[str, Any], issues: list[str]) -> None:
    assert issues_of(updated(LEGACY, put(LEGACY, {f"{T}.topologyConstraint": constraint}), TOPOLOGY, RACKS)) == issues


NAMELESS = put(LEGACY, {f"{T}.topologyConstraint.topologyName": GONE})


def test_a_deprecated_constraint_may_get_a_topology_name() -> None:
    assert issues_of(updated(NAMELESS, LEGACY, TOPOLOGY, RACKS)) == []
    assert issues_of(updated(NAMELESS, LEGACY)) == []


def test_a_constraint_that_gets_a_topology_name_is_validated_like_a_new_one() -> None:
    assert issues_of(updated(NAMELESS, LEGACY, TOPOLOGY, references_to(binding("rack", "zone")))) == [
        f"{WHOLE}: Invalid value: \"zone\": PodCliqueSet topology constraint domain 'zone' is narrower than "
        "PodClique 'a' topology constraint domain 'rack'"
    ]
    assert issues_of(updated(NAMELESS, LEGACY, TOPOLOGY, references_to())) == [
        f'{WHOLE}.topologyName: Invalid value: "racks": ClusterTopologyBinding "racks" not found; there are none'
    ]


def test_without_known_bindings_a_constraint_that_gets_a_name_is_not_checked_and_that_is_a_warning() -> None:
    decision = updated(NAMELESS, LEGACY, TOPOLOGY)

    assert issues_of(decision) == []
    assert 'topology constraints were not checked against ClusterTopologyBinding "racks", which was not read' in decision.warnings
