"""Pod templates of roles: each role has its own pods, in which its user writes what joins the nodes."""

from pathlib import Path
from typing import Any

import pytest

from resources.dynamo.backends.trtllm import READINESS
from resources.dynamo.model.form import PodForm
from resources.dynamo.model.graph import InferenceGraph
from resources.dynamo.objects.labels import pod_annotations, pod_labels
from resources.dynamo.objects.leader_worker_set import group_templates
from resources.dynamo.objects.podcliqueset import podcliqueset
from resources.dynamo.objects.spread import is_spread
from resources.dynamo.pods.builder import PodFault
from resources.ports.configuration import DynamoSettings
from tests.resources.dynamo.backends.container_run import run
from tests.resources.dynamo.backends.node_runs import HOST, MP, RAY, added, variables
from tests.resources.dynamo.pods.graphs import GROVE, LEADER, LWS, WORKER, Body, current, graph_of, main_container, pod, value_of
from tests.resources.dynamo.pods.role_templates import JOINED, SIZE, joined, of_roles, template

BOTH = pytest.mark.parametrize("orchestrator", [GROVE, LWS], ids=["Grove", "LWS"])
LIVE = {"exec": {"command": ["true"]}}


def graph(service: Body, **spec: Any) -> InferenceGraph:
    """A graph of vLLM whose nodes are joined by mp, unless something else is said."""
    return current({"componentType": "worker", **service}, **{"annotations": MP, **spec})


@BOTH
def test_flags_are_those_of_the_user_and_the_port_and_ranks_are_expanded(orchestrator: Any, tmp_path: Path) -> None:
    for rank in (0, 1):
        container = main_container(pod(graph(joined()), WORKER if rank else LEADER, orchestrator))
        (received,) = run(container, tmp_path, variables(orchestrator, rank)).calls

        mine = [*SIZE, *JOINED[:3], str(rank), "--master-addr", HOST[orchestrator], *(["--headless"] if rank else [])]
        assert added(["python3", "-m", "dynamo.vllm", *mine], received) == ["--master-port=29500"]


@BOTH
def test_workers_wait_for_their_leader_with_mp_only(orchestrator: Any) -> None:
    names = [
        [each["name"] for each in pod(graph(joined(), annotations=by), role, orchestrator).spec.get("initContainers", ())]
        for by in (MP, RAY)
        for role in (LEADER, WORKER)
    ]

    assert names == [[], ["wait-for-leader-mp"], [], []]


@pytest.mark.parametrize("own", ["--master-port=1234", "--master-port 1234"])
def test_a_port_that_is_written_is_kept_and_waited_for(own: str) -> None:
    words = (*SIZE, *JOINED, *own.split())
    built = pod(graph(of_roles(template(*words), template(*words))), WORKER)

    assert main_container(built)["args"] == list(words)
    assert {"name": "LEADER_PORT", "value": "1234"} in built.spec["initContainers"][0]["env"]


def test_with_ray_and_with_parts_that_fit_into_a_node_the_command_stays() -> None:
    small = ("--tensor-parallel-size", "4")
    for service, by in ((joined(), RAY), (of_roles(template(*small), template(*small)), MP)):
        written = service["roles"][1]["podTemplate"]["spec"]["containers"][0]

        built = main_container(pod(graph(service, annotations=by), WORKER))

        assert (built["command"], built["args"]) == (written["command"], written["args"])


def test_a_command_that_does_not_show_its_sizes_stays_and_joins_as_it_says() -> None:
    hidden = template("./start --tensor-parallel-size 8", command=("/bin/sh", "-c"))
    built = pod(graph(of_roles(hidden, hidden), backendFramework="vllm"), WORKER)

    assert main_container(built)["args"] == ["./start --tensor-parallel-size 8"]
    assert "initContainers" not in built.spec


@pytest.mark.parametrize("form", ["", *(each.value for each in PodForm)])
def test_ranks_are_known_in_every_form(form: str) -> None:
    built = pod(graph_of({"componentType": "worker", **joined()}, form=form, annotations=MP), WORKER)

    assert value_of(main_container(built), "DYNAMO_RANK") == "$(GROVE_PCSG_POD_INDEX)"
    assert "--master-port=29500" in main_container(built)["args"]


def test_probes_of_a_worker_are_those_of_its_template() -> None:
    leader, plain = (main_container(pod(graph(joined()), role)) for role in (LEADER, WORKER))
    own = main_container(pod(graph(of_roles(template(*SIZE), template(*SIZE, livenessProbe=LIVE))), WORKER))

    probes = ("livenessProbe", "readinessProbe", "startupProbe")
    assert all(probe in leader for probe in probes) and not any(probe in plain for probe in probes)
    assert [own.get(probe) for probe in probes] == [LIVE, None, None]


def test_sglang_gets_no_flag(tmp_path: Path) -> None:
    command = ("python3", "-m", "dynamo.sglang")
    words = ("--tp-size", "8", "--nnodes", "2", "--node-rank", "$(DYNAMO_RANK)", "--dist-init-addr", "$(DYNAMO_LEADER_ADDRESS):29500")
    service = of_roles(template(*words, command=command), template(*words, command=command))

    (received,) = run(main_container(pod(graph(service), WORKER)), tmp_path, variables(GROVE, 1)).calls

    assert received[-5:] == ("2", "--node-rank", "1", "--dist-init-addr", f"{HOST[GROVE]}:29500")


@BOTH
def test_the_lines_of_tensorrt_llm_are_those_of_the_user_with_the_keys_and_the_probe_of_the_server(orchestrator: Any) -> None:
    leader = template("mpirun -n 8 trtllm-llmapi-launch python3 -m dynamo.trtllm", command=("/bin/sh", "-c"), resources={})
    worker = template("/usr/sbin/sshd -D -p 2222", command=("/bin/sh", "-c"), resources={}, livenessProbe=LIVE)
    asked = graph(of_roles(leader, worker), backendFramework="trtllm", annotations={})
    built = {role: pod(asked, role, orchestrator) for role in (LEADER, WORKER)}

    for role, given in ((LEADER, leader), (WORKER, worker)):
        container = main_container(built[role])
        assert container["args"] == given["spec"]["containers"][0]["args"]
        assert [mount["readOnly"] for mount in container["volumeMounts"] if mount["mountPath"] == "/ssh-pk"] == [True]
        assert value_of(container, "OMPI_MCA_orte_keep_fqdn_hostnames") == "1"
    server = main_container(built[WORKER])
    assert (server["readinessProbe"], server["livenessProbe"], "startupProbe" in server) == (READINESS, LIVE, False)
    assert main_container(built[LEADER])["readinessProbe"] != READINESS


def test_everything_of_a_template_reaches_the_pods_of_its_role_alone() -> None:
    side = {"name": "side", "image": "example/side:1"}
    leader = template(*SIZE, metadata={"labels": {"a": "leader"}}, pod={"nodeSelector": {"pool": "a"}})
    worker = template(*SIZE, metadata={"labels": {"a": "worker"}, "annotations": {"b": "c"}}, env=[{"name": "X", "value": "own"}])
    worker["spec"]["containers"].append(side)
    worker["spec"]["volumes"] = [{"name": "scratch", "emptyDir": {}}]
    envs = [{"name": "X", "value": "graph"}, {"name": "Y", "value": "graph"}]
    read = graph(of_roles(leader, worker, sharedMemory={"size": "16Gi"}), envs=envs, labels={"a": "graph", "of": "graph"})
    service = read.services[0]
    of_leader, of_worker = pod(read, LEADER).spec, pod(read, WORKER).spec

    assert (of_leader["nodeSelector"], "nodeSelector" in of_worker) == ({"pool": "a"}, False)
    assert [each["name"] for each in of_worker["containers"]] == ["main", "side"] and len(of_leader["containers"]) == 1
    assert {volume["name"] for volume in of_worker["volumes"]} - {volume["name"] for volume in of_leader["volumes"]} == {"scratch"}
    found = [[value_of(main_container(pod(read, role)), name) for name in ("X", "Y")] for role in (LEADER, WORKER)]
    assert found == [["graph", "graph"], ["own", "graph"]]
    labels = [pod_labels(read, service, role) for role in (LEADER, WORKER)]
    assert [(each["a"], each["of"]) for each in labels] == [("leader", "graph"), ("worker", "graph")]
    assert [pod_annotations(service, role) for role in (LEADER, WORKER)] == [{}, {"b": "c"}]
    memory = [volume["emptyDir"] for spec in (of_leader, of_worker) for volume in spec["volumes"] if volume["name"] == "shared-memory"]
    assert memory == [{"medium": "Memory", "sizeLimit": "16Gi"}] * 2


def test_a_role_that_mounts_shared_memory_itself_gets_no_other() -> None:
    own = template(*SIZE, volumeMounts=[{"name": "shm", "mountPath": "/dev/shm"}], pod={"volumes": [{"name": "shm", "emptyDir": {}}]})
    read = graph(of_roles(own, template(*SIZE)))

    mounts = [[mount["name"] for mount in main_container(pod(read, role))["volumeMounts"]] for role in (LEADER, WORKER)]
    assert mounts == [["shm"], ["shared-memory"]]


def test_cliques_and_groups_of_leader_workers_have_the_pods_of_their_role() -> None:
    leader = template(*SIZE, *JOINED, metadata={"annotations": {"a": "leader"}}, image="example/leader:1")
    read = graph(of_roles(leader, template(*SIZE, *JOINED, image="example/worker:1")))
    planned = podcliqueset(read, DynamoSettings(), None)
    assert planned is not None
    cliques = {clique["name"]: clique for clique in planned.body["spec"]["template"]["cliques"]}
    templates = group_templates(read, read.services[0], DynamoSettings())

    assert {name: each["spec"]["podSpec"]["containers"][0]["image"] for name, each in cliques.items()} == {
        "decode-ldr": "example/leader:1",
        "decode-wkr": "example/worker:1",
    }
    assert (cliques["decode-ldr"]["annotations"], "annotations" in cliques["decode-wkr"]) == ({"a": "leader"}, False)
    images = [each["spec"]["containers"][0]["image"] for each in (templates.leader, templates.worker)]
    assert images == ["example/leader:1", "example/worker:1"]


@pytest.mark.parametrize("role", [0, 1])
def test_pods_are_not_spread_where_either_role_says_otherwise(role: int) -> None:
    for own in (template(*SIZE, pod={"affinity": {"podAffinity": {"x": []}}}), template(*SIZE, metadata={"annotations": {
        "engine.grove.io/spread": "disabled"}})):  # fmt: skip
        pair = [template(*SIZE), template(*SIZE)]
        assert is_spread(graph(of_roles(*pair)), graph(of_roles(*pair)).services[0])
        pair[role] = own
        read = graph(of_roles(*pair))

        assert not is_spread(read, read.services[0])


@BOTH
def test_what_is_wrong_with_a_pod_is_at_the_field_of_its_template(orchestrator: Any) -> None:
    twice = template(*SIZE)
    twice["spec"]["initContainers"] = [{"name": "main", "image": "i"}]
    with pytest.raises(PodFault) as fault:
        pod(graph(of_roles(template(*SIZE), twice)), WORKER, orchestrator)

    assert fault.value.path == ("spec", "services", "decode", "roles", 1, "podTemplate", "spec", "containers")
