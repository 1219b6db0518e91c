"""TensorRT-LLM on several nodes. What its lines do when they run is in test_argv.py."""

import re

import pytest

from resources.dynamo.model.graph import Orchestrator, Role
from resources.dynamo.pods.builder import PodFault
from tests.resources.dynamo.pods.graphs import GROVE, LEADER, LWS, WORKER, Body, graph_of, line, main_container, main_of, pod, worker

COMMAND = "python3 -m dynamo.trtllm --model-path test"
LAUNCH = "source /opt/dynamo/venv/bin/activate && trtllm-llmapi-launch "
FIXED = (
    "CUDA_VISIBLE_DEVICES HF_DATASETS_CACHE HF_ENDPOINT HF_HOME HF_TOKEN HOME HUGGING_FACE_HUB_TOKEN LD_LIBRARY_PATH MODEL_PATH NCCL_DEBUG"
    " NCCL_IB_DISABLE NCCL_P2P_DISABLE PATH PYTHONPATH TENSORRT_LLM_CACHE_DIR TOKENIZERS_PARALLELISM TRANSFORMERS_CACHE USER"
).split()


def trtllm(service: Body, role: Role, orchestrator: Orchestrator = GROVE) -> Body:
    return main_of(service, role, orchestrator, backendFramework="trtllm")


@pytest.mark.parametrize(
    ("command", "args", "original"),
    [
        (None, ("python3 --model test",), "python3 --model test"),
        (("python", "-m", "worker"), (), "python -m worker"),
        (("sh", "-c"), ("launch --config test.yaml",), "launch --config test.yaml"),
        (("python3",), ("-m", "dynamo.trtllm", "--model-path", "test"), COMMAND),
        (("python3", "-m", "dynamo.trtllm"), ("--model-path", "test"), COMMAND),
        (("/usr/bin/python3.8",), ("-m", "dynamo.trtllm"), "/usr/bin/python3.8 -m dynamo.trtllm"),
        (("numactl", "-m", "0", "python3"), ("-m", "dynamo.trtllm"), "numactl -m 0 python3 -m dynamo.trtllm"),
        (None, ("python3", "-m", "dynamo.trtllm"), "python3 -m dynamo.trtllm"),
    ],
)
def test_mpirun_starts_the_command_of_the_user(command: tuple[str, ...] | None, args: tuple[str, ...], original: str) -> None:
    assert line(trtllm(worker(*args, command=command), LEADER)).endswith(f" bash -c '{LAUNCH}{original}'")


def test_a_script_of_several_commands_is_started_by_its_own_shell() -> None:
    script = line(trtllm(worker("cd /x && python3 -m dynamo.trtllm", command=("bash", "-lc")), LEADER))

    assert script.endswith(f"bash -c '{LAUNCH}bash -lc '\"'\"'cd /x && python3 -m dynamo.trtllm'\"'\"''")


def test_a_shell_without_a_script_stays_with_a_warning() -> None:
    built = pod(graph_of(worker(command=None), backendFramework="trtllm"), LEADER)
    main = main_container(built)

    assert (main["command"], main.get("args")) == (["/bin/sh", "-c"], None)
    assert built.warnings == (
        "service decode, leader: its command stays as it is, because its shell has no script that mpirun could start",
    )


def test_the_parts_of_the_leader_follow_one_another() -> None:
    parts = line(trtllm(worker(COMMAND), LEADER)).split(" && ")

    assert parts[:7] == [
        'mkdir -p "$HOME/.ssh"',
        "ls -la /ssh-pk/",
        'cp /ssh-pk/private.key "$HOME/.ssh/id_rsa"',
        'cp /ssh-pk/private.key.pub "$HOME/.ssh/id_rsa.pub"',
        'cp /ssh-pk/private.key.pub "$HOME/.ssh/authorized_keys"',
        'chmod 600 "$HOME/.ssh/id_rsa" "$HOME/.ssh/authorized_keys"',
        'chmod 644 "$HOME/.ssh/id_rsa.pub" "$HOME/.ssh/authorized_keys"',
    ]
    assert parts[7].startswith("printf 'Host *\\n")
    assert parts[8] == 'mpirun $([ "$(id -u)" = "0" ]'


@pytest.mark.parametrize(
    ("resources", "processes"),
    [
        ({"limits": {"gpu": "4"}}, 12),
        ({"limits": {"gpu": "4"}, "requests": {"gpu": "2"}}, 6),
        ({"limits": {"gpu": "4"}, "requests": {"gpu": "many"}}, 12),
        ({"requests": {"gpu": "2"}}, 6),
    ],
)
def test_there_is_one_process_for_each_gpu_of_each_node(resources: Body, processes: int) -> None:
    assert f" --oversubscribe -n {processes} -H " in line(trtllm(worker(COMMAND, nodes=3, gpu="", resources=resources), LEADER))


@pytest.mark.parametrize("role", [LEADER, WORKER])
@pytest.mark.parametrize("resources", [{}, {"limits": {"cpu": "1"}}, {"limits": {"gpu": ""}}, {"limits": {"gpu": "0"}}])
def test_without_a_number_of_gpus_the_pod_is_a_fault_of_that_field(resources: Body, role: Role) -> None:
    with pytest.raises(PodFault) as raised:
        trtllm(worker(COMMAND, gpu="", resources=resources), role)

    assert raised.value.path == ("spec", "services", "decode", "resources", "limits", "gpu")
    assert "number of GPUs" in raised.value.detail


def test_hosts_on_grove_are_those_of_the_cliques_leader_first() -> None:
    host = "$GROVE_PCSG_NAME-$GROVE_PCSG_INDEX-decode-{}.$GROVE_HEADLESS_SERVICE"
    hosts = ",".join(host.format(pod_name) for pod_name in ("ldr-0", "wkr-0", "wkr-1"))
    script = line(trtllm(worker(COMMAND, nodes=3), LEADER))

    assert f" -H {hosts} " in script
    assert "getent" not in script


def test_hosts_on_lws_have_the_rank_before_the_first_dot_and_are_waited_for() -> None:
    workers = [f"${{LWS_LEADER_ADDRESS%%.*}}-{rank}.${{LWS_LEADER_ADDRESS#*.}}" for rank in (1, 2)]
    script = line(trtllm(worker(COMMAND, nodes=3), LEADER, LWS))

    assert f" -H $LWS_LEADER_ADDRESS,{','.join(workers)} " in script
    assert f"for worker in {' '.join(workers)}; do until getent hosts" in script
    assert script.index("getent") < script.index("mpirun")


def test_mpirun_passes_the_fixed_variables_and_those_of_the_container_sorted() -> None:
    service = worker(COMMAND, envs=[{"name": "A_OWN", "value": "1"}, {"name": "HF_HOME", "value": "/hf"}])
    script = line(main_container(pod(graph_of(service, envs=[{"name": "SHARED", "value": "2"}]), LEADER, nats_address="n")))
    of_container = {
        "A_OWN",
        "SHARED",
        "NATS_SERVER",
        "DYN_NAMESPACE",
        "DYN_PARENT_DGD_K8S_NAME",
        "DYN_PARENT_DGD_K8S_NAMESPACE",
        "DYN_SYSTEM_PORT",
        "DYN_SYSTEM_USE_ENDPOINT_HEALTH_STATUS",
        "OMPI_MCA_orte_keep_fqdn_hostnames",
    }

    assert re.findall(r" -x (\S+)", script) == sorted({*FIXED, *of_container})
    assert len(FIXED) == 18


@pytest.mark.parametrize("role", [LEADER, WORKER])
def test_both_roles_have_the_keys_and_keep_full_host_names(role: Role) -> None:
    built = pod(graph_of(worker(COMMAND), "Decode"), role)
    main = main_container(built)
    name = "mpirun-ssh-key-g-decode"

    assert {"name": name, "mountPath": "/ssh-pk", "readOnly": True} in main["volumeMounts"]
    assert {"name": name, "secret": {"secretName": name, "defaultMode": 0o644}} in built.spec["volumes"]
    assert {"name": "OMPI_MCA_orte_keep_fqdn_hostnames", "value": "1"} in main["env"]


def test_the_name_of_the_secret_is_a_setting_and_its_volume_has_a_valid_name() -> None:
    built = pod(graph_of(worker(COMMAND)), LEADER, ssh_secret="keys.of.{component}-" + "x" * 60)
    volume = next(volume for volume in built.spec["volumes"] if "secret" in volume)

    assert volume["secret"]["secretName"] == "keys.of.g-decode-" + "x" * 60
    assert re.fullmatch(r"keys-of-g-decode-x+-[a-z0-9]{5}", volume["name"])
    assert len(volume["name"]) == 63
    assert volume["name"] in [mount["name"] for mount in main_container(built)["volumeMounts"]]


def test_a_worker_keeps_one_probe_its_ssh_server() -> None:
    probe = {"httpGet": {"path": "/mine", "port": 1}}
    container = trtllm(worker(COMMAND, livenessProbe=probe, readinessProbe=probe), WORKER)

    assert "livenessProbe" not in container
    assert "startupProbe" not in container
    assert container["readinessProbe"] == {
        "tcpSocket": {"port": 2222},
        "initialDelaySeconds": 20,
        "periodSeconds": 20,
        "timeoutSeconds": 5,
        "failureThreshold": 10,
    }


def test_a_leader_keeps_its_probes() -> None:
    probe = {"httpGet": {"path": "/mine", "port": 1}}
    container = trtllm(worker(COMMAND, readinessProbe=probe), LEADER)

    assert container["readinessProbe"] == probe
    assert container.keys() >= {"livenessProbe", "startupProbe"}


def test_a_single_node_stays_as_it_is_and_needs_no_gpus() -> None:
    built = pod(graph_of(worker(COMMAND, nodes=1, gpu="")))

    assert main_container(built)["args"] == [COMMAND]
    assert [volume["name"] for volume in built.spec["volumes"]] == ["shared-memory"]


def test_no_line_relies_on_a_tilde() -> None:
    assert all("~" not in line(trtllm(worker(COMMAND), role)) for role in (LEADER, WORKER))
