"""The init container in which a worker of vLLM waits for its leader."""

import socket
import subprocess
import sys
from typing import Any

import pytest

from tests.resources.dynamo.backends.container_run import expanded
from tests.resources.dynamo.backends.node_runs import HOST, MP, RAY, variables
from tests.resources.dynamo.pods.graphs import GROVE, LEADER, LWS, WORKER, Body, current, pod, worker
from tests.waiting import PATIENCE

SCRIPT = "python3 -m dynamo.vllm --model m -tp 8"
NOBODY = {"runAsNonRoot": True, "runAsUser": 65534}
RESTRICTED = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "readOnlyRootFilesystem": True,
    "seccompProfile": {"type": "RuntimeDefault"},
}


def waits(
    script: str = SCRIPT, role: Any = WORKER, orchestrator: Any = GROVE, annotations: dict[str, str] | None = None, **f: Any
) -> list[Body]:
    """The init containers of a pod."""
    built = pod(current(worker(script, **f), annotations=MP if annotations is None else annotations), role, orchestrator)
    containers: list[Body] = built.spec.get("initContainers", [])
    return containers


@pytest.mark.parametrize("orchestrator", [GROVE, LWS])
def test_workers_wait_for_the_port_of_their_leader_and_leaders_do_not(orchestrator: Any) -> None:
    (wait,) = waits(orchestrator=orchestrator)
    values = {env["name"]: expanded(env["value"], variables(orchestrator, 1)) for env in wait["env"]}

    assert (wait["name"], wait["image"]) == ("wait-for-leader-mp", "example/worker:1")
    assert values == {"LEADER_HOST": HOST[orchestrator], "LEADER_PORT": "29500"}
    assert waits(role=LEADER, orchestrator=orchestrator) == []


@pytest.mark.parametrize(
    ("script", "annotations"), [("python3 -m dynamo.vllm -dp 8", MP), (SCRIPT, RAY), ("python3 -m dynamo.vllm -tp 4", MP)]
)
def test_only_mp_has_a_port_to_wait_for(script: str, annotations: dict[str, str]) -> None:
    assert waits(script, annotations=annotations) == []


def test_they_wait_as_well_where_the_user_wrote_the_flags() -> None:
    (wait,) = waits("python3 -m dynamo.vllm --config x --distributed-executor-backend mp --nnodes 2 --master-port 1234", annotations={})

    assert {"name": "LEADER_PORT", "value": "1234"} in wait["env"]


@pytest.mark.parametrize(
    ("of_pod", "of_container", "user"),
    [
        ({}, {}, NOBODY),
        ({"runAsUser": 1000}, {}, {"runAsNonRoot": True, "runAsUser": 1000}),
        ({"runAsUser": 1000}, {"runAsUser": 2000}, {"runAsNonRoot": True, "runAsUser": 2000}),
        ({"runAsUser": 0}, {}, {}),
    ],
)
def test_it_is_restricted_and_no_root_unless_root_is_named(of_pod: Body, of_container: Body, user: Body) -> None:
    (wait,) = waits(container={"securityContext": of_container}, pod={"securityContext": of_pod})

    assert wait["securityContext"] == {**RESTRICTED, **user}


def test_init_containers_of_the_user_come_first_and_one_of_its_name_is_kept() -> None:
    own = {"name": "download", "image": "example/download:1"}
    assert [each["name"] for each in waits(pod={"initContainers": [own]})] == ["download", "wait-for-leader-mp"]
    replaced = {"name": "wait-for-leader-mp", "image": "example/own:1"}
    assert waits(pod={"initContainers": [replaced]}) == [replaced]


def test_the_script_ends_when_the_leader_listens() -> None:
    (wait,) = waits()
    _, option, script = wait["command"]
    with socket.create_server(("127.0.0.1", 0)) as server:
        env = {"LEADER_HOST": "127.0.0.1", "LEADER_PORT": str(server.getsockname()[1])}
        done = subprocess.run([sys.executable, option, script], env=env, timeout=PATIENCE, capture_output=True, check=True)

    assert done.stdout == b""


def test_the_script_goes_on_while_nobody_listens() -> None:
    (wait,) = waits()
    _, option, script = wait["command"]
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    env = {"LEADER_HOST": "127.0.0.1", "LEADER_PORT": str(port)}
    with subprocess.Popen([sys.executable, option, script], env=env, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        first = process.stdout.readline()
        is_waiting = process.poll() is None
        process.kill()

    assert first.startswith(f"waiting for 127.0.0.1:{port}: ".encode())
    assert is_waiting
