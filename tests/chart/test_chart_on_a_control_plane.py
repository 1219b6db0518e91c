"""The chart on a real API server: installed by Helm, `engine run` under its account and with its ConfigMap, and removed again.

Nodes and pods are simulated, so the engine itself runs here and not in its pod. The API server reaches it by the chart's Service, which
names this host (`ExternalName`) while the test runs.
"""

import json
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from grove_sandbox.installation.installation import definitions
from resources.base.kinds import CRD
from resources.base.kinds import NAMESPACE as NAMESPACE_KIND
from tests.chart.generated import CHART
from tests.chart.rendering import helm, run_helm
from tests.controlplane.accounts import create
from tests.controlplane.cluster import ControlPlane, Missing, binary, kubeconfig
from tests.controlplane.cluster import running as started
from tests.enginectl.calling import ROOT
from tests.ports import free_port
from tests.waiting import PATIENCE, until

pytestmark = pytest.mark.e2e

NAMESPACE, LOCKS = "grove-system", "locks"
"""Where the release is, and where its Lease is."""
SETS = "/apis/grove.io/v1alpha1/namespaces/default/podcliquesets"
LEFT = ("CustomResourceDefinition/", "APIService/", f"Namespace/<none>/{NAMESPACE}", "Lease/kube-node-lease/")
"""The definitions and what an API server makes of them, what Helm's `--create-namespace` leaves, and the Leases of simulated nodes."""
OF_EVERY_NAMESPACE = ("/kube-root-ca.crt", "/default")
"""What Kubernetes makes in every namespace, a moment after the namespace."""


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
    for body in ({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": LOCKS}}, *definitions()):
        create(plane, NAMESPACE_KIND if body["kind"] == "Namespace" else CRD, dict(body))
    config = {"server": server, "authorizer": {"enabled": True}, "network": {"autoMNNVLEnabled": True}}
    values.write_text(json.dumps({"config": {**config, "leaderElection": {"resourceNamespace": LOCKS, "resourceName": "lock"}}}))
    release = Release(plane, folder, values, existing(plane))
    release.helm("install", "grove-engine", CHART, "--create-namespace", "--values", values, "--wait", "--timeout", "180s")
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
    name_this_host(plane)
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
        until(lambda: b"admission webhook" in plane.call(f"{SETS}?dryRun=All", manifest("refused", minAvailable=5))[1])
        yield
    finally:
        process.terminate()
        process.wait(timeout=PATIENCE)


def name_this_host(plane: ControlPlane) -> None:
    """Let the chart's Service name this host, until Helm writes it again."""
    service = {"spec": {"type": "ExternalName", "externalName": "localhost", "clusterIP": None, "clusterIPs": None, "selector": None}}
    patched(plane, f"/api/v1/namespaces/{NAMESPACE}/services/grove-engine", service)


def answers(port: int) -> bool:
    """Whether `/readyz` says that the process is ready."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=20) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


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
    name_this_host(release.plane)

    after = [release.get(path) for path in paths]
    assert after[0]["data"] == before[0]["data"]
    assert after[1]["webhooks"] == before[1]["webhooks"]


def engine(release: Release, *words: str) -> subprocess.CompletedProcess[str]:
    """A command without `--config`, by an administrator."""
    environment = {
        "PATH": "/usr/bin:/bin",
        "PYTHONPATH": f"{ROOT}:{ROOT / 'cmd'}",
        "HOME": str(release.folder),
        "KUBECONFIG": str(release.plane.kubeconfig()),
    }
    return subprocess.run([sys.executable, "-m", "enginectl", *words], env=environment, capture_output=True, text=True, check=False)


def test_commands_work_with_what_the_release_publishes_and_under_its_lease(release: Release) -> None:
    shown = engine(release, "diff", "-n", "default")
    synced = engine(release, "sync", "-n", "default", "--lock-timeout", "0")

    line = f"configuration: installation in {NAMESPACE}, version 0.1.0 (ConfigMap kube-public/grove-engine)"
    assert (shown.returncode, shown.stderr.splitlines()[0]) == (0, line)
    assert synced.returncode == 6, synced.stderr
    assert f"the lease {LOCKS}/lock is held by pod {NAMESPACE}/" in synced.stderr
    assert [name for name in leases(release) if name != f"{LOCKS}/lock"] == []


def leases(release: Release) -> list[str]:
    """The Leases that are there, except those of Kubernetes."""
    listed = release.get("/apis/coordination.k8s.io/v1/leases")["items"]
    names = [(lease["metadata"]["namespace"], lease["metadata"]["name"]) for lease in listed]
    return [f"{namespace}/{name}" for namespace, name in names if namespace not in ("kube-system", "kube-node-lease")]


def test_what_diff_shows_without_a_configuration_is_what_the_running_engine_makes(release: Release) -> None:
    body = manifest("linked")
    body["spec"]["template"]["cliques"][0]["spec"]["podSpec"]["containers"][0]["resources"] = {"limits": {"nvidia.com/gpu": 4}}
    file = release.folder / "linked.json"
    file.write_text(json.dumps(body))
    shown = engine(release, "diff", "-n", "default", "-f", str(file), "-o", "json")
    refused = engine(release, "sync", "-n", "default", "-f", str(file), "--lock-timeout", "0")
    code, answer = release.plane.call(SETS, body)
    assert code == 201, answer
    domains = "/apis/resource.nvidia.com/v1beta1/namespaces/default/computedomains"
    until(lambda: release.get(domains)["items"], lambda: (release.folder / "engine.log").read_text()[-4000:])

    planned = {
        (operation["object"]["kind"], operation["object"]["name"])
        for root in json.loads(shown.stdout)["roots"]
        for operation in root["operations"]
        if operation["verb"] == "create"
    }
    made = {("ComputeDomain", item["metadata"]["name"]) for item in release.get(domains)["items"]}
    assert {each for each in planned if each[0] == "ComputeDomain"} == made
    assert (len(made), refused.returncode) == (1, 6)
    release.plane.call(f"{SETS}/linked", method="DELETE")
    until(lambda: release.plane.call(f"{SETS}/linked")[0] == 404)


def test_the_release_publishes_what_its_engine_plans_with(release: Release) -> None:
    before = release.get(PUBLICATION)
    (release.folder / "config.yaml").write_text(
        (release.folder / "config.yaml").read_text().replace("network:", "network:\n  domainDrainTimeout: 7m0s")
    )
    until(
        lambda: "domainDrainTimeout: 7m0s" in release.get(PUBLICATION)["data"]["config.yaml"],
        lambda: (release.folder / "engine.log").read_text()[-4000:],
    )

    # What the chart had written was what the engine planned with: nothing else has changed, and it was not written before.
    changed = release.get(PUBLICATION)
    assert before["data"]["config.yaml"].replace("5m0s", "7m0s").split() == changed["data"]["config.yaml"].replace("''", '""').split()
    assert (release.folder / "engine.log").read_text().count("configuration published") == 1


PUBLICATION = "/api/v1/namespaces/kube-public/configmaps/grove-engine"


def test_everybody_who_is_authenticated_may_read_it_by_its_name_and_do_nothing_else_with_it(release: Release) -> None:
    def allowed(verb: str, name: str, user: str, group: str) -> bool:
        attributes = {"verb": verb, "resource": "configmaps", "namespace": "kube-public", "name": name}
        review = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SubjectAccessReview",
            "spec": {"user": user, "groups": [group], "resourceAttributes": attributes},
        }
        code, body = release.plane.call("/apis/authorization.k8s.io/v1/subjectaccessreviews", review)
        assert code == 201, body
        return bool(json.loads(body)["status"]["allowed"])

    account = (f"system:serviceaccount:{NAMESPACE}:grove-engine", "system:serviceaccounts")
    people = ("ann", "system:authenticated")
    verbs = ("get", "list", "watch", "create", "update", "patch", "delete")
    assert [verb for verb in verbs if allowed(verb, "grove-engine", *people)] == ["get"]
    assert [verb for verb in verbs if allowed(verb, "grove-engine", *account)] == ["get", "update"]
    assert not any(allowed(verb, "other", *user) for verb in verbs for user in (people, account))
    assert not allowed("get", "grove-engine", "system:anonymous", "system:unauthenticated")


def test_a_second_release_is_refused(plane: ControlPlane, release: Release) -> None:
    for name, namespace, message in (
        ("second", "second", "the engine is installed in this cluster already, in the namespace grove-system"),
        ("second", NAMESPACE, "the engine is installed in this cluster already"),
    ):
        environment = {"KUBECONFIG": str(plane.kubeconfig())}
        words = ("install", name, CHART, "--namespace", namespace, "--create-namespace", "--values", release.values)
        result = run_helm(*words, folder=release.folder, environment=environment)
        assert (result.returncode, message in result.stderr) == (1, True), result.stderr
    plane.call("/api/v1/namespaces/second", method="DELETE")


def test_uninstalling_leaves_nothing_but_the_definitions(plane: ControlPlane, release: Release) -> None:
    plane.call(f"{SETS}/good", method="DELETE")
    until(lambda: plane.call(f"{SETS}/good")[0] == 404)

    release.helm("uninstall", "grove-engine", "--wait")

    def left() -> frozenset[str]:
        new = existing(plane) - release.before
        return frozenset(each for each in new if not each.startswith(LEFT) and not each.endswith(OF_EVERY_NAMESPACE))

    until(lambda: not left(), left)
