"""How the nodes of vLLM join in the current form of pods: what each node's program receives, run by real shells."""

from pathlib import Path
from typing import Any

import pytest

from resources.dynamo.backends.faults import PodFault
from resources.dynamo.model.graph import Orchestrator
from tests.resources.dynamo.backends.node_runs import HOST, MP, RAY, SHELLS, added, node
from tests.resources.dynamo.pods.graphs import GROVE, LEADER, LWS, WORKER, Body, current, line, main_of, pod, worker

PATHS = pytest.mark.parametrize("orchestrator", [GROVE, LWS])
MODULE = ["-m", "dynamo.vllm", "--model", "m"]
PROBES = {"livenessProbe", "readinessProbe", "startupProbe"}


def mp(nodes: int, rank: int, host: str) -> list[str]:
    """The flags with which a node joins by vLLM's own executor."""
    common = ["--distributed-executor-backend", "mp", "--nnodes", str(nodes), "--master-addr", host, "--master-port", "29500"]
    return [*common, "--node-rank", str(rank), *(["--headless"] if rank else [])]


def data(local: int, rank: int, host: str) -> list[str]:
    """The flags with which a node runs some of the data parallel ranks."""
    ranks = ["--data-parallel-hybrid-lb", "--data-parallel-size-local", str(local), "--data-parallel-start-rank", str(local * rank)]
    return [*ranks, "--data-parallel-address", host, "--data-parallel-rpc-port", "13445"]


JOINED = [
    ("--tensor-parallel-size 8", 2, 4, "mp", 0),
    ("--tensor-parallel-size 16", 2, 8, "mp", 0),
    ("--tensor-parallel-size 4 --pipeline-parallel-size 2", 2, 4, "mp", 0),
    ("--tensor-parallel-size 16", 4, 4, "mp", 0),
    ("--data-parallel-size 16 --tensor-parallel-size 1", 2, 8, "data", 8),
    ("--data-parallel-size 8 --tensor-parallel-size 1", 2, 4, "data", 4),
    ("--tensor-parallel-size 8 --data-parallel-size 2", 2, 8, "data", 1),
    ("--tensor-parallel-size 4 --data-parallel-size 2", 2, 4, "data", 1),
    ("--tensor-parallel-size 2 --data-parallel-size 8", 4, 4, "data", 2),
    ("--tensor-parallel-size 8", 2, 8, "none", 0),
    ("--tensor-parallel-size 16 --data-parallel-size 2", 4, 8, "mp", 0),
    ("--tensor-parallel-size 8", 2, 4, "ray", 0),
]
"""Sizes, nodes, GPUs of a node -> how the nodes join, and how many data parallel ranks a node has."""


def service(form: str, sizes: str, nodes: int, gpus: int, **fields: Any) -> Body:
    """A service that starts vLLM with these sizes, in one of several forms of a command."""
    command, args = {
        "script": (("/bin/sh", "-c"), (f"python3 -m dynamo.vllm --model m {sizes}",)),
        "login shell": (("/bin/bash", "-lc"), (f"ulimit -n 1024 && exec python3 -m dynamo.vllm \\\n  --model m {sizes}",)),
        "words": (("python3",), (*MODULE, *sizes.split())),
        "default shell": (None, ("python3", *MODULE, *sizes.split())),
    }[form]
    return worker(*args, command=command, nodes=nodes, gpu=str(gpus), **fields)


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize("form", ["script", "login shell", "words"])
@PATHS
@pytest.mark.parametrize(("sizes", "nodes", "gpus", "joining", "local"), JOINED)
def test_each_node_starts_with_the_flags_of_its_rank(
    sizes: str, nodes: int, gpus: int, joining: str, local: int, orchestrator: Orchestrator, form: str, shell: str, tmp_path: Path
) -> None:
    host, written = HOST[orchestrator], [*MODULE, *sizes.split()]
    for rank in range(nodes):
        result = node(service(form, sizes, nodes, gpus), orchestrator, rank, tmp_path, shell, annotations=RAY if joining == "ray" else MP)

        assert result.status == 0, result.errors
        if joining == "ray" and rank:
            assert result.calls == (("ray", "start", f"--address={host}:6379", "--block"),)
            continue
        (arguments,) = result.arguments("python3")
        flags = {
            "mp": mp(nodes, rank, host),
            "data": data(local, rank, host),
            "none": [],
            "ray": ["--distributed-executor-backend", "ray"],
        }
        assert added(written, arguments) == flags[joining]
        assert result.arguments("ray") == ([("start", "--head", "--port=6379")] if joining == "ray" else [])


@pytest.mark.parametrize(("sizes", "nodes", "gpus", "joining", "local"), [each for each in JOINED if each[3] != "none"])
def test_words_for_the_default_shell_become_one_line(sizes: str, nodes: int, gpus: int, joining: str, local: int, tmp_path: Path) -> None:
    body = service("default shell", sizes, nodes, gpus)
    (arguments,) = node(body, GROVE, 0, tmp_path, annotations=RAY if joining == "ray" else MP).arguments("python3")

    flags = {"mp": mp(nodes, 0, HOST[GROVE]), "data": data(local, 0, HOST[GROVE]), "ray": ["--distributed-executor-backend", "ray"]}
    assert added([*MODULE, *sizes.split()], arguments) == flags[joining]


@pytest.mark.parametrize("sizes", ["-tp=8", "-tp 8", "--tensor_parallel_size 8", "--tensor-parallel-size=8", "-tp 4 -pp 2", "-pp=2 -tp=4"])
def test_every_spelling_of_a_size_counts(sizes: str, tmp_path: Path) -> None:
    result = node(service("script", sizes, 2, 4), GROVE, 1, tmp_path, annotations=MP)

    assert added([*MODULE, *sizes.split()], result.arguments("python3")[0]) == mp(2, 1, HOST[GROVE])


@pytest.mark.parametrize(
    ("sizes", "nodes", "gpus", "said"),
    [
        ("--data-parallel-size 16", 2, 4, "data parallel size 16, but 2 nodes × 4 ranks = 8: they must be equal"),
        ("--data-parallel-size 3 -tp 2", 2, 4, "data parallel size 3, but 2 nodes × 2 ranks = 4: they must be equal"),
        ("--data-parallel-size 8 -tp 3", 3, 8, "data parallel size 8, but 3 nodes × 2 ranks = 6: they must be equal"),
        (
            "-tp 8",
            2,
            8,
            "every node runs the same command, as 2 independent servers: tensor × pipeline parallel size 8 fits into the 8 GPUs",
        ),
        ("--config x.yaml", 2, 8, "as 2 independent servers: its command shows no parallel size that needs more than one node"),
        ("-tp 16 -dp 2", 4, 8, "data parallel size 2 is left to vLLM, because each rank of 16 GPUs needs more than one node of 8"),
    ],
)
def test_sizes_that_cannot_work_are_told_with_the_numbers(sizes: str, nodes: int, gpus: int, said: str) -> None:
    graph = current(service("script", sizes, nodes, gpus), annotations=MP)

    (warning,) = pod(graph, LEADER).warnings
    assert said in warning
    assert pod(graph, WORKER).warnings == ()


def test_sizes_that_fit_are_not_told() -> None:
    for sizes, nodes, gpus, joining, _ in JOINED[:9]:
        assert pod(current(service("script", sizes, nodes, gpus), annotations=MP), LEADER).warnings == (), joining


def test_without_a_number_of_gpus_the_nodes_are_as_large_as_the_sizes_say(tmp_path: Path) -> None:
    for sizes, flags in (("-tp 8", mp(2, 1, HOST[LWS])), ("-dp 16", data(8, 1, HOST[LWS]))):
        body = worker(f"python3 -m dynamo.vllm --model m {sizes}", gpu="")
        assert added([*MODULE, *sizes.split()], node(body, LWS, 1, tmp_path, annotations=MP).arguments("python3")[0]) == flags


@pytest.mark.parametrize(
    "own", ["--nnodes 2", "--node-rank $DYNAMO_RANK", "--master_addr=x", "-n 2 -r 1", "--distributed-executor-backend mp --headless"]
)
@PATHS
def test_a_flag_that_is_written_is_not_added_again(own: str, orchestrator: Orchestrator, tmp_path: Path) -> None:
    sizes = f"-tp 8 {own}"
    result = node(service("script", sizes, 2, 4), orchestrator, 1, tmp_path, annotations=MP)
    (arguments,) = result.arguments("python3")
    spelled = {"-n": "--nnodes", "-r": "--node-rank", "--master_addr=x": "--master-addr"}
    names = [spelled.get(word, word.replace("_", "-").partition("=")[0]) for word in arguments if word.startswith("-")]

    assert {"--nnodes", "--node-rank", "--master-addr", "--master-port", "--distributed-executor-backend", "--headless"} <= {*names}
    assert len(names) == len({*names})


def test_a_flag_that_is_written_is_told() -> None:
    built = pod(current(service("script", "-tp 8 --nnodes 2 --distributed-executor-backend uni", 2, 4), annotations=MP), LEADER)

    assert built.warnings == (
        "service decode, leader: its command has --distributed-executor-backend uni, but mp joins its nodes",
        "service decode, leader: its command has --nnodes: what is written stays, and is not added again",
    )


@pytest.mark.parametrize("own", ["--data-parallel-external-lb", "--data-parallel-rank 3"])
def test_ranks_that_the_user_numbers_are_not_numbered_again(own: str, tmp_path: Path) -> None:
    sizes = f"-dp 8 {own}"
    result = node(service("script", sizes, 2, 4), GROVE, 1, tmp_path, annotations=MP)

    assert added([*MODULE, *sizes.split()], result.arguments("python3")[0]) == [
        "--data-parallel-address",
        HOST[GROVE],
        "--data-parallel-rpc-port",
        "13445",
    ]


SCRIPTS = [
    ("# python3 -m dynamo.vllm\npython3 -m dynamo.vllm {}", []),
    ("python3 -m dynamo.vllm --scheduler-cls vllm.v1.core.AsyncScheduler {}", ["--scheduler-cls", "vllm.v1.core.AsyncScheduler"]),
    ('python3 -m dynamo.vllm --kv-transfer-config \'{{"k": "vllm x"}}\' {}', ["--kv-transfer-config", '{"k": "vllm x"}']),
    ("python3 -m dynamo.vllm --served-model-name vllm {}", ["--served-model-name", "vllm"]),
    ("cd / && exec python3 -m dynamo.vllm \\\n  --x y \\\n  {} 2>&1 | cat", ["--x", "y"]),
    ("VLLM_LOGGING_LEVEL=INFO python3 -m dynamo.vllm>/dev/null {}", []),
]


@pytest.mark.parametrize(("script", "own"), SCRIPTS)
@pytest.mark.parametrize("command", [("/bin/sh", "-c"), ("/bin/bash", "-lc")])
@PATHS
def test_pairs_of_a_flag_and_its_value_stay_together(
    script: str, own: list[str], command: tuple[str, ...], orchestrator: Orchestrator, tmp_path: Path
) -> None:
    body = worker(script.format("--tensor-parallel-size 8"), command=command)
    for rank in (0, 1):
        (arguments,) = node(body, orchestrator, rank, tmp_path, annotations=MP).arguments("python3")

        assert arguments[:2] == ("-m", "dynamo.vllm")
        assert added(["-m", "dynamo.vllm", *own, "--tensor-parallel-size", "8"], arguments) == mp(2, rank, HOST[orchestrator])


@pytest.mark.parametrize("script", ["vllm serve m -tp 8", "exec vllm serve m -tp 8", "numactl -m 0 vllm serve m -tp 8"])
def test_the_program_of_vllm_gets_its_flags_at_the_end(script: str, tmp_path: Path) -> None:
    for body in (worker(script, backendFramework="vllm"), worker(*script.split(), command=None)):
        result = node(body, GROVE, 1, tmp_path, annotations=MP, backendFramework="vllm")

        assert result.status == 0, result.errors
        assert result.calls[0][-len(mp(2, 1, HOST[GROVE])) :] == tuple(mp(2, 1, HOST[GROVE]))


def test_a_command_that_is_not_recognised_gets_no_flag_and_is_told() -> None:
    graph = current(worker("/start.sh --nnodes 2 -tp 8", command=("/bin/sh", "-c")), backendFramework="vllm", annotations=MP)

    assert line(main_of(worker("/start.sh", command=("/bin/sh", "-c")), WORKER, form="3", backendFramework="vllm")).startswith("ray start")
    assert "independent servers" in pod(graph, LEADER).warnings[0]


def test_data_parallel_ranks_are_computed_by_the_shell_and_not_by_the_kubelet() -> None:
    script = line(main_of(service("script", "-dp 8", 2, 4), WORKER, LWS, form="3", annotations=MP))

    assert "--data-parallel-start-rank $((4 * LWS_WORKER_INDEX))" in script
    assert "$(LWS" not in script


@PATHS
def test_workers_lose_their_probes_and_leaders_keep_them(orchestrator: Orchestrator) -> None:
    own = {"exec": {"command": ["true"]}}
    for sizes, *_ in (("-tp 8",), ("-dp 8",), ("-tp 2",)):
        body = service("script", sizes, 2, 4, livenessProbe=own)
        assert main_of(body, LEADER, orchestrator, form="3", annotations=MP)["livenessProbe"] == own
        assert not PROBES & main_of(body, WORKER, orchestrator, form="3", annotations=MP).keys()


def test_the_address_of_a_pod_is_known_to_others_with_mp_only() -> None:
    variable = {"name": "VLLM_NIXL_SIDE_CHANNEL_HOST", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}
    for role in (LEADER, WORKER):
        for sizes in ("-tp 8", "-dp 8"):
            assert variable in main_of(service("script", sizes, 2, 4), role, form="3", annotations=MP)["env"]
        assert variable not in main_of(service("script", "-tp 8", 2, 4), role, form="3", annotations=RAY)["env"]
    own = {"name": "VLLM_NIXL_SIDE_CHANNEL_HOST", "value": "x"}
    envs = main_of(service("script", "-tp 8", 2, 4, envs=[own]), LEADER, form="3", annotations=MP)["env"]
    assert own in envs and variable not in envs


def test_elastic_expert_parallelism_is_refused_by_its_name() -> None:
    with pytest.raises(PodFault, match="--enable-elastic-ep is not supported on several nodes"):
        pod(current(service("script", "-tp 4 -dp 2 --enable-elastic-ep", 2, 4), annotations=MP), LEADER)


def test_an_image_without_ray_is_told_where_ray_joins_the_nodes() -> None:
    for tag, is_told in (("1.3.0", True), ("1.2.1", False), ("1.3.0-cuda13", True), ("1.10.0", True)):
        body = service("script", "-tp 8", 2, 4, container={"image": f"nvcr.io/nvidia/ai-dynamo/vllm-runtime:{tag}"})
        warnings = pod(current(body, annotations=RAY), LEADER).warnings
        assert warnings == ((f"service decode, leader: the image vllm-runtime:{tag} has no Ray, which joins its nodes",) * is_told)
