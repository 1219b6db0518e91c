"""vLLM on several nodes: Ray's head and its workers."""

from pathlib import Path
from subprocess import run

import pytest

from resources.dynamo.model.form import PodForm
from resources.dynamo.model.graph import Orchestrator, Role
from tests.resources.dynamo.pods.graphs import GROVE, LEADER, LWS, WORKER, Body, graph_of, main_of, pod, worker

PROBES = {"livenessProbe", "readinessProbe", "startupProbe"}
HEAD = "ray start --head --port=6379 && "
COMMAND = "python3 -m dynamo.vllm --model m --tensor-parallel-size 8"


def vllm(service: Body, role: Role, orchestrator: Orchestrator = GROVE) -> Body:
    return main_of(service, role, orchestrator, backendFramework="vllm")


def test_the_leader_of_a_shell_starts_ray_before_its_script() -> None:
    container = vllm(worker(COMMAND), LEADER)

    assert (container["command"], container["args"]) == (["/bin/sh", "-c"], [HEAD + COMMAND])


def test_the_shell_of_the_user_and_its_options_stay() -> None:
    container = vllm(
        worker(COMMAND, "name", command=("bash", "-euo", "pipefail", "-c"), container={"args": [f'{COMMAND} "$0"', "n"]}), LEADER
    )

    assert container["command"] == ["bash", "-euo", "pipefail", "-c"]
    assert container["args"] == [f'{HEAD}{COMMAND} "$0"', "n"]


def test_a_script_in_the_command_is_changed_where_it_is() -> None:
    container = vllm(worker(command=("/bin/sh", "-c", COMMAND)), LEADER)

    assert container["command"] == ["/bin/sh", "-c", HEAD + COMMAND]
    assert "args" not in container


@pytest.mark.parametrize("script", ["mark a & mark b; wait", "mark a; mark b", "mark a || mark b; mark c", "mark a\nmark b # last"])
@pytest.mark.parametrize("form", ["5", "6"])
def test_no_command_of_a_script_runs_unless_the_head_of_ray_has_started(tmp_path: Path, script: str, form: str) -> None:
    container = pod(graph_of(worker(script), backendFramework="vllm", form=PodForm(form)), LEADER).spec["containers"][0]
    for name, text in (("ray", "exit 3"), ("mark", 'echo "$1" >>marked')):
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / name).chmod(0o755)

    ended = run([*container["command"], *container["args"]], cwd=tmp_path, env={"PATH": f"{tmp_path}:/bin:/usr/bin"}, check=False)

    assert (tmp_path / "marked").exists() is (form == "5")
    assert (ended.returncode == 3) is (form == "6")


@pytest.mark.parametrize(
    ("command", "args"),
    [
        (("python3", "-m", "dynamo.vllm"), ("--x", "y z")),
        (("numactl", "-m", "0", "python3", "-m", "dynamo.vllm"), ("--x", "y z")),
        (("/start.sh",), ("--x", "y z")),
        (("bash", "/start.sh"), ("--x", "y z")),
    ],
)
def test_any_other_command_is_quoted_behind_ray(command: tuple[str, ...], args: tuple[str, ...]) -> None:
    container = vllm(worker(*args, command=command), LEADER)

    assert container["command"] == ["/bin/sh", "-c"]
    assert container["args"] == [f"{HEAD}exec {' '.join(command)} --x 'y z'"]


def test_words_for_the_default_shell_become_one_script() -> None:
    container = vllm(worker("python3", "-m", "dynamo.vllm", "--x", "y z", command=None), LEADER)

    assert (container["command"], container["args"]) == (["/bin/sh", "-c"], [f"{HEAD}python3 -m dynamo.vllm --x 'y z'"])


@pytest.mark.parametrize("args", [(), ("",), ("# only a comment",)])
def test_a_leader_without_a_script_stays_with_a_warning(args: tuple[str, ...]) -> None:
    built = pod(graph_of(worker(*args), backendFramework="vllm"), LEADER)
    (main,) = built.spec["containers"]

    assert (main["command"], main.get("args", [])) == (["/bin/sh", "-c"], list(args))
    assert built.warnings == (
        "service decode, leader: its command stays as it is, because its shell has no script before which"
        " `ray start --head --port=6379` could be put",
    )


@pytest.mark.parametrize("command", [("/bin/sh", "-c"), ("python3",), ("/start.sh",), None])
@pytest.mark.parametrize(
    ("orchestrator", "host"),
    [(GROVE, "$GROVE_PCSG_NAME-$GROVE_PCSG_INDEX-decode-ldr-0.$GROVE_HEADLESS_SERVICE"), (LWS, "$LWS_LEADER_ADDRESS")],
)
def test_the_command_of_a_worker_is_replaced_whatever_it_was(
    orchestrator: Orchestrator, host: str, command: tuple[str, ...] | None
) -> None:
    container = vllm(worker("-m", "dynamo.vllm", command=command), WORKER, orchestrator)

    assert (container["command"], container["args"]) == (["/bin/sh", "-c"], [f"ray start --address={host}:6379 --block"])


@pytest.mark.parametrize(("role", "kept"), [(LEADER, PROBES), (WORKER, set())])
def test_workers_lose_their_probes(role: Role, kept: set[str]) -> None:
    assert PROBES & vllm(worker(COMMAND), role).keys() == kept


def test_a_single_node_stays_as_it_is() -> None:
    container = main_of(worker(COMMAND, nodes=1))

    assert container["args"] == [COMMAND]
    assert container.keys() >= PROBES
