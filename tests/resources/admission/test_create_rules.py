"""Create rules: each issue with its field, its value and its message."""

from time import process_time
from typing import Any

import pytest

from providers.schedulers.kube import KubeScheduler
from resources.admission.computable_rules import collision_issues
from resources.ports.configuration import Configuration
from resources.schema.podcliqueset import SetTemplate
from tests.builders import claim_template
from tests.resources.admission.requests import (
    GONE,
    RACKS,
    SETUP,
    TOPOLOGY,
    clique,
    created,
    issues_of,
    pod_spec,
    put,
    small,
    updated,
    whole,
)

T = "spec.template"
A = f"{T}.cliques[0]"
VARIABLE = (
    "a valid environment variable name must consist of alphabetic characters, digits, '_', '-', or '.', and must not start with a digit "
    "(e.g. 'my.env-name',  or 'MY_ENV.NAME',  or 'MyEnvName1', regex used for validation is '[-._a-zA-Z][-._a-zA-Z0-9]*')"
)
TOO_LONG = "exceeds 45-character limit required for pod naming. Consider shortening:"
SAME = "the schedulerName for all pods have to be the same"
ENABLED = (
    "schedulerName must be an enabled scheduler backend; this scheduler is not enabled in OperatorConfiguration; there is default-scheduler"
)
TWO: dict[str, Any] = {f"{T}.cliques.+": clique("b")}
GROUP = {"name": "g", "cliqueNames": ["a"], "replicas": 2, "minAvailable": 1}
ONE_GROUP: dict[str, Any] = {**TWO, f"{T}.podCliqueScalingGroups": [GROUP]}
SCALING = f"{T}.cliques.0.spec.autoScalingConfig"


CLIQUES = [
    pytest.param({f"{T}.cliques": []}, [f"{T}.cliques: Required value: at least one PodClique must be defined"], id="there is a clique"),
    pytest.param({f"{T}.cliques": GONE}, [f"{T}.cliques: Required value"], id="cliques cannot be left out"),
    pytest.param({f"{T}.cliques.0.name": ""}, [f"{A}.name: Required value: field cannot be empty"], id="a clique has a name"),
    pytest.param(
        {f"{T}.cliques.0.name": "A_b"},
        [f'{A}.name: Invalid value: "A_b": invalid PodCliqueTemplateSpec name, must be a valid DNS subdomain'],
        id="the name of a clique is a DNS subdomain",
    ),
    pytest.param(
        {f"{T}.cliques.+": clique("a", spec={"roleName": "other"})},
        [f'{T}.cliques[1].name: Duplicate value: "a"'],
        id="no two cliques have one name",
    ),
    pytest.param(
        {f"{T}.cliques.+": clique("b", spec={"roleName": "a"})},
        [f'{T}.cliques[1].spec.roleName: Duplicate value: "a"'],
        id="no two cliques have one role",
    ),
    pytest.param(
        {f"{T}.cliques.0.spec.roleName": GONE, f"{T}.cliques.+": clique("b", spec={"roleName": ""})},
        [
            f'{T}.cliques[1].spec.roleName: Duplicate value: "": roleName is missing, and only one clique of a set may be without one: '
            "write a unique name, e.g. the name of the clique"
        ],
        id="only one clique is without a role",
    ),
    pytest.param(
        {f"{T}.cliques.0.spec.replicas": -1},
        [
            f"{A}.spec.replicas: Invalid value: -1: must be greater than 0",
            f"{A}.spec.minAvailable: Invalid value: 1: minAvailable must not be greater than replicas",
        ],
        id="a clique has pods",
    ),
    pytest.param(
        {f"{T}.cliques.0.spec.minAvailable": 0},
        [f"{A}.spec.minAvailable: Invalid value: 0: must be greater than 0"],
        id="a clique without pods is not available",
    ),
    pytest.param(
        {f"{T}.cliques.0.spec.minAvailable": 3},
        [f"{A}.spec.minAvailable: Invalid value: 3: minAvailable must not be greater than replicas"],
        id="a clique can have its minimum",
    ),
    pytest.param(
        {SCALING: {"minReplicas": 0, "maxReplicas": 2}},
        [f"{A}.spec.autoScalingConfig.minReplicas: Invalid value: 0: must be greater than or equal to podCliqueSpec.minAvailable"],
        id="an autoscaler keeps a clique available",
    ),
    pytest.param(
        {SCALING: {"minReplicas": 5, "maxReplicas": 4}},
        [f"{A}.spec.autoScalingConfig.maxReplicas: Invalid value: 4: must be greater than or equal to podCliqueSpec.minReplicas"],
        id="an autoscaler of a clique has room",
    ),
    pytest.param(
        {SCALING: {"minReplicas": 1, "maxReplicas": 1}},
        [f"{A}.spec.autoScalingConfig.maxReplicas: Invalid value: 1: must be greater than or equal to replicas"],
        id="an autoscaler of a clique allows what is asked for",
    ),
    pytest.param(
        {SCALING: {"maxReplicas": 1}},
        [f"{A}.spec.autoScalingConfig.maxReplicas: Invalid value: 1: must be greater than or equal to replicas"],
        id="the minimum of an autoscaler of a clique is by default its replicas",
    ),
    pytest.param(
        {f"{T}.cliques.0.spec.podSpec.topologySpreadConstraints": []},
        [f"{A}.spec.podSpec.topologySpreadConstraints: Invalid value: a list: must not be set"],
        id="pods are not spread",
    ),
    pytest.param(
        {f"{T}.cliques.0.spec.podSpec.nodeName": "n1"},
        [f'{A}.spec.podSpec.nodeName: Invalid value: "n1": must not be set'],
        id="pods are not bound by their author",
    ),
    pytest.param(
        {f"{T}.cliques.0.spec.podSpec.containers.0.env": [{"name": "1"}]},
        [f'{A}.spec.podSpec.containers[0].env[0].name: Invalid value: "1": {VARIABLE}'],
        id="variables have the names of variables",
    ),
    pytest.param(
        {f"{T}.cliques.0.spec.podSpec.initContainers": [{"name": "i", "env": [{"name": "A"}, {"name": "..x"}, {"name": "A"}]}]},
        [
            f"{A}.spec.podSpec.initContainers[0].env[1].name: Invalid value: \"..x\": must not start with '..'",
            f'{A}.spec.podSpec.initContainers[0].env[2].name: Duplicate value: "A"',
        ],
        id="no variable is set twice",
    ),
    pytest.param(
        {f"{T}.cliques.0.spec.podSpec.containers": []},
        [f"{A}.spec.podSpec.containers: Required value: at least one container must be defined"],
        id="a pod has a container",
    ),
]

LENGTHS = [
    pytest.param(
        {"metadata.name": "w" * 20, f"{T}.cliques.0.name": "a" * 26},
        [
            f'{path}: Invalid value: "{name}": combined resource name length 46 {TOO_LONG} '
            f"PodCliqueSet '{'w' * 20}' or PodClique '{'a' * 26}'"
            for path, name in ((f"{A}.name", "a" * 26), ("metadata.name", "w" * 20))
        ],
        id="set and clique have 45 characters",
    ),
    pytest.param(
        {**ONE_GROUP, "metadata.name": "w" * 20, f"{T}.podCliqueScalingGroups.0.name": "g" * 25},
        [
            f'{path}: Invalid value: "{name}": combined resource name length 46 {TOO_LONG} '
            f"PodCliqueSet '{'w' * 20}', PodCliqueScalingGroup '{'g' * 25}', or PodClique 'a'"
            for path, name in (
                (f"{T}.podCliqueScalingGroups[0].cliqueNames[0]", "a"),
                (f"{T}.podCliqueScalingGroups[0].name", "g" * 25),
                ("metadata.name", "w" * 20),
            )
        ],
        id="set, group and clique have 45 characters",
    ),
    pytest.param(
        {"metadata.name": GONE, "metadata.generateName": "w" * 40, f"{T}.cliques.0.name": "a"},
        [
            f"{path}: Invalid value: \"{name}\": combined resource name length 46 {TOO_LONG} PodCliqueSet '{'w' * 40}' or PodClique 'a'"
            for path, name in ((f"{A}.name", "a"), ("metadata.name", "w" * 40))
        ],
        id="what is to be added to a name counts",
    ),
    pytest.param({"metadata.name": "w" * 20, f"{T}.cliques.0.name": "a" * 25}, [], id="45 characters are enough"),
]

GROUPS = [
    pytest.param(
        {**ONE_GROUP, f"{T}.podCliqueScalingGroups.0.name": ""},
        [f'{T}.podCliqueScalingGroups[0].name: Invalid value: "": invalid PodCliqueScalingGroupConfig name, must be a valid DNS subdomain'],
        id="the name of a group is a DNS subdomain",
    ),
    pytest.param(
        {**ONE_GROUP, f"{T}.podCliqueScalingGroups.0.cliqueNames": ["a", "x", "y"]},
        [f'{T}.podCliqueScalingGroups[0].cliqueNames: Invalid value: "x,y": unidentified PodClique names found; there are a, b'],
        id="a group is of cliques that are there",
    ),
    pytest.param(
        {**ONE_GROUP, f"{T}.podCliqueScalingGroups.0.cliqueNames": []},
        [f"{T}.podCliqueScalingGroups[0].cliqueNames: Required value: at least one PodClique must be named"],
        id="a group is of somebody",
    ),
    pytest.param(
        {**ONE_GROUP, f"{T}.podCliqueScalingGroups.0.replicas": 0},
        [
            f"{T}.podCliqueScalingGroups[0].replicas: Invalid value: 0: must be greater than 0",
            f"{T}.podCliqueScalingGroups[0].minAvailable: Invalid value: 1: minAvailable must not be greater than replicas",
        ],
        id="a group has replicas",
    ),
    pytest.param(
        {**ONE_GROUP, f"{T}.podCliqueScalingGroups.0.minAvailable": -2},
        [f"{T}.podCliqueScalingGroups[0].minAvailable: Invalid value: -2: must be greater than 0"],
        id="a group without replicas is not available",
    ),
    pytest.param(
        {**ONE_GROUP, f"{T}.podCliqueScalingGroups.0.minAvailable": 3},
        [f"{T}.podCliqueScalingGroups[0].minAvailable: Invalid value: 3: minAvailable must not be greater than replicas"],
        id="a group can have its minimum",
    ),
    pytest.param(
        {**ONE_GROUP, f"{T}.podCliqueScalingGroups.0.scaleConfig": {"minReplicas": 0, "maxReplicas": 3}},
        [
            f"{T}.podCliqueScalingGroups[0].scaleConfig.minReplicas: Invalid value: 0: "
            "scaleConfig.minReplicas must be greater than or equal to minAvailable"
        ],
        id="an autoscaler keeps a group available",
    ),
    pytest.param(
        {**ONE_GROUP, f"{T}.podCliqueScalingGroups.0.scaleConfig": {"minReplicas": 4, "maxReplicas": 1}},
        [
            f"{T}.podCliqueScalingGroups[0].scaleConfig.maxReplicas: Invalid value: 1: scaleConfig.maxReplicas must be greater than or "
            f"equal to {floor}"
            for floor in ("scaleConfig.minReplicas", "replicas")
        ],
        id="an autoscaler of a group has room and allows what is asked for (Q23)",
    ),
    pytest.param(
        {**ONE_GROUP, f"{T}.podCliqueScalingGroups.0.scaleConfig": {"maxReplicas": 1}},
        [
            f"{T}.podCliqueScalingGroups[0].scaleConfig.maxReplicas: Invalid value: 1: scaleConfig.maxReplicas must be greater than or "
            "equal to replicas"
        ],
        id="the minimum of an autoscaler of a group is by default its replicas",
    ),
    pytest.param(
        {**ONE_GROUP, f"{T}.podCliqueScalingGroups.+": {**GROUP, "cliqueNames": ["b"]}},
        [f'{T}.podCliqueScalingGroups[1].name: Duplicate value: "g"'],
        id="no two groups have one name",
    ),
    pytest.param(
        {**ONE_GROUP, f"{T}.podCliqueScalingGroups.+": {**GROUP, "name": "h", "cliqueNames": ["b", "a"]}},
        [f'{T}.podCliqueScalingGroups[1].cliqueNames[1]: Duplicate value: "a"'],
        id="a clique is in one group",
    ),
    pytest.param(
        {**ONE_GROUP, SCALING: {"maxReplicas": 4}},
        [
            f'{T}.podCliqueScalingGroups[0].cliqueNames[0]: Invalid value: "a": '
            "AutoScalingConfig is not allowed to be defined for PodClique that is part of scaling group"
        ],
        id="a clique in a group is scaled with the group alone",
    ),
    pytest.param(
        {f"{T}.terminationDelay": "0s"},
        [f'{T}.terminationDelay: Invalid value: "0s": terminationDelay must be greater than 0'],
        id="a breach is borne for some time",
    ),
    pytest.param(
        {f"{T}.terminationDelay": "soon"},
        [f'{T}.terminationDelay: must be a duration such as 30s, 4h or 1h30m, got "soon"'],
        id="a delay is a duration",
    ),
]

SCHEDULERS = [
    pytest.param(
        {**TWO, f"{T}.cliques.1.spec.podSpec.schedulerName": "other"},
        [
            f'{T}.cliques[1].spec.podSpec.schedulerName: Invalid value: "default-scheduler, other": {SAME}',
            f'{T}.cliques[1].spec.podSpec.schedulerName: Invalid value: "other": {ENABLED}',
        ],
        id="all pods have one scheduler",
    ),
    pytest.param(
        {f"{T}.cliques.0.spec.podSpec.schedulerName": "other"},
        [f'{A}.spec.podSpec.schedulerName: Invalid value: "other": {ENABLED}'],
        id="the scheduler is one that is enabled",
    ),
    pytest.param({**TWO, f"{T}.cliques.1.spec.podSpec.schedulerName": "default-scheduler"}, [], id="naming the default is naming nobody"),
]

DEPRECATED = "Forbidden: packDomain is deprecated and cannot be used on new workloads; use pack.required"
OLD = [
    pytest.param(
        {
            **ONE_GROUP,
            f"{T}.topologyConstraint": {"topologyName": "racks", "packDomain": "zone"},
            f"{T}.cliques.0.topologyConstraint": {"packDomain": "rack"},
            f"{T}.podCliqueScalingGroups.0.topologyConstraint": {"packDomain": "rack"},
        },
        [f"{holder}.topologyConstraint.packDomain: {DEPRECATED}" for holder in (T, A, f"{T}.podCliqueScalingGroups[0]")],
        id="what is deprecated is not used anew",
    ),
]


@pytest.mark.parametrize(("changes", "issues"), [*CLIQUES, *LENGTHS, *GROUPS, *SCHEDULERS, *OLD])
def test_a_new_set(changes: dict[str, Any], issues: list[str]) -> None:
    body = put(small(), changes)

    assert issues_of(created(body, TOPOLOGY, RACKS)) == issues


def test_a_set_with_every_feature_is_admitted_without_warnings() -> None:
    decision = created(whole(), TOPOLOGY, RACKS)

    assert (issues_of(decision), decision.warnings, decision.allowed) == ([], (), True)


def test_all_issues_are_reported_together() -> None:
    body = put(
        whole(),
        {
            "metadata.name": "Web",
            "spec.replicas": -1,
            f"{T}.topologyConstraint.topologyName": "nobody",
            f"{T}.cliques.0.spec.minAvailable": 9,
            f"{T}.cliques.1.name": "",
            f"{T}.cliques.2.spec.podSpec.nodeName": "n1",
            f"{T}.podCliqueScalingGroups.0.scaleConfig.maxReplicas": 1,
            f"{T}.resourceSharing.1.name": "",
            f"{T}.terminationDelay": "-1s",
            "metadata.annotations": {"grove.io/auto-mnnvl": "maybe"},
        },
    )

    fields = {issue.field for issue in created(body, TOPOLOGY, RACKS).issues}

    assert fields == {
        "metadata.annotations.grove.io/auto-mnnvl",
        "metadata.name",
        "spec.replicas",
        f"{T}.topologyConstraint.topologyName",
        f"{T}.cliques[0].spec.minAvailable",
        f"{T}.cliques[0].spec.autoScalingConfig.minReplicas",
        f"{T}.cliques[1].name",
        f"{T}.cliques[2].spec.podSpec.nodeName",
        f"{T}.cliques[2].spec.startsAfter",
        f"{T}.podCliqueScalingGroups[0].cliqueNames",
        f"{T}.podCliqueScalingGroups[0].scaleConfig.maxReplicas",
        f"{T}.resourceSharing[1].name",
        f"{T}.terminationDelay",
    }


def test_rules_for_new_sets_do_not_apply_to_updates() -> None:
    spread = [{"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}]
    old = put(small(), {f"{T}.cliques.0.spec.podSpec": pod_spec(nodeName="n1", topologySpreadConstraints=spread)})

    assert len(created(old).issues) == 2
    assert issues_of(updated(old, put(old, {"spec.replicas": 2}))) == []


def test_a_set_without_scheduler_name_needs_a_default_back_end() -> None:
    setup = Configuration({"default-scheduler": KubeScheduler()}, "volcano")

    assert issues_of(created(small(), setup)) == ["spec: Invalid value: default scheduler backend is not configured"]
    assert issues_of(created(put(small(), {f"{T}.cliques.0.spec.podSpec.schedulerName": "default-scheduler"}), setup)) == []


def test_a_minimum_that_is_the_default_is_not_blamed_for_too_few_replicas() -> None:
    body = put(small(), {f"{T}.cliques.0.spec.replicas": -3, f"{T}.cliques.0.spec.minAvailable": GONE})

    assert issues_of(created(body)) == [f"{A}.spec.replicas: Invalid value: -3: must be greater than 0"]


@pytest.mark.parametrize(("policy", "warned"), [("Always", False), ("", False), ("Never", True), ("OnFailure", True)])
def test_a_restart_policy_other_than_always_is_a_warning(policy: str, warned: bool) -> None:
    decision = created(put(small(), {f"{T}.cliques.0.spec.podSpec.restartPolicy": policy}))

    assert decision.allowed
    text = f"restartPolicy: {policy} is kept: a pod that fails is replaced, one that succeeds is not"
    assert decision.warnings == ((text,) if warned else ())


def test_a_clique_without_replicas_has_one_pod_and_needs_it() -> None:
    said = put(small(), {f"{T}.cliques.0.spec.replicas": GONE, f"{T}.cliques.0.spec.minAvailable": GONE})

    decision = created(said, SETUP)

    assert decision.allowed and decision.body is not None
    assert decision.body["spec"]["template"]["cliques"][0]["spec"]["minAvailable"] == 1


ALIKE = "would have the name of that of"
AUTOSCALED = {"maxReplicas": 4}
SHARED = [{"name": "device", "scope": "AllReplicas"}]
OWN_TEMPLATES = {f"{T}.resourceClaimTemplates": [claim_template("device"), claim_template("a-all-device")]}
GROUP_OF_B: dict[str, Any] = {**TWO, f"{T}.podCliqueScalingGroups": [{**GROUP, "name": "a", "cliqueNames": ["b"]}]}


@pytest.mark.parametrize(
    ("changes", "issues"),
    [
        pytest.param(
            {**ONE_GROUP, f"{T}.cliques.1": clique("g-3-a")},
            [f"{T}.cliques[1].name: Duplicate value: \"g-3-a\": its PodClique {ALIKE} clique 'a' of scaling group 'g', e.g. web-0-g-3-a"],
            id="a clique and one of a replica that the group may be scaled to",
        ),
        pytest.param({**ONE_GROUP, f"{T}.cliques.1": clique("g-03-a")}, [], id="no replica has a leading zero"),
        pytest.param(
            {
                **TWO,
                f"{T}.cliques.0.name": "x",
                f"{T}.cliques.1.name": "1-x",
                f"{T}.podCliqueScalingGroups": [{**GROUP, "name": "g-0", "cliqueNames": ["x"]}, {**GROUP, "cliqueNames": ["1-x"]}],
            },
            [f"{T}.cliques[1].name: Duplicate value: \"1-x\": its PodClique {ALIKE} clique 'x' of scaling group 'g-0', e.g. web-0-g-0-1-x"],
            id="cliques of two groups",
        ),
        pytest.param(GROUP_OF_B, [], id="a clique and a group may have one name"),
        pytest.param(
            {**GROUP_OF_B, SCALING: AUTOSCALED, f"{T}.podCliqueScalingGroups.0.scaleConfig": AUTOSCALED},
            [f"{T}.podCliqueScalingGroups[0].name: Duplicate value: \"a\": its HorizontalPodAutoscaler {ALIKE} clique 'a', e.g. web-0-a"],
            id="but not two autoscalers",
        ),
        pytest.param(
            {
                **OWN_TEMPLATES,
                **GROUP_OF_B,
                f"{T}.cliques.0.resourceSharing": SHARED,
                f"{T}.podCliqueScalingGroups.0.resourceSharing": SHARED,
                f"{T}.resourceSharing": [{"name": "a-all-device", "scope": "PerReplica"}],
            },
            [
                f'{A}.resourceSharing[0].name: Duplicate value: "device": its ResourceClaim {ALIKE} the set, e.g. web-0-a-all-device',
                f'{T}.podCliqueScalingGroups[0].resourceSharing[0].name: Duplicate value: "device": its ResourceClaim {ALIKE} the set, '
                "e.g. web-0-a-all-device",
            ],
            id="nor claims",
        ),
    ],
)
def test_no_two_objects_of_a_new_set_get_one_name(changes: dict[str, Any], issues: list[str]) -> None:
    body = put(small(), changes)

    assert issues_of(created(body)) == [f"{issue}: rename one of them" for issue in issues]
    assert issues_of(updated(body, put(body, {"spec.replicas": 2}))) == []


def test_names_of_many_cliques_are_compared_in_a_moment() -> None:
    cliques = [clique(f"w-{number}") for number in range(5000)]
    template = SetTemplate.model_validate({"cliques": cliques})

    before = process_time()
    assert list(collision_issues("web", template)) == []
    assert process_time() - before < 5
