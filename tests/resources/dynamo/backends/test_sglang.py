"""SGLang on several nodes: flags, probes, and commands that are not recognised."""

import pytest

from resources.dynamo.model.graph import Orchestrator, Role
from tests.resources.dynamo.pods.graphs import GROVE, LEADER, LWS, WORKER, Body, graph_of, main_of, pod, worker

PROBES = ("livenessProbe", "readinessProbe", "startupProbe")


def host(service: str, kubelet: bool = False) -> str:
    form = "$({})" if kubelet else "${}"
    prefix, index, suffix = (form.format(name) for name in ("GROVE_PCSG_NAME", "GROVE_PCSG_INDEX", "GROVE_HEADLESS_SERVICE"))
    return f"{prefix}-{index}-{service}-ldr-0.{suffix}"


def flags(address: str, nodes: int, rank: str) -> str:
    return f"--dist-init-addr {address}:29500 --nnodes {nodes} --node-rank {rank}"


def sglang(role: Role, orchestrator: Orchestrator = GROVE, *args: str, name: str = "decode", **fields: object) -> Body:
    return main_of(worker(*args, **fields), role, orchestrator, name, backendFramework="sglang")  # type: ignore[arg-type]


def test_an_interpreter_of_the_leader_gets_the_flags_as_words_that_the_kubelet_expands() -> None:
    container = sglang(LEADER, GROVE, "-m", "dynamo.sglang", "--tp-size", "8", command=("python3",))

    assert container["command"] == ["python3"]
    assert container["args"] == ["-m", "dynamo.sglang", "--tp-size", "8", *flags(host("decode", kubelet=True), 2, "0").split()]


def test_an_interpreter_of_a_worker_on_grove_is_executed_by_a_shell_that_computes_its_rank() -> None:
    container = sglang(WORKER, GROVE, "--tp-size", "8", command=("python3", "-m", "dynamo.sglang"))

    assert container["command"] == ["sh", "-c"]
    assert container["args"] == [f"exec python3 -m dynamo.sglang --tp-size 8 {flags(host('decode'), 2, '$((GROVE_PCLQ_POD_INDEX + 1))')}"]


def test_an_interpreter_of_a_worker_on_lws_is_executed_by_a_shell() -> None:
    container = sglang(WORKER, LWS, "--x", "y z", command=("python3", "-m", "dynamo.sglang"))

    assert container["command"] == ["sh", "-c"]
    assert container["args"] == [f"exec python3 -m dynamo.sglang --x 'y z' {flags('$LWS_LEADER_ADDRESS', 2, '$LWS_WORKER_INDEX')}"]


def test_an_interpreter_of_the_leader_on_lws_gets_the_address_from_the_kubelet() -> None:
    container = sglang(LEADER, LWS, command=("python3", "-m", "dynamo.sglang"))

    assert container["args"] == flags("$(LWS_LEADER_ADDRESS)", 2, "0").split()


def test_flags_in_a_script_follow_the_framework() -> None:
    container = sglang(LEADER, GROVE, "python3 -m dynamo.sglang --custom-flag custom-value", nodes=3, name="worker")

    assert container["command"] == ["/bin/sh", "-c"]
    assert container["args"] == [f"python3 -m dynamo.sglang {flags(host('worker'), 3, '0')} --custom-flag custom-value"]


def test_flags_in_a_script_stay_before_a_pipe() -> None:
    container = sglang(LEADER, GROVE, "python -m dynamo.sglang.worker | tee /tmp/log", command=("sh", "-c"))

    assert container["args"] == [f"python -m dynamo.sglang.worker {flags(host('decode'), 2, '0')} | tee /tmp/log"]


def test_flags_follow_the_last_argument_that_names_the_framework() -> None:
    container = sglang(LEADER, GROVE, "python3 -m dynamo.sglang --model-path /models/sglang --x")

    assert container["args"] == [f"python3 -m dynamo.sglang --model-path /models/sglang {flags(host('decode'), 2, '0')} --x"]


def test_every_command_of_a_script_that_starts_the_framework_gets_the_flags() -> None:
    container = sglang(LEADER, GROVE, "python3 -m dynamo.sglang --a; python3 -m dynamo.sglang --b")
    both = flags(host("decode"), 2, "0")

    assert container["args"] == [f"python3 -m dynamo.sglang {both} --a; python3 -m dynamo.sglang {both} --b"]


@pytest.mark.parametrize("role", [LEADER, WORKER])
def test_words_for_the_default_shell_become_one_script(role: Role) -> None:
    container = sglang(role, GROVE, "python3", "-m", "dynamo.sglang", "--x", "y z", command=None)
    rank = "0" if role is LEADER else "$((GROVE_PCLQ_POD_INDEX + 1))"

    assert container["command"] == ["/bin/sh", "-c"]
    assert container["args"] == [f"python3 -m dynamo.sglang {flags(host('decode'), 2, rank)} --x 'y z'"]


def test_a_launcher_is_treated_like_an_interpreter() -> None:
    command = ("numactl", "-m", "0", "python3", "-m", "dynamo.sglang")

    leader, follower = (sglang(role, GROVE, "--x", "y z", command=command) for role in (LEADER, WORKER))

    assert leader["command"] == list(command)
    assert leader["args"] == ["--x", "y z", *flags(host("decode", kubelet=True), 2, "0").split()]
    rank = "$((GROVE_PCLQ_POD_INDEX + 1))"
    assert follower["args"] == [f"exec numactl -m 0 python3 -m dynamo.sglang --x 'y z' {flags(host('decode'), 2, rank)}"]


@pytest.mark.parametrize("role", [LEADER, WORKER])
@pytest.mark.parametrize(
    ("command", "args"),
    [
        (("/bin/sh", "-c"), ('bash -c "python3 -m dynamo.sglang"',)),
        (("/bin/sh", "-c"), ("$PYTHON -m dynamo.sglang",)),
        (("/bin/sh", "-c"), ("python3 -m dynamo.sglang 'not closed",)),
        (("/start.sh",), ("python3 -m dynamo.sglang",)),
        (("/start.sh", "--tp", "8"), ()),
        (None, ()),
    ],
)
def test_a_command_that_is_not_recognised_stays_with_a_warning(role: Role, command: tuple[str, ...] | None, args: tuple[str, ...]) -> None:
    service = worker(*args, command=command)
    built = pod(graph_of(service, "Decode", backendFramework="sglang"), role)
    (main,) = built.spec["containers"]

    assert (main["command"], main.get("args", [])) == (list(command or ("/bin/sh", "-c")), list(args))
    (warning,) = built.warnings
    assert warning.startswith(f"service Decode, {role}: its command stays as it is, because neither `python … sglang …`")


@pytest.mark.parametrize(("role", "kept"), [(LEADER, set(PROBES)), (WORKER, set())])
def test_workers_lose_their_probes(role: Role, kept: set[str]) -> None:
    probe = {"httpGet": {"path": "/mine", "port": 1}}
    container = sglang(role, GROVE, "python3 -m dynamo.sglang", livenessProbe=probe, readinessProbe=probe)

    assert set(PROBES) & container.keys() == kept


def test_a_single_node_stays_as_it_is() -> None:
    container = main_of(worker("python3 -m dynamo.sglang", nodes=1))

    assert container["args"] == ["python3 -m dynamo.sglang"]
    assert set(PROBES) <= container.keys()


def test_hosts_have_the_clique_names_in_lower_case() -> None:
    container = sglang(LEADER, GROVE, "python3 -m dynamo.sglang", name="DecodeWorker")

    assert f" {host('decodeworker')}:29500 " in container["args"][0]


def test_hosts_have_the_shortened_clique_names() -> None:
    graph = graph_of(worker("python3 -m dynamo.sglang"), "my-service", "my-multinode-deployment")
    (main,) = pod(graph, WORKER).spec["containers"]

    assert "-my-service-ldr-0." not in main["args"][0]
    assert "$GROVE_PCSG_NAME-$GROVE_PCSG_INDEX-my-" in main["args"][0]
