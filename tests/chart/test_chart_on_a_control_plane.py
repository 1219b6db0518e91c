"""The chart on a real API server: installed by Helm, `engine run` under its account and with its ConfigMap, and removed again.

Nodes and pods are simulated, so the engine itself runs here and not in its pod. The API server reaches it by the chart's Service, which
names this host (`ExternalName`) while the test runs.
"""

import json
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.chart.generated import CHART
from tests.chart.rendering import helm, run_helm
from tests.controlplane.cluster import ControlPlane, Missing, binary, free_port, kubeconfig
from tests.controlplane.cluster import running as started
from tests.enginectl.calling import ROOT

pytestmark = pytest.mark.e2e

NAMESPACE = "grove-system"
PATIENCE = 60.0
"""Seconds within which the cluster must come to a state."""
SETS = "/apis/grove.io/v1alpha1/namespaces/default/podcliquesets"
LEFT = ("CustomResourceDefinition/", "APIService/")
"""The definitions, and what an API server makes of them."""


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """A cluster of its own, because an installation is for a whole cluster."""
    helm()
    try:
        with started(tmp_path_factory.mktemp("controlplane"), ["kcm", "scheduler", "kwok"], nodes=3) as plane:
            yield plane
    except Missing as missing:
        pytest.skip(str(missing))


@dataclass(frozen=True)
class Release:
    """The chart, installed."""

    plane: ControlPlane
    folder: Path
    values: Path
    before: frozenset[str]
    """The objects that there were before."""

    def helm(self, *words: str | Path) -> str:
        """The output of a helm command about the release. It must succeed."""
        environment = {"KUBECONFIG": str(self.plane.kubeconfig())}
        result = run_helm(*words, "--namespace", NAMESPACE, folder=self.folder, environment=environment)
        assert result.returncode == 0, result.stderr
        return result.stdout

    def get(self, path: str) -> Any:
        """An object of the cluster."""
        code, body = self.plane.call(path)
        assert code == 200, body
        return json.loads(body)


@pytest.fixture(scope="module")
def release(plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Release]:
    """The chart, installed by Helm, and the engine that its pods would run."""
    folder = tmp_path_factory.mktemp("release")
    server = {"webhooks": {"port": free_port()}, "healthProbes": {"port": free_port()}, "metrics": {"port": free_port()}}
    values = folder / "values.json"
    values.write_text(json.dumps({"config": {"server": server, "authorizer": {"enabled": True}}}))
    release = Release(plane, folder, values, existing(plane))
    release.helm("install", "grove-engine", CHART, "--create-namespace", "--values", values, "--wait", "--timeout", "90s")
    with running(release, server["healthProbes"]["port"]):
        yield release


@contextmanager
def running(release: Release, probe: int) -> Iterator[None]:
    """The engine, as the pods of the release would run it: with its ConfigMap, its token and its environment, ready."""
    plane, folder = release.plane, release.folder
    (folder / "config.yaml").write_text(release.get(f"/api/v1/namespaces/{NAMESPACE}/configmaps/grove-engine")["data"]["config.yaml"])
    code, body = plane.call(f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts/grove-engine/token", {"spec": {"expirationSeconds": 3600}})
    assert code == 201, body
    (folder / "kubeconfig").write_text(json.dumps(kubeconfig(plane, "engine", json.loads(body)["status"]["token"])))
    service = {"spec": {"type": "ExternalName", "externalName": "localhost", "clusterIP": None, "clusterIPs": None, "selector": None}}
    patched(plane, f"/api/v1/namespaces/{NAMESPACE}/services/grove-engine", service)
    environment = {
        "PATH": "/usr/bin:/bin",
        "PYTHONPATH": f"{ROOT}:{ROOT / 'cmd'}",
        "HOME": str(folder),
        "KUBECONFIG": str(folder / "kubeconfig"),
        "POD_NAMESPACE": NAMESPACE,
        "GROVE_OPERATOR_SERVICE_ACCOUNT_NAME": "grove-engine",
    }
    with (folder / "engine.log").open("w") as log:
        command = [sys.executable, "-m", "enginectl", "run", "--config", str(folder / "config.yaml")]
        process = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    try:
        until(lambda: answers(probe), lambda: (folder / "engine.log").read_text())
        yield
    finally:
        process.terminate()
        process.wait(timeout=30)


def answers(port: int) -> bool:
    """Whether `/readyz` says that the process is ready."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=5) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


def until(holds: Callable[[], bool], otherwise: Callable[[], Any] = lambda: "") -> None:
    """Wait until something holds."""
    deadline = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < deadline, otherwise()
        time.sleep(0.2)


def patched(plane: ControlPlane, path: str, patch: Any) -> None:
    """Apply a merge patch."""
    resource, _, name = path.rpartition("/")
    namespace, kind = resource.split("/")[-2:]
    command = [binary("kubectl"), "--kubeconfig", plane.kubeconfig(), "-n", namespace, "patch", kind, name, "--type=merge"]
    subprocess.run([*map(str, command), "-p", json.dumps(patch)], check=True, capture_output=True)


def existing(plane: ControlPlane) -> frozenset[str]:
    """Every object of the cluster that people or programs have made, as kind/namespace/name; not what Kubernetes makes by itself."""

    def kubectl(*words: str) -> str:
        command = [binary("kubectl"), "--kubeconfig", str(plane.kubeconfig()), *words]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    kinds = sorted(set(kubectl("api-resources", "--verbs=list,delete", "-o", "name").split()) - IGNORED)
    lines = kubectl("get", ",".join(kinds), "-A", "--ignore-not-found", "-o", COLUMNS, "--no-headers").splitlines()
    return frozenset("/".join(line.split()) for line in lines if line.split())


COLUMNS = "custom-columns=K:.kind,S:.metadata.namespace,N:.metadata.name"
IGNORED = frozenset({"events", "events.events.k8s.io", "componentstatuses", "leases.coordination.k8s.io/kube-node-lease"})


def manifest(name: str, **spec: Any) -> dict[str, Any]:
    """A PodCliqueSet of one clique with two pods."""
    pod = {"containers": [{"name": "main", "image": "image"}]}
    clique = {"name": "worker", "spec": {"roleName": "worker", "replicas": 2, "podSpec": pod, **spec}}
    return {
        "apiVersion": "grove.io/v1alpha1",
        "kind": "PodCliqueSet",
        "metadata": {"name": name},
        "spec": {"replicas": 1, "template": {"cliques": [clique]}},
    }


def test_the_objects_are_accepted_by_a_strict_api_server(plane: ControlPlane) -> None:
    # In a namespace that exists: a dry run creates none.
    command = [binary("kubectl"), "--kubeconfig", str(plane.kubeconfig()), "apply", "--server-side", "--force-conflicts"]
    for options in (["--network-policy"], ["--admission", "policies", "--mutating"], ["--mode", "cronjob"]):
        printed = subprocess.run(
            [sys.executable, "-m", "enginectl", "manifests", "all", "-n", "default", *options],
            env={"PATH": "/usr/bin:/bin", "PYTHONPATH": f"{ROOT}:{ROOT / 'cmd'}"},
            capture_output=True,
            check=True,
        ).stdout
        applied = subprocess.run(
            [*command, "--dry-run=server", "--validate=strict", "-f", "-"], input=printed, capture_output=True, check=False
        )
        assert applied.returncode == 0, applied.stderr.decode()


def test_a_set_comes_up(release: Release) -> None:
    code, body = release.plane.call(SETS, manifest("good"))
    assert code == 201, body

    until(
        lambda: release.get(f"{SETS}/good").get("status", {}).get("availableReplicas") == 1,
        lambda: (release.folder / "engine.log").read_text()[-4000:],
    )

    stored = release.get(f"{SETS}/good")
    assert stored["spec"]["template"]["cliques"][0]["spec"]["minAvailable"] == 2
    assert "is forbidden" not in (release.folder / "engine.log").read_text()


def test_a_bad_set_is_refused_with_field_and_reason(release: Release) -> None:
    code, body = release.plane.call(SETS, manifest("bad", minAvailable=5))

    message = json.loads(body)["message"]
    assert code in (403, 422), message
    assert 'admission webhook "pcs.validating.webhooks.grove.io" denied the request' in message
    assert "spec.template.cliques[0].spec.minAvailable" in message


def test_an_upgrade_leaves_what_the_engine_has_filled_in(release: Release) -> None:
    paths = [
        f"/api/v1/namespaces/{NAMESPACE}/secrets/grove-webhook-server-cert",
        "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/podcliqueset-validating-webhook",
    ]
    before = [release.get(path) for path in paths]
    assert before[0]["data"]["tls.crt"] and before[1]["webhooks"][0]["clientConfig"]["caBundle"]

    release.helm("upgrade", "grove-engine", CHART, "--values", release.values, "--set", "podAnnotations.a=b")

    after = [release.get(path) for path in paths]
    assert after[0]["data"] == before[0]["data"]
    assert after[1]["webhooks"] == before[1]["webhooks"]


def test_uninstalling_leaves_nothing_but_the_definitions(plane: ControlPlane, release: Release) -> None:
    plane.call(f"{SETS}/good", method="DELETE")
    until(lambda: plane.call(f"{SETS}/good")[0] == 404)

    release.helm("uninstall", "grove-engine", "--wait")

    def left() -> frozenset[str]:
        new = existing(plane) - release.before
        return frozenset(each for each in new if not each.startswith(LEFT) and each not in OF_KUBERNETES)

    until(lambda: not left(), left)


OF_KUBERNETES = frozenset(
    {
        f"Namespace/<none>/{NAMESPACE}",
        f"ConfigMap/{NAMESPACE}/kube-root-ca.crt",
        f"ServiceAccount/{NAMESPACE}/default",
    }
)
"""What Helm's `--create-namespace` leaves, and what Kubernetes makes in every namespace."""
