"""Pods of services: what comes from defaults, from the user and from the operator, and which wins."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resources.dynamo.pods.builder import PodFault
from resources.schema.issues import Rejected
from tests.resources.dynamo.pods import golden_pods
from tests.resources.dynamo.pods.graphs import (
    GROVE,
    LEADER,
    LWS,
    MAIN,
    WORKER,
    Body,
    current,
    graph_of,
    main_container,
    main_of,
    pod,
    value_of,
    worker,
)
from tests.resources.manifests import JSON


def service(container: Body | None = None, pod_spec: Body | None = None, **fields: Any) -> Body:
    """A service on one node without a component type."""
    return {"extraPodSpec": {"mainContainer": {"image": "i", **(container or {})}, **(pod_spec or {})}, **fields}


def spec_of(body: Body) -> Body:
    return pod(graph_of(body)).spec


@pytest.mark.parametrize(("framework", "orchestrator", "role"), golden_pods.CASES)
@pytest.mark.parametrize("form", ["", "1", "2"])
def test_the_pods_of_older_forms_are_the_recorded_ones(framework: str, orchestrator: Any, role: Any, form: str) -> None:
    assert golden_pods.recorded(framework, orchestrator, role, form) == golden_pods.computed(framework, orchestrator, role, form)


def test_variables_of_the_service_win_over_those_of_the_graph_the_container_and_the_defaults() -> None:
    def variable(value: str, *names: str) -> list[Body]:
        return [{"name": name, "value": value} for name in names]

    body = service({"env": variable("container", "DYN_NAMESPACE", "A", "B", "C")}, envs=variable("service", "A"))
    main = main_of(body, envs=variable("graph", "A", "B"))

    assert [value_of(main, name) for name in ("A", "B", "C", "DYN_NAMESPACE")] == ["service", "graph", "container", "container"]
    assert [env["name"] for env in main["env"]] == sorted(env["name"] for env in main["env"])


def test_standard_variables_are_set_where_they_are_configured_and_nobody_else_sets_them() -> None:
    addresses: dict[str, Any] = {"nats_address": "n", "etcd_address": "e", "model_express_url": "m", "prometheus_endpoint": "p"}
    main = main_container(pod(graph_of(service({"env": [{"name": "NATS_SERVER", "value": "own"}]})), **addresses))
    names = ("NATS_SERVER", "ETCD_ENDPOINTS", "MODEL_EXPRESS_URL", "PROMETHEUS_ENDPOINT")

    assert [value_of(main, name) for name in names] == ["own", "e", "m", "p"]
    assert [value_of(main_of(service()), name) for name in names] == [None] * 4


def test_probes_of_the_service_replace_all_others() -> None:
    probe = {"tcpSocket": {"port": 1}}
    main = main_of(worker("x", nodes=1, livenessProbe=probe, container={"livenessProbe": {"periodSeconds": 7}}))

    assert main["livenessProbe"] == probe
    assert main["readinessProbe"]["httpGet"]["path"] == "/health"


def test_probes_of_the_container_are_merged_but_its_startup_probe_replaces() -> None:
    main = main_of(worker("x", nodes=1, container={"livenessProbe": {"periodSeconds": 7}, "startupProbe": {"periodSeconds": 7}}))

    assert main["livenessProbe"]["periodSeconds"] == 7
    assert main["livenessProbe"]["failureThreshold"] == 1
    assert main["startupProbe"] == {"periodSeconds": 7}


def test_a_probe_has_one_handler() -> None:
    main = main_of(worker("x", nodes=1, container={"livenessProbe": {"exec": {"command": ["true"]}}}))

    assert main["livenessProbe"] == {"exec": {"command": ["true"]}, "periodSeconds": 5, "timeoutSeconds": 4, "failureThreshold": 1}


def test_a_probe_of_a_port_that_the_user_replaced_is_a_warning() -> None:
    own_ports = {"ports": [{"containerPort": 80, "name": "web"}]}

    assert pod(graph_of(worker(nodes=1))).warnings == ()
    assert pod(graph_of(worker(nodes=1, container=own_ports))).warnings == tuple(
        f"service decode, main: {probe} asks the port system, which the container does not have: `ports` replaces the default ones"
        for probe in ("livenessProbe", "readinessProbe", "startupProbe")
    )
    assert pod(graph_of(worker("python3 -m dynamo.vllm", container=own_ports)), WORKER).warnings == ()


def test_the_secret_of_the_service_is_appended() -> None:
    main = main_of(service({"envFrom": [{"configMapRef": {"name": "c"}}]}, envFromSecret="s"))

    assert main["envFrom"] == [{"configMapRef": {"name": "c"}}, {"secretRef": {"name": "s"}}]


def test_lists_of_the_user_replace_defaults() -> None:
    main = main_of(worker("x", nodes=1, container={"ports": [{"name": "own", "containerPort": 1}]}))

    assert main["ports"] == [{"name": "own", "containerPort": 1}]


def test_a_command_of_the_user_does_not_get_the_default_arguments() -> None:
    frontend = {"componentType": "frontend", "extraPodSpec": {"mainContainer": {"command": ["./serve"]}}}

    assert "args" not in main_of(frontend)


def test_the_pod_keeps_what_the_user_sets() -> None:
    user = {
        "serviceAccountName": "own",
        "schedulerName": "own",
        "nodeSelector": {"a": "b"},
        "terminationGracePeriodSeconds": 10,
        "securityContext": {"runAsUser": 1000},
        "priorityClassName": "high",
        "initContainers": [{"name": "z"}, {"name": "a"}],
        "imagePullSecrets": [{"name": "b"}, {"name": "a"}, {"name": "b"}],
    }
    spec = spec_of(service(pod_spec=user))

    assert {field: spec[field] for field in user} == {**user, "imagePullSecrets": [{"name": "a"}, {"name": "b"}]}
    assert spec["restartPolicy"] == "Always"


def test_containers_and_volumes_of_the_user_stay_beside_ours() -> None:
    user = {"containers": [{"name": "zlog"}, {"name": "agent"}], "volumes": [{"name": "zz", "emptyDir": {}}]}
    spec = spec_of(service(pod_spec=user))

    assert [container["name"] for container in spec["containers"]] == ["agent", "main", "zlog"]
    assert [volume["name"] for volume in spec["volumes"]] == ["shared-memory", "zz"]


def test_a_main_container_may_have_another_name() -> None:
    assert spec_of(service({"name": "engine"}))["containers"][0]["name"] == "engine"


def test_a_service_without_a_container_has_the_default_one() -> None:
    main = main_of({})

    assert (main["name"], main["command"]) == ("main", ["/bin/sh", "-c"])


@pytest.mark.parametrize(
    ("body", "path", "detail"),
    [
        (service(pod_spec={"containers": [{"name": "main"}]}), ("containers",), "two containers have the name main"),
        (service(pod_spec={"initContainers": [{"name": "main"}]}), ("containers",), "two containers have the name main"),
        (service(pod_spec={"volumes": [{"name": "shared-memory"}]}), ("volumes",), "two volumes have the name shared-memory"),
        (
            service({"volumeMounts": [{"name": "own", "mountPath": "/dev/shm"}]}),
            ("mainContainer", "volumeMounts"),
            "two volumes are mounted at /dev/shm; sharedMemory.disabled",
        ),
    ],
)
def test_names_and_mount_paths_occur_once(body: Body, path: tuple[str, ...], detail: str) -> None:
    with pytest.raises(PodFault) as raised:
        spec_of(body)

    assert raised.value.path == ("spec", "services", "decode", "extraPodSpec", *path)
    assert raised.value.detail.startswith(detail)


@pytest.mark.parametrize(
    ("body", "path"),
    [
        ({"extraPodSpec": []}, ("extraPodSpec",)),
        ({"extraPodSpec": {"mainContainer": "x"}}, ("extraPodSpec", "mainContainer")),
        (service({"command": "x"}), ("extraPodSpec", "mainContainer", "command")),
        (service({"args": ["x", 8]}), ("extraPodSpec", "mainContainer", "args", 1)),
        (service({"args": ["a\0b"]}), ("extraPodSpec", "mainContainer", "args", 0)),
        (service({"env": [1]}), ("extraPodSpec", "mainContainer", "env", 0)),
        (service({"env": {"a": "b"}}), ("extraPodSpec", "mainContainer", "env")),
        (service({"volumeMounts": "x"}), ("extraPodSpec", "mainContainer", "volumeMounts")),
        (service({"envFrom": "x"}, envFromSecret="s"), ("extraPodSpec", "mainContainer", "envFrom")),
        (service(pod_spec={"containers": {}}), ("extraPodSpec", "containers")),
        (service(pod_spec={"volumes": [None]}), ("extraPodSpec", "volumes", 0)),
        ({"livenessProbe": "x"}, ("livenessProbe",)),
        ({"envFromSecret": 1}, ("envFromSecret",)),
        ({"resources": "x"}, ("resources",)),
        ({"resources": {"limits": []}}, ("resources", "limits")),
        ({"sharedMemory": True}, ("sharedMemory",)),
        ({"volumeMounts": [{"name": 1}]}, ("volumeMounts", 0, "name")),
    ],
)
def test_a_wrong_shape_is_a_fault_with_its_path(body: Body, path: tuple[str | int, ...]) -> None:
    assert fault_paths(body) == [("spec", "services", "decode", *path)]


def fault_paths(body: Body) -> list[tuple[str | int, ...]]:
    """Where a service has faults, because of which it cannot be read or its pod cannot be built."""
    try:
        spec_of(body)
    except Rejected as rejected:
        return [issue.path for issue in rejected.issues]
    except PodFault as fault:
        return [fault.path]
    return []


@pytest.mark.parametrize("role", [LEADER, WORKER])
@pytest.mark.parametrize("orchestrator", [GROVE, LWS])
def test_every_node_of_a_frontend_runs_the_same_which_is_a_warning(role: Any, orchestrator: Any) -> None:
    frontend = {"componentType": "frontend", "multinode": {"nodeCount": 2}}
    built = pod(current(frontend), role, orchestrator)

    assert main_container(built)["args"] == ["-m", "dynamo.frontend"]
    (warning,) = built.warnings
    assert "every node runs the same command, as 2 independent servers: none of" in warning


def test_a_worker_without_a_framework_is_told_that_its_nodes_run_the_same() -> None:
    built = pod(graph_of(worker("python3 serve.py")), WORKER)

    assert main_container(built)["args"] == ["python3 serve.py"]
    (warning,) = built.warnings
    assert warning.startswith(
        "service decode, worker: every node runs the same command, as 2 independent servers: none of `python … -m dynamo.vllm`"
    )


def test_the_name_of_a_multinode_service_must_fit_into_a_host_name() -> None:
    with pytest.raises(PodFault) as raised:
        pod(graph_of(worker("python3 -m dynamo.vllm"), "a;b"), LEADER)

    assert raised.value.path == ("spec", "services", "a;b")


@pytest.mark.parametrize("name", ["a;b", "a" * 60 + "\x1b", "$(id)"])
def test_no_name_reaches_a_shell_line_or_a_terminal_as_it_is(name: str) -> None:
    with pytest.raises(PodFault):
        pod(graph_of(worker("python3 -m dynamo.vllm"), name), LEADER)


def test_names_in_messages_are_printable() -> None:
    with pytest.raises(PodFault, match=r"the name a\\x1b"):
        spec_of(service(pod_spec={"volumes": [{"name": "a\x1b"}, {"name": "a\x1b"}]}))


FIELDS = (
    "envs envFromSecret volumeMounts resources sharedMemory livenessProbe readinessProbe extraPodSpec componentType dynamoNamespace".split()
)
CONTAINER_FIELDS = "name image command args env envFrom ports volumeMounts resources livenessProbe startupProbe".split()
POD_FIELDS = "containers volumes imagePullSecrets tolerations dnsConfig hostAliases topologySpreadConstraints serviceAccountName".split()


def some(fields: list[str]) -> st.SearchStrategy[Body]:
    return st.dictionaries(st.sampled_from(fields), JSON, max_size=3)


@given(some(FIELDS), some(CONTAINER_FIELDS), some(POD_FIELDS), st.sampled_from(golden_pods.CASES))
def test_any_shape_becomes_a_pod_or_a_fault(fields: Body, container: Body, pod_spec: Body, case: tuple[str, Any, Any]) -> None:
    framework, orchestrator, role = case
    base = worker(*golden_pods.COMMANDS[framework], nodes=1 if role is MAIN else 2, container=container, pod=pod_spec)
    try:
        built = pod(graph_of({**base, **fields}), role, orchestrator)
    except Rejected as rejected:
        assert all(issue.path[:3] == ("spec", "services", "decode") for issue in rejected.issues)
    except PodFault as fault:
        assert fault.path[:3] == ("spec", "services", "decode")
    else:
        assert built.spec["containers"]


def test_the_graph_is_not_changed() -> None:
    body = worker("python3", "-m", "dynamo.trtllm", command=None, envs=[{"name": "A", "value": "$(my-var)"}])
    graph = graph_of(body)
    before = repr(graph.spec)
    pod(graph, LEADER, LWS)

    assert repr(graph.spec) == before
    assert pod(graph, LEADER, LWS) == pod(graph, LEADER, LWS)
