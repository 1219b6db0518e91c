"""The bandwidth example: mpirun gets hosts that cluster DNS can resolve, after their SSH servers answer, in one NVLink clique.

The names are looked up in a model of cluster DNS, filled from what `engine render` prints, and the launcher's own line is run by a shell.
"""

import json
import os
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from engine.ids import Kind
from engine.paths import get
from enginectl.base.exit_codes import Exit
from providers.fabrics.nvidia.names import COMPUTE_DOMAIN, NVLINK_CLIQUE_LABEL
from resources.base.kinds import POD, PODCLIQUESET, RESOURCE_CLAIM_TEMPLATE, SECRET, SERVICE
from tests.enginectl.box import Box
from tests.enginectl.calling import ROOT, Engine
from tests.resources.dynamo.backends.container_run import environment, expanded
from tests.waiting import PATIENCE

EXAMPLE = ROOT / "examples" / "11-nvbandwidth"
MANIFEST = (EXAMPLE / "nvbandwidth.yaml").read_text()
CLUSTER_DOMAIN = "cluster.local"
NDOTS = 5
"""Names with fewer dots are completed with the search domains first: `options ndots:5`, as a kubelet writes it."""
SSH_PORT = 2222
KEEP_FULL_NAMES = "OMPI_MCA_orte_keep_fqdn_hostnames"
TRUE = ("1", "t", "true", "y", "yes", "enabled")
"""What Open MPI reads as true."""
PROGRAM = f"""#!{sys.executable} -IS
import json, os, sys
with open(os.environ["RECORD"], "a") as record:
    print(json.dumps({{"words": [os.path.basename(sys.argv[0]), *sys.argv[1:]], "environment": dict(os.environ)}}), file=record)
sys.exit(int(os.environ["STATUS"]))
"""
Body = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Call:
    """A program that the launcher's line started."""

    words: tuple[str, ...]
    environment: Mapping[str, str]

    def option(self, *names: str) -> str:
        """The value of the option that is given once, under one of its names."""
        (value,) = (value for name, value in zip(self.words, self.words[1:], strict=False) if name in names)
        return value


@dataclass(frozen=True, slots=True)
class Workload:
    """The objects that `engine render` prints for a manifest, in one namespace."""

    namespace: str
    objects: tuple[Body, ...]

    def all(self, kind: Kind) -> list[Body]:
        """The objects of a kind."""
        return [body for body in self.objects if body["kind"] == kind.name]

    def pods(self, role: str) -> list[Body]:
        """The pods of a clique of replica 0, by index."""
        pods = [pod for pod in self.all(POD) if labels(pod)["grove.io/podclique"].endswith(f"-0-{role}")]
        return sorted(pods, key=lambda pod: int(labels(pod)["grove.io/podclique-pod-index"]))

    def records(self, ready: Iterable[str] = ()) -> Mapping[str, list[str]]:
        """Full name -> the pods that cluster DNS answers with, while exactly the pods `ready` are ready.

        A headless Service has its own name, for all its pods, and a name for each of them that has a hostname and the Service as subdomain.
        """
        records: dict[str, list[str]] = defaultdict(list)
        for service in self.all(SERVICE):
            spec, name = service["spec"], service["metadata"]["name"]
            assert spec["clusterIP"] == "None" and service["metadata"]["namespace"] == self.namespace
            domain = f"{name}.{self.namespace}.svc.{CLUSTER_DOMAIN}"
            for pod in self.all(POD):
                listed = spec.get("publishNotReadyAddresses") or pod_name(pod) in ready
                if listed and spec["selector"].items() <= labels(pod).items():
                    records[domain].append(pod_name(pod))
                    if pod["spec"].get("subdomain") == name and pod["spec"].get("hostname"):
                        records[f"{pod['spec']['hostname']}.{domain}"].append(pod_name(pod))
        return records

    def resolved(self, name: str, ready: Iterable[str] = ()) -> list[str]:
        """The pods that a pod of this namespace reaches by a name, as its resolver looks it up."""
        records = self.records(ready)
        search = [f"{self.namespace}.svc.{CLUSTER_DOMAIN}", f"svc.{CLUSTER_DOMAIN}", CLUSTER_DOMAIN]
        completed = [f"{name}.{domain}" for domain in search]
        candidates = [name, *completed] if name.count(".") >= NDOTS else [*completed, name]
        return next((records[candidate] for candidate in candidates if candidate in records), [])


def labels(pod: Body) -> Mapping[str, str]:
    return dict(pod["metadata"]["labels"])


def pod_name(pod: Body) -> str:
    """The pod by its clique and index: the name of a pod ends with letters that are not known before its clique has a uid."""
    return "-".join(labels(pod)[key] for key in ("grove.io/podclique", "grove.io/podclique-pod-index"))


def rendered(engine: Engine, path: Path, namespace: str = "default") -> Workload:
    """What the product makes of a manifest."""
    result = engine("render", "-f", path, "-o", "json", "-n", namespace)
    assert result.code == Exit.DONE, result.err
    return Workload(namespace, tuple(result.document["objects"]))


def gpus(pod: Body) -> int:
    return sum(int(get(container, ("resources", "limits", "nvidia.com/gpu"), 0)) for container in pod["spec"]["containers"])


def claim_templates(pod: Body) -> list[str]:
    return [str(claim["resourceClaimTemplateName"]) for claim in pod["spec"].get("resourceClaims", ())]


def run(pod: Body, folder: Path, status: int = 0) -> tuple[list[Call], int]:
    """Run the pod's container as a kubelet does, with programs that record their calls; the calls, and the container's exit code."""
    (container,) = pod["spec"]["containers"]
    record, programs = folder / "record", folder / "bin"
    programs.mkdir(exist_ok=True)
    record.write_text("")
    for program in ("mpirun", "sleep"):
        (programs / program).write_text(PROGRAM)
        (programs / program).chmod(0o755)
    variables = environment(container, _values_of_fields(container, labels(pod)), {})
    words = [expanded(word, variables) for word in (*container["command"], *container["args"])]
    own = {"PATH": f"{programs}:/usr/bin:/bin", "HOME": str(folder), "RECORD": str(record), "STATUS": str(status)}
    done = subprocess.run(words, env={**variables, **own}, stdin=subprocess.DEVNULL, timeout=PATIENCE)
    calls = [json.loads(line) for line in record.read_text().splitlines()]
    return [Call(tuple(call["words"]), call["environment"]) for call in calls], done.returncode


def _values_of_fields(container: Body, of_pod: Mapping[str, str]) -> dict[str, str]:
    """The variables that the kubelet takes from labels of the pod."""
    paths = {env["name"]: str(get(env, ("valueFrom", "fieldRef", "fieldPath"), "")) for env in container.get("env", ())}
    return {name: of_pod[path.split("'")[1]] for name, path in paths.items() if path.startswith("metadata.labels['")}


def hosts_and_slots(mpirun: Call) -> list[tuple[str, int]]:
    """The hosts that Open MPI 4 connects to, as it names them, and their slots."""
    listed = [host.partition(":") for host in mpirun.option("--host", "-host", "-H").split(",")]
    keeps = mpirun.environment.get(KEEP_FULL_NAMES, "").lower() in TRUE
    return [(name if keeps else name.partition(".")[0], int(slots or 1)) for name, _, slots in listed]


def reached(workload: Workload, folder: Path, ready: Sequence[str] = ()) -> list[list[str]]:
    """The pods behind each host of the launcher's mpirun."""
    (launcher,) = workload.pods("launcher")
    mpirun = run(launcher, folder)[0][0]
    return [workload.resolved(name, ready) for name, _ in hosts_and_slots(mpirun)]


@pytest.mark.parametrize("namespace", ["default", "bandwidth-tests"])
def test_each_host_of_mpirun_resolves_to_one_worker(engine: Engine, tmp_path: Path, namespace: str) -> None:
    workload = rendered(engine, EXAMPLE, namespace)

    assert reached(workload, tmp_path) == [[pod_name(pod)] for pod in workload.pods("worker")]
    assert len(workload.pods("worker")) == 2


def test_every_pod_resolves_by_its_host_name_in_the_headless_service(engine: Engine) -> None:
    workload = rendered(engine, EXAMPLE)
    (service,) = workload.all(SERVICE)

    for pod in workload.all(POD):
        name = f"{pod['spec']['hostname']}.{service['metadata']['name']}"
        assert pod["spec"]["hostname"] == f"{labels(pod)['grove.io/podclique']}-{labels(pod)['grove.io/podclique-pod-index']}"
        assert workload.resolved(name) == workload.resolved(f"{name}.default.svc.{CLUSTER_DOMAIN}") == [pod_name(pod)]
        assert not workload.resolved(pod["spec"]["hostname"])


WRONG = {
    "names up to the first dot": (f'env: [{{name: {KEEP_FULL_NAMES}, value: "1"}}]', "env: []"),
    "full names switched off": (f'{KEEP_FULL_NAMES}, value: "1"', f'{KEEP_FULL_NAMES}, value: "0"'),
    "another clique": ("-worker-0.$(", "-workers-0.$("),
    "a pod that does not exist": ("-worker-1.$(", "-worker-2.$("),
    "one pod twice": ("-worker-1.$(", "-worker-0.$("),
    "the launcher itself": ("-worker-1.$(", "-launcher-0.$("),
    "no Service": (".$(GROVE_HEADLESS_SERVICE):4,", ":4,"),
    "a fixed namespace": (".$(GROVE_HEADLESS_SERVICE):4,", ".$(GROVE_PCS_NAME)-0.default.svc:4,"),
    "a variable that does not exist": ("$(GROVE_PCS_INDEX)-worker-0", "$(GROVE_PCSG_INDEX)-worker-0"),
    "a literal variable": ("$(GROVE_HEADLESS_SERVICE):4,", "$$(GROVE_HEADLESS_SERVICE):4,"),
}


@pytest.mark.parametrize("fault", WRONG)
def test_a_wrong_host_is_detected(engine: Engine, tmp_path: Path, fault: str) -> None:
    right, wrong = WRONG[fault]
    assert right in MANIFEST
    (tmp_path / "wrong.yaml").write_text(MANIFEST.replace(right, wrong))
    workload = rendered(engine, tmp_path / "wrong.yaml", "bandwidth-tests")

    assert reached(workload, tmp_path) != [[pod_name(pod)] for pod in workload.pods("worker")]


def test_without_addresses_of_pods_that_are_not_ready_only_ready_workers_resolve(engine: Engine, tmp_path: Path) -> None:
    published = "    cliqueStartupType:", "    headlessServiceConfig: {publishNotReadyAddresses: false}\n    cliqueStartupType:"
    (tmp_path / "ready.yaml").write_text(MANIFEST.replace(*published))
    workload = rendered(engine, tmp_path / "ready.yaml")
    workers = [pod_name(pod) for pod in workload.pods("worker")]

    assert reached(workload, tmp_path) == [[], []]
    assert reached(workload, tmp_path, workers) == [[worker] for worker in workers]


def test_processes_are_as_many_as_gpus_on_each_node_and_in_all(engine: Engine, tmp_path: Path) -> None:
    workload = rendered(engine, EXAMPLE)
    mpirun = run(workload.pods("launcher")[0], tmp_path)[0][0]
    of_workers = [gpus(pod) for pod in workload.pods("worker")]

    assert [slots for _, slots in hosts_and_slots(mpirun)] == of_workers
    assert [mpirun.option("--map-by")] * len(of_workers) == [f"ppr:{number}:node" for number in of_workers]
    assert int(mpirun.option("-np")) == sum(of_workers)
    assert mpirun.words[-3:] == ("nvbandwidth", "-t", "multinode_device_to_device_memcpy_read_ce")


@pytest.mark.parametrize(("status", "programs"), [(0, ["mpirun", "sleep"]), (1, ["mpirun"])])
def test_a_launcher_that_has_passed_stays_and_one_that_failed_ends(
    engine: Engine, tmp_path: Path, status: int, programs: list[str]
) -> None:
    (launcher,) = rendered(engine, EXAMPLE).pods("launcher")

    calls, code = run(launcher, tmp_path, status)

    assert [call.words[0] for call in calls] == programs
    assert code == status
    assert launcher["spec"]["restartPolicy"] == "Always"


def test_the_launcher_starts_when_the_ssh_servers_of_all_workers_answer(engine: Engine) -> None:
    workload = rendered(engine, EXAMPLE)
    (launcher,), workers = workload.pods("launcher"), workload.pods("worker")

    assert [init["args"] for init in launcher["spec"]["initContainers"]] == [[f"--podcliques=nvbandwidth-0-worker:{len(workers)}"]]
    for worker in workers:
        (sshd,) = worker["spec"]["containers"]
        assert os.path.basename(sshd["command"][0]) == "sshd"
        assert sshd["readinessProbe"]["tcpSocket"] == {"port": SSH_PORT}


def test_all_pods_of_the_domain_and_no_others_must_be_in_one_nvlink_clique(engine: Engine) -> None:
    workload = rendered(engine, EXAMPLE)
    (domain,) = workload.all(COMPUTE_DOMAIN)
    template = get(domain, ("spec", "channel", "resourceClaimTemplate", "name"))
    members = [pod for pod in workload.all(POD) if template in claim_templates(pod)]

    assert members
    for pod in members:
        (term,) = pod["spec"]["affinity"]["podAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
        assert term["topologyKey"] == NVLINK_CLIQUE_LABEL
        assert term.keys() == {"topologyKey", "labelSelector"} and term["labelSelector"].keys() == {"matchLabels"}
        selected = term["labelSelector"]["matchLabels"].items()
        assert [other for other in workload.all(POD) if selected <= labels(other).items()] == members


def test_its_deletion_leaves_no_domain_no_claim_and_no_pod(box: Box, engine: Engine) -> None:
    box.create(SECRET, {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "nvbandwidth-ssh", "namespace": "default"}})
    assert engine("sync", "-f", EXAMPLE).code == Exit.DONE
    assert box.names(COMPUTE_DOMAIN) == ["nvbandwidth"] and len(box.names(POD)) >= 3

    answer = engine("delete", "-f", EXAMPLE, "--yes")

    assert answer.code == Exit.DONE
    assert [box.names(kind) for kind in (PODCLIQUESET, POD, COMPUTE_DOMAIN, RESOURCE_CLAIM_TEMPLATE, SERVICE)] == [[]] * 5
