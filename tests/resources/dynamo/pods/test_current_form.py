"""What the current form of pods adds besides vLLM's flags: ranks, probes by the version of the runtime, SGLang and TensorRT-LLM."""

from pathlib import Path
from typing import Any

import pytest

from resources.admission.graph_warnings import warnings
from resources.base.kinds import DYNAMO_GRAPH_V1BETA1
from resources.dynamo.model.graph import InferenceGraph, read_graph
from resources.dynamo.model.runtime import NEWEST, runtime_of, version_of
from tests.resources.dynamo.backends.container_run import environment
from tests.resources.dynamo.backends.node_runs import HOST, added, node, variables
from tests.resources.dynamo.pods.graphs import (
    GROVE,
    LEADER,
    LWS,
    MAIN,
    WORKER,
    current,
    graph_of,
    main_container,
    pod,
    value_of,
    worker,
)

OFFICIAL = "nvcr.io/nvidia/ai-dynamo/vllm-runtime"
COMMANDS = {
    "vllm": "python3 -m dynamo.vllm --tensor-parallel-size 8",
    "sglang": "python3 -m dynamo.sglang --tp-size 8",
    "trtllm": "python3 -m dynamo.trtllm --tensor-parallel-size 8",
    "none": "python3 serve.py",
}


def tagged(tag: str, override: str = "", image: str = OFFICIAL, nodes: int = 1) -> InferenceGraph:
    """A graph with a worker of that image."""
    fields: dict[str, Any] = {"runtimeVersionOverride": override} if override else {}
    return current(worker("python3 -m dynamo.vllm", nodes=nodes, container={"image": f"{image}:{tag}" if tag else image}, **fields))


@pytest.mark.parametrize("orchestrator", [GROVE, LWS])
@pytest.mark.parametrize("framework", COMMANDS)
def test_every_pod_knows_its_rank_and_its_leader(framework: str, orchestrator: Any) -> None:
    graph = current(worker(COMMANDS[framework], nodes=3, envs=[{"name": "MINE", "value": "$(DYNAMO_RANK)"}]))
    for rank, role in ((0, LEADER), (1, WORKER), (2, WORKER)):
        known = environment(main_container(pod(graph, role, orchestrator)), variables(orchestrator, rank), {})

        assert (known["DYNAMO_RANK"], known["DYNAMO_LEADER_ADDRESS"], known["MINE"]) == (str(rank), HOST[orchestrator], str(rank))


def test_values_of_the_user_are_replaced_and_told() -> None:
    graph = current(worker(COMMANDS["sglang"], envs=[{"name": "DYNAMO_RANK", "value": "x"}]))

    assert value_of(main_container(pod(graph, LEADER)), "DYNAMO_RANK") == "0"
    assert pod(graph, LEADER).warnings == ("service decode, leader: DYNAMO_RANK: the given value is replaced",)


@pytest.mark.parametrize("form", ["", "1", "2"])
def test_pods_of_older_forms_and_single_nodes_have_neither(form: str) -> None:
    single = current(worker(COMMANDS["vllm"], nodes=1))
    built = [(pod(graph_of(worker(COMMANDS["vllm"]), form=form), role)) for role in (LEADER, WORKER)]
    for each in (*built, pod(single, MAIN)):
        assert value_of(main_container(each), "DYNAMO_RANK") is None


@pytest.mark.parametrize(
    ("tag", "override", "image", "failures"),
    [
        ("1.4.0", "", OFFICIAL, 1),
        ("1.5.0", "", OFFICIAL, 3),
        ("1.5.0-cuda13", "", "example/own", 3),
        ("1.4.0", "1.5.0", OFFICIAL, 3),
        ("nightly", "1.4.0", OFFICIAL, 1),
        ("nightly", "", OFFICIAL, 3),
        ("nightly", "", "example/own", 1),
    ],
)
def test_workers_of_newer_runtimes_may_fail_more_often(tag: str, override: str, image: str, failures: int) -> None:
    for graph, role in ((tagged(tag, override, image), MAIN), (tagged(tag, override, image, nodes=2), LEADER)):
        assert main_container(pod(graph, role))["livenessProbe"]["failureThreshold"] == failures


@pytest.mark.parametrize("form", ["", "2"])
def test_probes_of_older_forms_stay(form: str) -> None:
    graph = graph_of(worker("python3 -m dynamo.vllm", nodes=1, container={"image": f"{OFFICIAL}:1.5.0"}), form=form)

    assert main_container(pod(graph))["livenessProbe"]["failureThreshold"] == 1


def test_a_runtime_whose_version_nothing_says_is_told() -> None:
    said = "spec.services[decode]: the tag nightly of its image is no version, so the newest runtime is assumed; runtimeVersionOverride can"

    assert [each for each in warnings(tagged("nightly")) if each.startswith(said)]
    for graph in (tagged("nightly", "1.2.0"), tagged("1.2.0"), tagged("nightly", image="example/own")):
        assert not [each for each in warnings(graph) if "runtimeVersionOverride" in each]


def test_every_image_of_a_newer_manifest_has_a_version() -> None:
    alpha = tagged("nightly", image="example/own")
    beta = read_graph(alpha.id, alpha.annotations, alpha.spec, DYNAMO_GRAPH_V1BETA1.api_version)

    assert runtime_of(alpha, alpha.services[0]).version is None
    assert runtime_of(beta, beta.services[0]).version == NEWEST


@pytest.mark.parametrize(
    ("text", "version"),
    [("1.2.3", (1, 2, 3)), ("v1.2.3", (1, 2, 3)), ("1.2.3-rc1+x", (1, 2, 3)), ("abc", None), ("1.2", None), ("01.2.3", None), ("", None)],
)
def test_versions(text: str, version: object) -> None:
    assert version_of(text) == version


@pytest.mark.parametrize("orchestrator", [GROVE, LWS])
def test_flags_of_sglang_that_are_written_are_not_added_again(orchestrator: Any, tmp_path: Path) -> None:
    written = ["-m", "dynamo.sglang", "--tp-size", "8", "--nnodes", "2", "--nccl_init_addr=x:1"]
    body = worker(" ".join(["python3", *written]))
    for rank in (0, 1):
        assert added(written, node(body, orchestrator, rank, tmp_path).arguments("python3")[0]) == ["--node-rank", str(rank)]
    assert pod(current(body), LEADER).warnings == (
        "service decode, leader: its command has --dist-init-addr, --nnodes: what is written stays, and is not added again",
    )


def test_flags_of_sglang_do_not_depend_on_sizes_in_the_command(tmp_path: Path) -> None:
    result = node(worker("ulimit -n 1024 && exec python3 -m dynamo.sglang --config /c.yaml"), GROVE, 1, tmp_path)

    assert added(["-m", "dynamo.sglang", "--config", "/c.yaml"], result.arguments("python3")[0]) == [
        *("--dist-init-addr", f"{HOST[GROVE]}:29500", "--nnodes", "2", "--node-rank", "1")
    ]


def test_processes_of_tensorrt_llm_do_not_get_the_rank_of_their_leader(tmp_path: Path) -> None:
    body = worker(COMMANDS["trtllm"], container={"envFrom": [{"secretRef": {"name": "s"}}]})
    (arguments,) = node(body, GROVE, 0, tmp_path).arguments("mpirun")
    names = [arguments[index + 1] for index, word in enumerate(arguments) if word == "-x"]

    assert "DYNAMO_RANK" not in names
    assert {"DYNAMO_LEADER_ADDRESS", "TRTLLM_USE_UCX_KVCACHE"} <= {*names}


def test_tensorrt_llm_starts_where_there_is_no_virtual_environment(tmp_path: Path) -> None:
    result = node(worker(COMMANDS["trtllm"]), GROVE, 0, tmp_path)
    (script,) = [call[-1] for call in result.calls if call[0] == "mpirun"]

    assert script.startswith("{ [ ! -f /opt/dynamo/venv/bin/activate ] || source /opt/dynamo/venv/bin/activate; } && ")
    assert result.arguments("trtllm-llmapi-launch") == [("python3", "-m", "dynamo.trtllm", "--tensor-parallel-size", "8")]


def test_the_ssh_server_of_tensorrt_llm_accepts_a_home_that_others_may_write(tmp_path: Path) -> None:
    result = node(worker(COMMANDS["trtllm"]), GROVE, 1, tmp_path)

    assert result.status == 0, result.errors
    assert "StrictModes no" in (result.home / ".ssh/sshd_config").read_text().splitlines()
    assert ("644", f"{result.home}/.ssh/id_rsa.pub") in result.arguments("chmod")


@pytest.mark.parametrize("form", ["", "2"])
def test_tensorrt_llm_of_older_forms_stays(form: str, tmp_path: Path) -> None:
    graph = graph_of(worker(COMMANDS["trtllm"]), form=form)
    (line,) = main_container(pod(graph, LEADER))["args"]

    assert "source /opt/dynamo/venv/bin/activate && trtllm-llmapi-launch" in line
    assert "UCX" not in line and "DYNAMO_RANK" not in line
    assert "StrictModes" not in main_container(pod(graph, WORKER))["args"][0]
