"""The commands of docs/migrating.md, pasted in their order on a real control plane: the way to the engine, and back.

While the engine is installed, those of other pages are pasted that administrators need then.

Grove's operator is a chart with the objects that the page names, and `tests.takeover.grove_operator` writes what it writes. The pods of
both programs are simulated; `engine` is run here.
"""

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest

from engine.runtime.clock import SystemClock
from providers.kubernetes.connect import connected
from providers.kubernetes.kubeconfig import Source
from resources.base import labels
from tests.chart.rendering import helm
from tests.controlplane.cluster import ControlPlane, Missing, binary, running
from tests.enginectl.calling import ROOT, environment, program
from tests.enginectl.test_commands_of_pages import blocks
from tests.stories.test_control_plane import connection, define
from tests.stories.test_takeover_on_a_control_plane import NAMESPACE, until_pods_run, workload
from tests.takeover.grove_operator import Grove
from tests.takeover.stored_set import Options
from tests.waiting import PATIENCE, until

pytestmark = pytest.mark.e2e

PAGE = (ROOT / "docs" / "migrating.md").read_text()
BLOCK = re.compile(r"^(?: {4,}\S.*\n)+", re.MULTILINE)
SYSTEM, OPERATOR, ENGINE, LEASE = "grove-system", "grove-operator", "grove-engine", "grove-operator-leader-election"
FREE_LEASE = {
    "apiVersion": "coordination.k8s.io/v1",
    "kind": "Lease",
    "metadata": {"name": LEASE},
    "spec": {"holderIdentity": "", "leaseDurationSeconds": 1},
}
"""As the operator gives it back when it ends."""
SET = f"podcliqueset/{workload()['metadata']['name']}"
WEBHOOKS = {
    "mutatingwebhookconfiguration": ["podcliqueset-defaulting-webhook"],
    "validatingwebhookconfiguration": ["podcliqueset-validating-webhook", "clustertopology-validating-webhook"],
}


OPERATED = (
    ("operations.md", "engine manifests crds | kubectl apply"),
    ("operations.md", "helm upgrade"),
    ("operations.md", "workloads.yaml"),
    ("operations.md", "helm -n grove-system get values"),
    ("permissions.md", "manifests rbac -n grove-system"),
    ("permissions.md", "clusterrolebinding engine-writers"),
    ("permissions.md", "--mode read"),
    ("permissions.md", "create token"),
    ("shards.md", "scale deployment grove-engine"),
)
"""Page, and what the block of commands has."""


def block_with(page: str, text: str) -> str:
    """The block of commands of a page that has this text."""
    return next(block for block in blocks(ROOT / "docs" / page) if text in block)


def section(title: str) -> Iterator[str]:
    """The blocks of commands of a section."""
    yield from BLOCK.findall(PAGE.partition(f"\n## {title}\n")[2].partition("\n## ")[0])


def chart_of_the_operator(folder: Path) -> Path:
    """A chart with the objects of Grove's that the page names, named as there."""
    metadata = {"name": OPERATOR, "namespace": SYSTEM}
    pod = {"serviceAccountName": OPERATOR, "containers": [{"name": OPERATOR, "image": "example/grove-operator:v0.1.0-alpha.11"}]}
    template = {"metadata": {"labels": {"app": OPERATOR}}, "spec": pod}
    config = {"apiVersion": "operator.config.grove.io/v1alpha1", "kind": "OperatorConfiguration"}
    objects: list[dict[str, Any]] = [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata},
        {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": {"selector": {"app": OPERATOR}, "ports": [{"port": 9443}]}},
        {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "grove-webhook-server-cert", "namespace": SYSTEM}},
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "grove-operator-cm-0a1b2c3d", "namespace": SYSTEM},
            "data": {"config.yaml": json.dumps({**config, "leaderElection": {"resourceNamespace": SYSTEM}})},
        },
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": metadata,
            "spec": {"replicas": 1, "selector": {"matchLabels": {"app": OPERATOR}}, "template": template},
        },
    ]
    for kind, names in WEBHOOKS.items():
        for name in names:
            resources = "clustertopologybindings" if "topology" in name else "podcliquesets"
            rule = {"apiGroups": ["grove.io"], "apiVersions": ["v1alpha1"], "operations": ["CREATE", "UPDATE"], "resources": [resources]}
            webhook = {"name": f"{name}.grove.io", "admissionReviewVersions": ["v1"], "sideEffects": "None", "rules": [rule]}
            client = {"service": {"name": OPERATOR, "namespace": SYSTEM, "port": 9443}}
            objects.append(
                {
                    "apiVersion": "admissionregistration.k8s.io/v1",
                    "kind": f"{kind[0].upper()}{kind[1:]}".replace("webhookconfiguration", "WebhookConfiguration"),
                    "metadata": {"name": name},
                    "webhooks": [{**webhook, "clientConfig": client, "failurePolicy": "Fail"}],
                }
            )
    (folder / "templates").mkdir(parents=True)
    (folder / "Chart.yaml").write_text("apiVersion: v2\nname: grove-charts\nversion: 0.1.0\n")
    (folder / "templates" / "all.yaml").write_text("".join(f"---\n{json.dumps(each)}\n" for each in objects))
    return folder


class Shell:
    """A person's shell, in a checkout, as administrator of the cluster."""

    def __init__(self, plane: ControlPlane, folder: Path) -> None:
        self.folder = folder
        (tools := folder / "bin").mkdir()
        for name, target in (("engine", program()), ("kubectl", binary("kubectl")), ("helm", helm())):
            (tools / name).symlink_to(target)
        (folder / "deploy").symlink_to(ROOT / "deploy")
        self.environment = {**environment(), "PATH": f"{tools}:/usr/bin:/bin", "HOME": str(folder), "KUBECONFIG": str(plane.kubeconfig())}

    def __call__(self, block: str) -> str:
        """What these commands print. All of them must succeed, and pipes too."""
        script = f"set -eo pipefail\n{block}"
        said = subprocess.run(
            ["bash", "-c", script], cwd=self.folder, env=self.environment, capture_output=True, text=True, timeout=PATIENCE + 60
        )
        assert said.returncode == 0, f"{block}\n{said.stdout}{said.stderr}"
        return said.stdout

    def until(self, command: str, wanted: str) -> None:
        """Wait until a command prints just that."""
        until(lambda: self(command).strip() == wanted, lambda: self(command))


@pytest.fixture
def plane(tmp_path: Path) -> Iterator[ControlPlane]:
    """A cluster of its own, because an installation is for a whole cluster."""
    helm()
    try:
        with running(tmp_path / "plane", ["kcm", "scheduler", "kwok"], nodes=3) as plane:
            yield plane
    except Missing as missing:
        pytest.skip(str(missing))


async def deployed(plane: ControlPlane) -> None:
    """Grove's operator has a set at rest."""
    source = Source(path=str(plane.kubeconfig()))
    async with connection(plane, "admin") as admin, connected(source, SystemClock(), field_manager="grove-operator") as operator:
        await define(admin, NAMESPACE)
        await Grove(operator, until_pods_run(admin), Options(), NAMESPACE).deploy(workload())


@pytest.mark.skipif(not shutil.which("jq"), reason="the page asks for jq")
def test_the_way_to_the_engine_and_back_is_as_the_page_says(plane: ControlPlane, tmp_path: Path) -> None:
    anyio.run(deployed, plane)
    shell = Shell(plane, tmp_path)
    shell(f"helm install {OPERATOR} {chart_of_the_operator(tmp_path / 'operator')} -n {SYSTEM} --create-namespace --wait")
    shell(f"kubectl create -n {SYSTEM} -f - <<'END'\n{json.dumps(FREE_LEASE)}\nEND\n")
    maps, config, preflight, export, preview = section("Before")
    stop, lease, again, webhooks, crds, sync, install, compare = section("The switch")
    on_delete, start, hashes = section("The way back")

    # There are neither maps nor migrations: the first command says so, the second prints nothing.
    assert "resource type" in shell(f"! {{ {maps.strip()}\n}} 2>&1")
    assert "grove-operator-cm-0a1b2c3d" in (said := shell(config.replace("<id>", "0a1b2c3d"))) and "ok" in said
    shell(preflight)
    shell(export)
    assert "patch" in shell(preview)

    shell(stop)
    shell.until(f"kubectl -n {SYSTEM} get pods -o name", "")
    assert shell(lease) == ""
    assert shell(again).endswith("[]\n")
    assert "denied" not in shell(webhooks)
    shell(crds)
    assert "\nNo changes.\n" in shell(sync)
    values = json.loads(shell(f"helm -n {SYSTEM} get values {OPERATOR} -o json")) or {}
    (tmp_path / "values.yaml").write_text(json.dumps(values))
    shell(install)
    assert shell(compare) == ""

    (tmp_path / "engine.kubeconfig").symlink_to(plane.kubeconfig())
    for page, text in OPERATED:
        shell(block_with(page, text))

    shell(f"helm -n {SYSTEM} uninstall {ENGINE}")
    assert "NotFound" in shell(f"! kubectl -n {SYSTEM} get lease {LEASE} 2>&1")
    shell(on_delete)
    assert shell(f"kubectl -n {NAMESPACE} get {SET} -o jsonpath='{{.spec.updateStrategy.type}}'") == "OnDelete"
    shell(start)
    for clique in shell(f"kubectl -n {NAMESPACE} get podcliques -o name").split():
        shell(f"kubectl -n {NAMESPACE} label {clique} --overwrite {labels.TEMPLATE_HASH}=of-{clique.rpartition('/')[2][-20:]}")
    shell(hashes)
    pods = json.loads(shell(f"kubectl -n {NAMESPACE} get pods -o json"))["items"]
    found = {each["metadata"]["labels"][labels.PODCLIQUE]: each["metadata"]["labels"][labels.TEMPLATE_HASH] for each in pods}
    assert found == {clique: f"of-{clique[-20:]}" for clique in found}
    assert shell(compare) == ""
