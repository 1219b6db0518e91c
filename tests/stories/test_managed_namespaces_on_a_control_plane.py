"""An installation for two namespaces on a real API server: `engine run` under the roles of `engine manifests rbac`, and nothing more."""

import json
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from engine.runtime.clock import SystemClock
from enginectl.actions.manifests import rbac_objects, with_lease_in
from enginectl.base.exit_codes import Exit
from enginectl.base.options import Options
from enginectl.wiring.configuration import Wiring, configuration_of
from resources.base import kinds
from resources.install.modes import Use
from resources.install.roles import Account
from resources.schema.crds import crds
from resources.settings import valid_settings
from tests.builders import clique, podcliqueset
from tests.controlplane.accounts import KINDS, create, token
from tests.controlplane.audit import AuditLog
from tests.controlplane.cluster import SYSTEM, ControlPlane, kubeconfig, write_secret
from tests.controlplane.fixtures import started as plane_started
from tests.enginectl.calling import finished, started
from tests.maps import binding
from tests.ports import free_port
from tests.waiting import PATIENCE, until

pytestmark = pytest.mark.e2e

MANAGED, ELSEWHERE = ("team-a", "team-b"), "elsewhere"
ACCOUNT = Account(SYSTEM, "grove-engine-confined")
SETS = "/apis/grove.io/v1alpha1/namespaces/{}/podcliquesets"
OF_ITS_OWN = {SYSTEM, "kube-public", "default"}
"""The namespaces of its Lease and certificate, of what is published, and of Events about objects that are in none."""
OF_GRAPHS = {"deployments", "ingresses", "persistentvolumeclaims", "leaderworkersets", "dynamographdeployments"}


@dataclass(frozen=True)
class SomeNamespaces:
    """A cluster, and the installation for two of its namespaces."""

    plane: ControlPlane
    configuration: Path
    kubeconfig: Path

    def get(self, path: str) -> Any:
        """The answer to a GET as the administrator."""
        code, body = self.plane.call(path)
        assert code == 200, body
        return json.loads(body)


@pytest.fixture(scope="module")
def confined(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SomeNamespaces]:
    """A cluster with simulated nodes in which the objects of `engine manifests rbac` have been created."""
    with plane_started(tmp_path_factory, ["kcm", "scheduler", "kwok"], nodes=2, audit=True) as plane:
        for definition in crds():
            create(plane, kinds.CRD, dict(definition))
        for name in (*MANAGED, ELSEWHERE):
            create(plane, kinds.NAMESPACE, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        until(lambda: all(plane.call(SETS.format(name))[0] == 200 for name in MANAGED))
        configuration = {
            "namespaces": list(MANAGED),
            "dynamo": {"enabled": False},
            "topologyAwareScheduling": {"enabled": True},
            "authorizer": {"enabled": True},
            "leaderElection": {"resourceNamespace": SYSTEM, "resourceName": "confined"},
            "server": {name: {"bindAddress": "127.0.0.1", "port": free_port()} for name in ("webhooks", "healthProbes", "metrics")},
        }
        settings = valid_settings(configuration)
        wiring = with_lease_in(Wiring(Options(), settings, configuration_of(settings), SystemClock()), SYSTEM)
        for body in rbac_objects(wiring, ACCOUNT, Use.RUN, shards=2):
            create(plane, KINDS[body["kind"]], body)
        folder = tmp_path_factory.mktemp("confined")
        (folder / "operator.yaml").write_text(yaml.safe_dump(configuration))
        write_secret(folder / "kubeconfig", json.dumps(kubeconfig(plane, "confined", token(plane, ACCOUNT))))
        yield SomeNamespaces(plane, folder / "operator.yaml", folder / "kubeconfig")


def set_in(namespace: str, name: str) -> dict[str, Any]:
    """A set with a start order, for which the pods have an account of their own."""
    return podcliqueset(name, clique("router"), clique("worker", startsAfter=["router"]), namespace=namespace)


def is_ready(confined: SomeNamespaces, namespace: str, name: str) -> bool:
    """Whether the set there is available."""
    return bool((confined.get(f"{SETS.format(namespace)}/{name}").get("status") or {}).get("availableReplicas") == 1)


@pytest.mark.parametrize("shards", [1, 2])
def test_run_manages_its_namespaces_with_its_roles_alone_and_touches_no_other(confined: SomeNamespaces, shards: int) -> None:
    plane, log, name = confined.plane, AuditLog(confined.plane), f"web-{shards}"
    log.entries()
    create(plane, kinds.TOPOLOGY_BINDING, binding("racks", "topology.kubernetes.io/zone", "example.com/rack"))
    for namespace in (*MANAGED, ELSEWHERE):
        create(plane, kinds.PODCLIQUESET, set_in(namespace, name))
    with started(
        *("run", "--config", confined.configuration, "--shards", str(shards), "--log-format", "json"),
        KUBECONFIG=str(confined.kubeconfig),
        POD_NAMESPACE=SYSTEM,
        GROVE_OPERATOR_SERVICE_ACCOUNT_NAME=ACCOUNT.name,
    ) as process:
        try:
            until(lambda: all(is_ready(confined, namespace, name) for namespace in MANAGED))
        finally:
            process.send_signal(signal.SIGTERM)
        _, written = process.communicate(timeout=PATIENCE)

    assert process.returncode == Exit.TERMINATED, written
    entries = [entry for entry in log.entries() if entry["user"]["username"] == ACCOUNT.user]
    refused = [entry["requestURI"] for entry in entries if entry.get("responseStatus", {}).get("code") == 403]
    assert refused == [], written
    assert {entry["objectRef"].get("namespace", "") for entry in entries} <= {"", *MANAGED, *OF_ITS_OWN}
    namespaced = {kind.plural for kind in kinds.KINDS if kind.namespaced}
    everywhere = {entry["objectRef"]["resource"] for entry in entries if not entry["objectRef"].get("namespace")}
    assert everywhere & (namespaced - {"queues"}) == set()
    assert {entry["objectRef"]["resource"] for entry in entries} & OF_GRAPHS == set()
    assert confined.get(f"/api/v1/namespaces/{ELSEWHERE}/pods")["items"] == []
    assert "status" not in confined.get(f"{SETS.format(ELSEWHERE)}/{name}")


def test_commands_see_what_is_managed_and_say_so(confined: SomeNamespaces) -> None:
    answer = finished("diff", "-A", KUBECONFIG=str(confined.plane.kubeconfig()))

    assert f"; only for the namespaces {', '.join(MANAGED)}" in answer.err
    assert ELSEWHERE not in answer.out
