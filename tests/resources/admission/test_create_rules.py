"""Creation: what a PodCliqueSet must be, each fault with its field, its value and its words."""

from typing import Any

import pytest

from providers.schedulers.kube import KubeScheduler
from resources.setup import Setup
from tests.resources.admission.asking import GONE, RACKS, SETUP, TOPOLOGY, clique, created, pod_spec, put, small, told, updated, whole

T = "spec.template"
A = f"{T}.cliques[0]"
SUBDOMAIN = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an "
    "alphanumeric character (e.g. 'example.com', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
LABEL = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric "
    "character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)
QUALIFIED = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. "
    "'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
VALUE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "
    "alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
    "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)
VARIABLE = (
    "a valid environment variable name must consist of alphabetic characters, digits, '_', '-', or '.', and must not start with a digit "
    "(e.g. 'my.env-name',  or 'MY_ENV.NAME',  or 'MyEnvName1', regex used for validation is '[-._a-zA-Z][-._a-zA-Z0-9]*')"
)
TOO_LONG = "exceeds 45-character limit required for pod naming. Consider shortening:"
SAME = "the schedulerName for all pods have to be the same"
ENABLED = "schedulerName must be an enabled scheduler backend; this scheduler is not enabled in OperatorConfiguration"
CIRCLE = "clique must not have circular dependencies"
TWO: dict[str, Any] = {f"{T}.cliques.+": clique("b")}
GROUP = {"name": "g", "cliqueNames": ["a"], "replicas": 2, "minAvailable": 1}
ONE_GROUP: dict[str, Any] = {**TWO, f"{T}.podCliqueScalingGroups": [GROUP]}
OWN = {"name": "own", "templateSpec": {"spec": {"devices": {"requests": [{"name": "gpu"}]}}}}
EXPLICIT: dict[str, Any] = {f"{T}.cliqueStartupType": "CliqueStartupTypeExplicit", **TWO}
SCALING = f"{T}.cliques.0.spec.autoScalingConfig"


def shares(*entries: dict[str, Any]) -> list[dict[str, Any]]:
    """Entries of `resourceSharing` for all replicas."""
    return [{"scope": "AllReplicas", **entry} for entry in entries]


METADATA = [
    pytest.param({"metadata.name": GONE}, ["metadata.name: Required value: name or generateName is required"], id="it has a name"),
    pytest.param({"metadata.name": "Web"}, [f'metadata.name: Invalid value: "Web": {SUBDOMAIN}'], id="its name is a DNS subdomain"),
    pytest.param(
        {"metadata.name": "", "metadata.generateName": "_x-"},
        [f'metadata.generateName: Invalid value: "_x-": {SUBDOMAIN}'],
        id="so is a name that is to be completed",
    ),
    pytest.param({"metadata.namespace": "M.L"}, [f'metadata.namespace: Invalid value: "M.L": {LABEL}'], id="its namespace is a DNS label"),
    pytest.param(
        {"metadata.labels": {"-a": "b"}}, [f'metadata.labels: Invalid value: "-a": {QUALIFIED}'], id="keys of labels are qualified"
    ),
    pytest.param(
        {"metadata.labels": {"a": "-b"}}, [f'metadata.labels.a: Invalid value: "-b": {VALUE}'], id="values of labels are short words"
    ),
    pytest.param(
        {"metadata.annotations": {"a b": ""}}, [f'metadata.annotations: Invalid value: "a b": {QUALIFIED}'], id="so are keys of annotations"
    ),
    pytest.param(
        {"metadata.annotations": {"a": "x" * 262_144}},
        ["metadata.annotations: Invalid value: may not be more than 262144 bytes"],
        id="annotations weigh at most 256 KiB",
    ),
    pytest.param(
        {"metadata.finalizers": ["-"]}, [f'metadata.finalizers[0]: Invalid value: "-": {QUALIFIED}'], id="finalizers have qualified names"
    ),
    pytest.param(
        {"metadata.creationTimestamp": "yesterday"},
        ['metadata.creationTimestamp: Invalid value: "yesterday": must be a time'],
        id="moments are moments",
    ),
    pytest.param(
        {"spec.replicas": -1},
        ["spec.replicas: Invalid value: -1: must be greater than or equal to 0"],
        id="there are at least zero replicas",
    ),
]

SHARING = [
    pytest.param(
        {f"{T}.resourceClaimTemplates": [{**OWN, "name": ""}]},
        [f"{T}.resourceClaimTemplates[0].name: Required value: template name is required"],
        id="a claim template has a name",
    ),
    pytest.param(
        {f"{T}.resourceClaimTemplates": [{"name": "own", "templateSpec": {"spec": {"devices": {"requests": []}}}}]},
        [f"{T}.resourceClaimTemplates[0].templateSpec.spec.devices.requests: Required value: at least one device request is required"],
        id="a claim template asks for a device",
    ),
    pytest.param(
        {f"{T}.resourceClaimTemplates": [OWN, OWN, OWN]},
        [f'{T}.resourceClaimTemplates[{again}].name: Duplicate value: "own"' for again in (1, 2)],
        id="no two claim templates have one name",
    ),
    pytest.param(
        {f"{T}.resourceSharing": shares({"name": ""})},
        [f"{T}.resourceSharing[0].name: Required value: reference name is required"],
        id="what is shared has a name",
    ),
    pytest.param(
        {f"{T}.cliques.0.resourceSharing": shares({"name": "x"}, {"name": "x"})},
        [f'{A}.resourceSharing[1].name: Duplicate value: "x"'],
        id="nothing is shared twice at one level",
    ),
    pytest.param(
        {f"{T}.resourceClaimTemplates": [OWN], f"{T}.resourceSharing": shares({"name": "own", "namespace": "ml"})},
        [
            f'{T}.resourceSharing[0].namespace: Invalid value: "ml": '
            "namespace must be empty when name matches an internal resourceClaimTemplate"
        ],
        id="a template of the set is in no namespace",
    ),
    pytest.param(
        {f"{T}.resourceSharing": [{"name": "x", "scope": "Some"}]},
        [f'{T}.resourceSharing[0].scope: Unsupported value: "Some": supported values: "AllReplicas", "PerReplica"'],
        id="a scope is one of two",
    ),
    pytest.param(
        {f"{T}.resourceSharing": shares({"name": "x", "filter": {"childCliqueNames": []}})},
        [
            f"{T}.resourceSharing[0].filter: Required value: "
            "filter must specify at least one childCliqueNames or childScalingGroupNames entry"
        ],
        id="a filter of the set names somebody",
    ),
    pytest.param(
        {f"{T}.resourceSharing": shares({"name": "x", "filter": {"childCliqueNames": ["a", "no"], "childScalingGroupNames": ["a"]}})},
        [
            f'{T}.resourceSharing[0].filter.childCliqueNames[1]: Not found: "no"',
            f'{T}.resourceSharing[0].filter.childScalingGroupNames[0]: Not found: "a"',
        ],
        id="a filter of the set names nobody who is not there",
    ),
    pytest.param(
        {**ONE_GROUP, f"{T}.podCliqueScalingGroups.0.resourceSharing": shares({"name": "x", "filter": {}})},
        [
            f"{T}.podCliqueScalingGroups[0].resourceSharing[0].filter: Required value: "
            "filter must specify at least one childCliqueNames entry"
        ],
        id="a filter of a group names somebody",
    ),
    pytest.param(
        {**ONE_GROUP, f"{T}.podCliqueScalingGroups.0.resourceSharing": shares({"name": "x", "filter": {"childCliqueNames": ["b"]}})},
        [f'{T}.podCliqueScalingGroups[0].resourceSharing[0].filter.childCliqueNames[0]: Not found: "b"'],
        id="a filter of a group names its own cliques",
    ),
]

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
        {f"{T}.cliques.0.labels": {"grove.io/": "x"}},
        [f'{A}.labels: Invalid value: "grove.io/": name part must be non-empty', f'{A}.labels: Invalid value: "grove.io/": {QUALIFIED}'],
        id="keys of a clique's labels are qualified",
    ),
    pytest.param(
        {f"{T}.cliques.0.labels": {"example.com/x": "y" * 64}},
        [f'{A}.labels[example.com/x]: Invalid value: "{"y" * 64}": must be no more than 63 characters'],
        id="values of a clique's labels are short",
    ),
    pytest.param(
        {f"{T}.cliques.0.annotations": {"/x": ""}},
        [f'{A}.annotations: Invalid value: "/x": prefix part must be non-empty'],
        id="keys of a clique's annotations are qualified",
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

ORDER = [
    pytest.param(
        {f"{T}.cliqueStartupType": "InOrder"},
        [
            f'{T}.cliqueStartupType: Unsupported value: "InOrder": supported values: '
            '"CliqueStartupTypeAnyOrder", "CliqueStartupTypeInOrder", "CliqueStartupTypeExplicit"'
        ],
        id="an order is one of three",
    ),
    pytest.param(
        {**EXPLICIT, f"{T}.cliques.1.spec.startsAfter": ["a", ""]},
        [f"{T}.cliques[1].spec.startsAfter[1]: Required value: clique dependency must not be empty"],
        id="a clique starts after somebody",
    ),
    pytest.param(
        {**EXPLICIT, f"{T}.cliques.1.spec.startsAfter": ["b"]},
        [f'{T}.cliques[1].spec.startsAfter[0]: Invalid value: "b": clique dependency cannot refer to itself'],
        id="a clique does not start after itself",
    ),
    pytest.param(
        {**EXPLICIT, f"{T}.cliques.1.spec.startsAfter": ["a", "a"]},
        [f'{T}.cliques[1].spec.startsAfter[1]: Duplicate value: "a"'],
        id="a clique starts once after another",
    ),
    pytest.param(
        {**EXPLICIT, f"{T}.cliques.1.spec.startsAfter": ["x", "a", "y"]},
        [
            f'{T}.cliques[1].spec.startsAfter: Invalid value: "x,y": '
            "unknown clique names found, all clique dependencies must be defined as cliques"
        ],
        id="a clique starts after those that are there",
    ),
    pytest.param(
        {**EXPLICIT, f"{T}.cliques.0.spec.startsAfter": ["b"], f"{T}.cliques.1.spec.startsAfter": ["a"]},
        [f'{T}.cliques: Invalid value: "a, b": {CIRCLE}'],
        id="cliques do not wait for one another",
    ),
    pytest.param({**TWO, f"{T}.cliques.1.spec.startsAfter": ["b", "nobody"]}, [], id="an order counts only where it is asked for"),
]

GROUPS = [
    pytest.param(
        {**ONE_GROUP, f"{T}.podCliqueScalingGroups.0.name": ""},
        [f'{T}.podCliqueScalingGroups[0].name: Invalid value: "": invalid PodCliqueScalingGroupConfig name, must be a valid DNS subdomain'],
        id="the name of a group is a DNS subdomain",
    ),
    pytest.param(
        {**ONE_GROUP, f"{T}.podCliqueScalingGroups.0.cliqueNames": ["a", "x", "y"]},
        [f'{T}.podCliqueScalingGroups[0].cliqueNames: Invalid value: "x,y": unidentified PodClique names found'],
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


@pytest.mark.parametrize(("changes", "issues"), [*METADATA, *SHARING, *CLIQUES, *LENGTHS, *ORDER, *GROUPS, *SCHEDULERS, *OLD])
def test_a_new_set(changes: dict[str, Any], issues: list[str]) -> None:
    body = put(small(), changes)

    assert told(created(body, TOPOLOGY, RACKS)) == issues


def test_a_set_that_uses_everything_there_is_is_admitted_without_a_word() -> None:
    decision = created(whole(), TOPOLOGY, RACKS)

    assert (told(decision), decision.warnings, decision.allowed) == ([], (), True)


def test_several_faults_at_once_are_all_told() -> None:
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


def test_what_only_a_new_set_must_not_have_an_old_one_keeps() -> None:
    spread = [{"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}]
    old = put(small(), {f"{T}.cliques.0.spec.podSpec": pod_spec(nodeName="n1", topologySpreadConstraints=spread)})

    assert len(created(old).issues) == 2
    assert told(updated(old, put(old, {"spec.replicas": 2}))) == []


def test_where_the_default_scheduler_has_no_back_end_those_who_name_none_are_told() -> None:
    setup = Setup({"default-scheduler": KubeScheduler()}, "volcano")

    assert told(created(small(), setup)) == ["spec: Invalid value: default scheduler backend is not configured"]
    assert told(created(put(small(), {f"{T}.cliques.0.spec.podSpec.schedulerName": "default-scheduler"}), setup)) == []


@pytest.mark.parametrize(("policy", "warned"), [("Always", False), ("", False), ("Never", True), ("OnFailure", True)])
def test_a_restart_policy_is_worth_a_warning_only_where_it_is_another_one(policy: str, warned: bool) -> None:
    decision = created(put(small(), {f"{T}.cliques.0.spec.podSpec.restartPolicy": policy}))

    assert decision.allowed
    assert decision.warnings == (("restartPolicy will be ignored, it will be set to Always",) if warned else ())


def test_a_clique_that_says_nothing_of_its_size_has_one_pod_which_it_needs() -> None:
    said = put(small(), {f"{T}.cliques.0.spec.replicas": GONE, f"{T}.cliques.0.spec.minAvailable": GONE})

    decision = created(said, SETUP)

    assert decision.allowed and decision.body is not None
    assert decision.body["spec"]["template"]["cliques"][0]["spec"]["minAvailable"] == 1


def test_an_order_of_thousands_is_checked_in_passing() -> None:
    names = [f"c{number}" for number in range(5_000)]
    ring = [clique(name, spec={"startsAfter": [names[number - 1]]}) for number, name in enumerate(names)]

    (issue,) = created(small(cliques=ring, cliqueStartupType="CliqueStartupTypeExplicit")).issues

    assert issue.message == CIRCLE
    assert str(issue.value).startswith("c0, c1, c2, ") and str(issue.value).endswith(", c4999")
