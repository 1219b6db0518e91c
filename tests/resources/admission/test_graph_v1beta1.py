"""Admission of graphs of v1beta1: judged as those of v1alpha1, told about in their own fields; and the rules for what v1beta1 adds."""

import re
from typing import Any

import pytest

from engine.memo import Memo
from resources.admission.graph_version import graph_faults
from resources.dynamo.objects.podcliqueset import podcliqueset
from resources.dynamo.versions.api_versions import ALPHA_ONLY, BETA, EXACT
from resources.dynamo.versions.converted import as_alpha, as_version
from resources.dynamo.versions.paths import in_beta
from resources.ports.configuration import Configuration, DynamoSettings
from resources.schema.issues import spelled
from tests.resources.admission.graphs import WITHOUT_GROVE, created_graph, graph, updated_graph
from tests.resources.admission.requests import SETUP, TOPOLOGY, issues_of
from tests.resources.admission.test_graph_rules import REJECTED
from tests.resources.admission.test_graph_warnings import WARNINGS
from tests.resources.dynamo.pods.role_templates import SIZE, of_roles
from tests.resources.dynamo.pods.role_templates import template as template_of
from tests.resources.dynamo.reading import graph_in
from tests.resources.dynamo.versions.beta_graphs import PAIRS, Body, alpha, beta, component, pods, wide

WITH_TOPOLOGY = {"clusterTopologyName": "racks", "packDomain": "rack"}
OF_ALPHA = re.compile(
    r"\bspec\.services|(?<!component )\bservices?\b|componentType|extraPodSpec|mainContainer|sharedMemory\.|\benvs\b|limits\.gpu|"
    r"mountPoint|useAsCompilationCache|extraPodMetadata"
)
"""What v1beta1 calls otherwise."""
OVERRIDE = {"apiVersion": "grove.io/v1alpha1"}


def refused(*components: Body, setup: Configuration = SETUP, **spec: Any) -> list[str]:
    """The issues of a graph."""
    return issues_of(created_graph(beta(*components, **spec), setup))


def template(graph: Body) -> Any:
    """`spec.template` of the set of a graph of v1beta1."""
    read = as_alpha(graph)
    planned = podcliqueset(graph_in(read["metadata"], read["spec"]), DynamoSettings(), None)
    assert planned is not None
    return planned.body["spec"]["template"]


@pytest.mark.parametrize(("old", "new"), PAIRS, ids=["vllm", "sglang", "trtllm"])
def test_the_same_graph_in_either_version_is_admitted_with_the_same_set(old: Body, new: Body) -> None:
    assert issues_of(created_graph(new)) == issues_of(created_graph(old)) == []
    assert template(new) == template(old)


def test_a_worker_of_the_sub_type_decode_is_a_decode_component() -> None:
    container = {"image": "example/engine:1", "command": ["python3", "-m", "dynamo.vllm"], "args": []}
    old = alpha({"d": {"componentType": "worker", "subComponentType": "decode", "extraPodSpec": {"mainContainer": container}}})

    assert template(beta(component("d", "decode"))) == template(old)


def test_claims_that_are_only_in_the_annotation_are_mounted() -> None:
    saved = '{"pvcs":[{"name":"models","create":false}],"services":{"A":{"dynamoNamespace":"n"}}}'
    graph = beta(component("A", compilationCache={"pvcName": "models", "mountPath": "/cache"}), annotations={ALPHA_ONLY: saved})

    assert as_alpha(graph)["spec"]["pvcs"] == [{"name": "models", "create": False}]
    (pod,) = (clique["spec"]["podSpec"] for clique in template(graph)["cliques"])
    assert {"name": "models", "persistentVolumeClaim": {"claimName": "models"}} in pod["volumes"]
    assert {"name": "DYN_NAMESPACE", "value": "n"} in pod["containers"][0]["env"]
    assert issues_of(created_graph(graph)) == []


def test_an_annotation_that_cannot_be_read_is_refused() -> None:
    (issue,) = issues_of(created_graph(beta(component("A"), annotations={ALPHA_ONLY: "{"})))

    assert issue.startswith("metadata.annotations[nvidia.com/dgd-spec]: Invalid value: must be a spec of v1alpha1 in JSON")


@pytest.mark.parametrize(
    ("components", "expected"),
    [
        ((), "spec.components must have at least one component"),
        (
            (component("A", template={"spec": {"containers": [{"name": "engine", "image": "i"}]}}),),
            "spec.components[A].podTemplate.spec.containers: must have a container named main, which runs the engine",
        ),
        ((component("A", template={"spec": {"containers": [{"name": "main"}]}}),), "containers[0].image: Required value"),
        (
            (component("A", template={"spec": {"containers": [{"name": "main", "image": "i"}, {"name": "main", "image": "j"}]}}),),
            'spec.components[A].podTemplate.spec.containers[1].name: Duplicate value: "main"',
        ),
        ((component("A"), component("a")), "spec.components[a]: component names must be unique case-insensitively"),
        (
            (wide("decode", "worker"), component("decode-ldr")),
            'spec.components[decode-ldr]: Duplicate value: "decode-ldr": '
            "its PodClique would have the name of that of the component decode, decode-ldr: rename one of them",
        ),
        ((component("A", "epp"), component("b", "epp")), "at most one component may have type epp"),
        (tuple(component(f"a{n}") for n in range(26)), "spec.components: Invalid value: a list: must have at most 25 entries"),
        ((component("A", "lpx"),), 'spec.components[A].type: Unsupported value: "lpx"'),
        ((component("A", sharedMemorySize="-1"),), "spec.components[A].sharedMemorySize must be non-negative"),
        ((wide("A", "planner"),), "multinode is supported only for worker, prefill, or decode components"),
        ((component("A", minAvailable=3, replicas=2),), "minAvailable: Invalid value: 3: must not be greater than replicas"),
        ((component("A", frontendSidecar="side"),), "spec.components[A].frontendSidecar: Forbidden: is not supported"),
        ((component("A", eppConfig={"a": 1}),), "spec.components[A].eppConfig: Forbidden: is not supported"),
        ((component("A", experimental={"gpuMemoryService": {"mode": "x"}}),), "[A].experimental.gpuMemoryService: Forbidden"),
        ((component("A", experimental={"failover": {"mode": "x"}}),), "spec.components[A].experimental.failover: Forbidden"),
        ((component("A", experimental={"checkpoint": {"mode": "x"}}),), "spec.components[A].experimental.checkpoint: Forbidden"),
        ((component("A", experimental={"failover": {}}),), "spec.components[A].experimental.failover: Forbidden"),
        ((component("A", experimental={"grove": {"forceScalingGroup": True}}),), "spec.components[A].experimental.grove: Forbidden"),
        (
            (component("A", template=pods("--enable-elastic-ep"), multinode={"nodeCount": 2}),),
            "spec.components[A]: --enable-elastic-ep is not supported",
        ),
        ((wide("A", roles=[{"name": "leader"}]),), 'spec.components[A].roles must contain the "worker" role'),
        (
            (wide("A", roles=[{"name": "leader"}, {"name": "worker", "replicas": 3}]),),
            'spec.components[A].roles[worker].replicas must equal 1 for multinode role "worker"',
        ),
        ((component("A", roles=[{"name": "leader"}]),), "spec.components[A].roles: Forbidden: needs multinode"),
        ((component("A", topologyConstraint={"packDomain": "host"}),), "spec.topologyConstraint is required when any component topology"),
    ],
)  # fmt: skip
def test_what_is_refused_is_told_once(components: tuple[Body, ...], expected: str) -> None:
    assert [expected in issue for issue in refused(*components)] == [True], refused(*components)


@pytest.mark.parametrize("annotations", [None, WITHOUT_GROVE], ids=["Grove", "components"])
@pytest.mark.parametrize("old", [graph({"decode": case.values[0]}) for case in WARNINGS] + [case.values[0] for case in REJECTED])
def test_what_is_said_of_a_graph_of_v1beta1_has_its_words(old: Any, annotations: dict[str, str] | None) -> None:
    written = as_version(old, BETA)
    given = {key: value for key, value in written["metadata"].get("annotations", {}).items() if key != EXACT} | (annotations or {})
    decision = created_graph({**written, "metadata": {**written["metadata"], "annotations": given}})

    texts = [*map(str, decision.issues), *decision.all_warnings]
    own = [text for text in texts if not text.startswith(f"{ALPHA_ONLY}: spec.")]
    assert [text for text in own if OF_ALPHA.search(text)] == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "service service: rename the service; that service's Service",
            "component service: rename the component; that component's Service",
        ),
        (
            "the pods of service, a keep their form, and services of my-service",
            "the pods of service, a keep their form, and services of my-service",
        ),
        ("spec.services[service].envs: the graph has no service a", "spec.components[service].envs: the graph has no component a"),
        ("10001 replicas of services on several nodes", "10001 replicas of components on several nodes"),
        ("spec.pvcs[0].name is required", f"{ALPHA_ONLY}: spec.pvcs[0].name is required"),
        ("spec.services[a].ingress.host is required", f"{ALPHA_ONLY}: spec.services[a].ingress.host is required"),
        ("no service account a, the service account-a", "no service account a, the component account-a"),
        ("runs as a ServiceAccount of https://service/a", "runs as a ServiceAccount of https://service/a"),
    ],
)
def test_texts_are_worded_as_v1beta1_without_a_change_of_names(text: str, expected: str) -> None:
    assert in_beta(text) == in_beta(in_beta(text)) == expected


def test_a_stored_graph_with_an_empty_field_that_is_not_carried_out_stays_valid() -> None:
    stored, edited = (beta(component("A", experimental={"failover": {}}, replicas=number)) for number in (1, 2))

    assert len(issues_of(created_graph(stored))) == 1
    assert issues_of(updated_graph(stored, edited)) == []


def test_a_native_sidecar_is_refused_on_several_nodes_only() -> None:
    sidecar = {"initContainers": [{"name": "runtime", "image": "i", "restartPolicy": "Always"}]}
    for body, count in ((wide("A"), 1), (component("A"), 0)):
        body["podTemplate"]["spec"] |= sidecar

        assert len(refused(body)) == count


def by_roles(leader: Body, worker: Body, **more: Any) -> Body:
    """A component whose roles have these templates."""
    return {"name": "A", "type": "worker", **of_roles(leader, worker), **more}


def test_templates_of_roles_are_admitted_in_both_versions() -> None:
    graph = beta(by_roles(template_of(*SIZE), template_of(*SIZE)))

    assert issues_of(created_graph(graph)) == []
    assert issues_of(created_graph(as_alpha(graph))) == []
    assert issues_of(updated_graph(beta(wide("A")), graph)) == []


@pytest.mark.parametrize(
    ("of_component", "expected"),
    [
        (
            {"roles": [{"name": "leader", "podTemplate": pods()}, {"name": "worker"}]},
            "spec.components[A].roles[worker].podTemplate is required on every role when role-specific PodTemplates are used",
        ),
        (
            by_roles(pods(), pods(), podTemplate=pods()),
            "spec.components[A].podTemplate.spec cannot be combined with roles[].podTemplate; choose one complete PodTemplate source mode",
        ),
        (
            by_roles(pods(), pods(), podTemplate={"metadata": {"labels": {"a": "b"}}}),
            "spec.components[A].podTemplate.metadata cannot be combined with roles[].podTemplate",
        ),
        (
            by_roles(pods(), {"spec": {"containers": [{"name": "engine", "image": "i"}]}}),
            "spec.components[A].roles[worker].podTemplate.spec.containers: must have a container named main, which runs the engine",
        ),
        (
            by_roles({"spec": {"containers": [{"name": "main"}]}}, pods()),
            "spec.components[A].roles[0].podTemplate.spec.containers[0].image: Required value",
        ),
        (
            by_roles(pods(), {"spec": {**pods()["spec"], "schedulerName": "volcano"}}),
            'spec.components[A].roles[1].podTemplate.spec.schedulerName: Invalid value: "volcano": must be the same for all roles',
        ),
        (by_roles(pods("--enable-elastic-ep"), pods()), "spec.components[A].roles[leader]: --enable-elastic-ep is not supported"),
        (
            by_roles(
                pods(), {"spec": {**pods()["spec"], "initContainers": [{"name": "runtime", "image": "i", "restartPolicy": "Always"}]}}
            ),
            "the native sidecar runtime is not supported with multinode",
        ),
        (
            by_roles(pods(), {**pods(), "metadata": {"labels": {"-": "b"}}}),
            "spec.components[A].roles[1].podTemplate.metadata.labels",
        ),
        (
            by_roles(pods(), {**pods(), "metadata": {"labels": {"a": 1}}}),
            "spec.components[A].roles[1].podTemplate.metadata.labels.a",
        ),
        (
            by_roles(pods(), {**pods(), "metadata": {"annotations": {"nvidia.com/vllm-distributed-executor-backend": "x"}}}),
            'must be "mp" or "ray"',
        ),
        (by_roles(pods(), pods(env=[{"value": "x"}])), "spec.components[A].roles[1].podTemplate.spec.containers[0].env[0].name"),
        (
            by_roles(pods(), {"spec": {"containers": [{"name": "main", "image": "i", "command": "python3"}]}}),
            "spec.components[A].roles[1].podTemplate.spec.containers[0].command",
        ),
        (by_roles(pods(), pods(gpus=0, resources={"limits": {"cpu": "x"}})), "roles[1].podTemplate.spec.containers[0].resources.limits"),
    ],
)
def test_what_is_refused_of_templates_of_roles(of_component: Body, expected: str) -> None:
    found = refused({"name": "A", "type": "worker", "multinode": {"nodeCount": 2}, **of_component})

    assert any(expected in issue for issue in found), found


def test_a_typing_error_in_a_template_of_a_role_is_told() -> None:
    leader = {"spec": {**pods()["spec"], "nodeSelektor": {"a": "b"}}}
    decision = created_graph(beta(by_roles(leader, pods())))
    said = [*issues_of(decision), *map(str, decision.warnings), *map(str, decision.pods)]

    assert any("roles[0].podTemplate.spec.nodeSelektor" in text for text in said), said


def test_parallel_sizes_of_the_leader_are_compared_and_no_gpus_of_tensorrt_llm_are_needed() -> None:
    sizes = template_of("--tensor-parallel-size", "4")
    plain = template_of("mpirun", command=("/bin/sh", "-c"), resources={})

    assert any("2 nodes × 4 GPUs = 8" in str(text) for text in created_graph(beta(by_roles(sizes, sizes))).warnings)
    assert refused(by_roles(plain, plain), backendFramework="trtllm") == []
    said = [str(text) for text in created_graph(beta(by_roles(pods(), pods()))).warnings]
    assert any(text.startswith("spec.components[A].roles[leader].podTemplate.spec.containers[main].resources.limits") for text in said), (
        said
    )


def test_min_available_is_that_of_the_clique_or_the_scaling_group() -> None:
    graph = beta(component("A", minAvailable=2, replicas=3), wide("B", minAvailable=2, replicas=3))

    found = template(graph)

    assert [clique["spec"]["minAvailable"] for clique in found["cliques"]] == [2, 1, 1]
    assert found["podCliqueScalingGroups"][0]["minAvailable"] == 2
    assert refused(component("A", minAvailable=2, replicas=0)) == []


def test_min_available_needs_grove() -> None:
    issues = issues_of(created_graph(beta(component("A", minAvailable=1), annotations=WITHOUT_GROVE)))

    assert "spec.components[A].minAvailable is currently supported only for Grove-backed DynamoGraphDeployment components" in issues


def test_overrides_of_grove() -> None:
    constraint = {"topologyName": "racks", "pack": {"required": "rack"}}
    graph = beta(
        component(
            "A", replicas=2, providerOverride={**OVERRIDE, "target": "PodCliqueTemplateSpec", "value": {"spec": {"minAvailable": 2}}}
        ),
        wide("B", replicas=2, providerOverride={**OVERRIDE, "target": "PodCliqueScalingGroupConfig", "value": {"minAvailable": 2}}),
        providerOverride={**OVERRIDE, "target": "PodCliqueSet", "value": {"spec": {"template": {"topologyConstraint": constraint}}}},
    )

    found = template(graph)

    assert issues_of(created_graph(graph, TOPOLOGY)) == []
    assert found["topologyConstraint"] == constraint
    assert (found["cliques"][0]["spec"]["minAvailable"], found["podCliqueScalingGroups"][0]["minAvailable"]) == (2, 2)


@pytest.mark.parametrize(
    ("override", "expected"),
    [
        (
            {"value": {"spec": {"replicas": 2}}},
            "spec.components[A].providerOverride.value.spec.replicas: Forbidden: only topologyConstraint",
        ),
        ({"target": "PodCliqueSet"}, 'spec.components[A].providerOverride.target: Unsupported value: "PodCliqueSet"'),
        ({"apiVersion": "grove.io/v1"}, 'spec.components[A].providerOverride.apiVersion: Unsupported value: "grove.io/v1"'),
    ],
)
def test_an_override_of_another_field_is_refused_by_its_path(override: Body, expected: str) -> None:
    whole = {**OVERRIDE, "target": "PodCliqueTemplateSpec", "value": {}, **override}

    assert any(issue.startswith(expected) for issue in refused(component("A", providerOverride=whole)))


def test_a_topology_is_that_of_the_set_and_of_its_parts() -> None:
    graph = beta(wide("A", topologyConstraint={"packDomain": "host"}), topologyConstraint=WITH_TOPOLOGY)

    found = template(graph)

    assert found["topologyConstraint"] == {"topologyName": "racks", "pack": {"required": "rack"}}
    assert found["podCliqueScalingGroups"][0]["topologyConstraint"] == {"topologyName": "racks", "pack": {"required": "host"}}
    assert all("topologyConstraint" not in clique for clique in found["cliques"])
    assert issues_of(created_graph(graph, TOPOLOGY)) == []


def test_the_priority_class_is_that_of_the_set() -> None:
    assert template(beta(component("A"), priorityClassName="high"))["priorityClassName"] == "high"


def test_labels_of_the_graph_are_below_those_of_a_component() -> None:
    own = component("A", template={"metadata": {"labels": {"a": "own"}}, **pods()})

    (clique,) = template(beta(own, labels={"a": "graph", "b": "graph"}))["cliques"]

    assert (clique["labels"]["a"], clique["labels"]["b"]) == ("own", "graph")


def test_what_has_no_effect_is_told() -> None:
    graph = beta(
        component("A", scalingAdapter={}, type="planner"), restart={"id": "1"}, experimental={"kvTransferPolicy": {"domain": "rack"}}
    )

    warnings = "\n".join(created_graph(graph).warnings)

    assert "spec.restart must be unset on create" in warnings
    assert "spec.experimental.kvTransferPolicy has no effect" in warnings
    assert "spec.components[A].scalingAdapter: replicas is used when the component is made" in warnings


def test_unknown_fields_are_told_by_their_paths() -> None:
    graph = beta(component("A", future=1, template={"metadata": {"name": "n"}, **pods()}))

    warnings = created_graph(graph).warnings

    assert 'unknown field "spec.components[A].future"' in warnings
    assert 'unknown field "spec.components[A].podTemplate.metadata.name"' in warnings


def test_a_number_that_no_json_has_is_told_by_the_name_of_its_component() -> None:
    (issue,) = graph_faults(beta(component("A", replicas=10**40)), Memo())

    assert spelled(issue.path) == "spec.components[A].replicas"


def test_an_issue_of_a_pod_is_at_its_field() -> None:
    graph = beta(component("A", template=pods(ports=[{"containerPort": 0}])))

    assert any(
        "spec.components[A].podTemplate.spec.containers[0].ports[0].containerPort" in str(each) for each in created_graph(graph).pods
    )


def test_defaults_are_written_in_the_fields_of_the_version() -> None:
    graph = beta(component("A", template=pods("--tensor-parallel-size", "2", gpus=1), multinode={}))
    del graph["metadata"]["namespace"]

    body = created_graph(graph).body

    assert body is not None and body["spec"]["components"][0]["multinode"] == {"nodeCount": 2}
    assert body["metadata"]["namespace"] == "default"


@pytest.mark.parametrize("stored", [0, 1], ids=["v1alpha1", "v1beta1"])
def test_an_update_is_compared_with_the_stored_graph_of_either_version(stored: int) -> None:
    old, new = PAIRS[0][stored], PAIRS[0][1]
    other = {**new, "spec": {field: value for field, value in new["spec"].items() if field != "backendFramework"}}
    more = {**new, "spec": {**new["spec"], "components": [*new["spec"]["components"], component("more")]}}

    assert any("spec.backendFramework is immutable" in issue for issue in issues_of(updated_graph(old, other)))
    assert any("replaces the PodCliqueSet" in warning and "is added" in warning for warning in updated_graph(old, more).warnings)


def test_an_object_of_another_version_is_refused() -> None:
    graph = {**beta(component("A")), "apiVersion": "nvidia.com/v1beta2"}

    assert issues_of(created_graph(graph)) == ['apiVersion: must be "nvidia.com/v1alpha1", got "nvidia.com/v1beta2"']


def test_a_component_without_main_is_told_about_its_own_containers_only() -> None:
    sidecar: Body = {"name": "sidecar", "image": "example/side:1"}
    engine: Body = {"name": "engine", "image": "example/engine:1", "env": [{"name": "A=B", "value": "x"}]}
    decision = created_graph(beta(component("A", template={"spec": {"containers": [sidecar, engine]}})), SETUP)

    assert issues_of(decision) == [
        "spec.components[A].podTemplate.spec.containers: must have a container named main, which runs the engine"
    ]
    assert [finding.path[-4:] for finding in decision.pods] == [(1, "env", 0, "name")]
