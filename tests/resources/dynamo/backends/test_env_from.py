"""The variables that `envFrom` brings reach every process of TensorRT-LLM: mpirun gets the names that exist in the container."""

import shutil
from pathlib import Path

import pytest

from tests.resources.dynamo.backends.container_run import run
from tests.resources.dynamo.pods.graphs import LEADER, Body, current, graph_of, main_container, pod, worker

SERVICE = worker("python3 -m dynamo.trtllm", envFromSecret="keys", container={"env": [{"name": "DECLARED", "value": "d"}]})
SHELLS = [shell for name in ("dash", "bash", "busybox") if (shell := shutil.which(name))]
HOSTILE = {
    "API_KEY": 'it\'s "$HOME" `id` $(id)',
    "LINES": "one\nINJECTED=1\n-x\nALSO=2",
    "NOT_UTF8": "\udcff\udcfe=x",
    "EMPTY": "",
    "EQUALS": "a=b=c",
    "GROVE_PCSG_INDEX": "1",
    "LWS_GROUP_SIZE": "2",
}
ODD_NAMES = {
    "with space": "1",
    "it's": "1",
    'say"hi': "1",
    "$HOME": "1",
    "$(touch broken)": "1",
    "`touch broken`": "1",
    "*": "1",
    "back\\slash": "1",
    "semi;colon": "1",
    "with-dash": "1",
}


def leader(service: Body = SERVICE) -> Body:
    """The main container of the leader, of a graph made from now on."""
    return main_container(pod(current(service), LEADER))


def exported(arguments: tuple[str, ...]) -> list[str]:
    """The names behind `-x`."""
    return [arguments[index + 1] for index, word in enumerate(arguments) if word == "-x"]


@pytest.mark.parametrize("shell", SHELLS)
def test_names_from_a_secret_are_passed_on_whatever_their_values_are(shell: str, tmp_path: Path) -> None:
    result = run(leader(), tmp_path, secrets=HOSTILE, shell=shell)
    (arguments,) = result.arguments("mpirun")
    names = exported(arguments)

    assert {"API_KEY", "LINES", "NOT_UTF8", "EMPTY", "EQUALS", "DECLARED"} <= set(names), result.errors
    assert not {"INJECTED", "ALSO", "GROVE_PCSG_INDEX", "LWS_GROUP_SIZE", "PWD", "SHLVL", "_"} & set(names)
    assert len(names) == len(set(names))
    assert arguments[arguments.index("bash") :][:2] == ("bash", "-c")
    assert result.arguments("trtllm-llmapi-launch") == [("python3", "-m", "dynamo.trtllm")]


@pytest.mark.parametrize("shell", SHELLS)
def test_a_hostile_name_is_one_word_and_runs_nothing(shell: str, tmp_path: Path) -> None:
    result = run(leader(), tmp_path, secrets=ODD_NAMES | {"PLAIN": "1"}, shell=shell)
    (arguments,) = result.arguments("mpirun")

    # A shell may drop names that it cannot have itself; mpirun itself would split one with a semicolon.
    assert set(exported(arguments)) & set(ODD_NAMES) <= set(ODD_NAMES) - {"semi;colon"}
    assert {name for name in exported(arguments) if not name.replace("_", "a").isalnum()} <= set(ODD_NAMES) - {"semi;colon"}
    assert "PLAIN" in exported(arguments)
    assert not list(tmp_path.rglob("broken"))
    assert result.arguments("trtllm-llmapi-launch") == [("python3", "-m", "dynamo.trtllm")]


def test_a_hostile_name_reaches_mpirun_where_the_shell_keeps_it(tmp_path: Path) -> None:
    result = run(leader(), tmp_path, secrets=ODD_NAMES, shell=shutil.which("bash") or "")
    (arguments,) = result.arguments("mpirun")

    assert set(ODD_NAMES) - {"semi;colon"} <= set(exported(arguments))


def test_without_variables_from_elsewhere_the_names_are_those_of_the_manifest() -> None:
    assert '"$@"' not in leader(worker("python3 -m dynamo.trtllm"))["args"][0]


def test_a_graph_without_a_record_of_its_form_keeps_its_line() -> None:
    assert '"$@"' not in main_container(pod(graph_of(SERVICE), LEADER))["args"][0]
