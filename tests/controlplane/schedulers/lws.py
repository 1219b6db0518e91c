"""The LeaderWorkerSet controller on a control plane, with its webhooks: they default the sets and label the pods that it looks for."""

import base64
import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import trustme

from engine.ids import Kind
from providers.kubernetes.wire import collection, member
from resources.base.kinds import LEADER_WORKER_SET, NAMESPACE
from tests.controlplane.cluster import ControlPlane, write_secret
from tests.controlplane.schedulers.program import asset, create, documents, install_crds, responds, running, wait_until
from tests.ports import free_port

PROGRAM = "lws-manager"
ADMISSION = "admissionregistration.k8s.io"
WEBHOOK_KINDS = {
    name: Kind(ADMISSION, "v1", name, f"{name.lower()}s", namespaced=False)
    for name in ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")
}
PODS_OF_SETS = {"matchExpressions": [{"key": "leaderworkerset.sigs.k8s.io/name", "operator": "Exists"}]}
"""The pods that the webhooks review. With all pods, none could be created while the controller does not run."""

REFUSED = {
    "apiVersion": "leaderworkerset.x-k8s.io/v1",
    "kind": "LeaderWorkerSet",
    "metadata": {"name": "refused"},
    "spec": {"leaderWorkerTemplate": {"size": 0, "workerTemplate": {"spec": {"containers": [{"name": "main", "image": "server:1"}]}}}},
}
"""A set that the schema accepts. The validating webhook refuses its size, and can only read it after the mutating one has defaulted it."""


@contextmanager
def lws(plane: ControlPlane, *, gang_provider: str = "") -> Iterator[None]:
    """Run the LeaderWorkerSet controller while the block runs. Its CRDs and its namespace remain.

    With `gang_provider` (`volcano`, whose CRDs must be installed) it creates a PodGroup for each group. Raises `Missing` and `Broken`.
    """
    install_crds(plane, "lws")
    create(plane, NAMESPACE, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "lws-system"}})
    folder = plane.folder / PROGRAM
    authority = write_certificate(folder)
    webhooks, health = free_port(), free_port()
    file = folder / "config.json"
    file.write_text(json.dumps(configuration(folder, webhooks, health, gang_provider)))
    with ExitStack() as installed:
        installed.enter_context(running(plane, PROGRAM, ["--config", str(file)], lambda: responds(f"http://127.0.0.1:{health}/readyz")))
        for body in webhook_configurations(webhooks, authority):
            kind = WEBHOOK_KINDS[body["kind"]]
            create(plane, kind, body)
            installed.callback(plane.call, member(kind, "", body["metadata"]["name"]), method="DELETE")
        wait_until(lambda: are_effective(plane), "the webhooks of LeaderWorkerSets do not answer", plane.folder / f"{PROGRAM}.log")
        yield


def write_certificate(folder: Path) -> bytes:
    """Write a certificate for 127.0.0.1 and its key to a folder. Returns the authority that signed it, in PEM."""
    folder.mkdir(exist_ok=True)
    authority = trustme.CA()
    certificate = authority.issue_cert("127.0.0.1")
    (folder / "tls.crt").write_bytes(b"".join(blob.bytes() for blob in certificate.cert_chain_pems))
    write_secret(folder / "tls.key", certificate.private_key_pem.bytes().decode())
    return authority.cert_pem.bytes()


def configuration(certificates: Path, webhooks: int, health: int, gang_provider: str) -> dict[str, Any]:
    """The configuration of the controller: webhooks and health on these ports, no metrics, no leader election."""
    body: dict[str, Any] = {
        "apiVersion": "config.lws.x-k8s.io/v1alpha1",
        "kind": "Configuration",
        "leaderElection": {"leaderElect": False},
        "internalCertManagement": {"enable": False},
        "webhook": {"host": "127.0.0.1", "port": webhooks, "certDir": str(certificates)},
        "health": {"healthProbeBindAddress": f"127.0.0.1:{health}"},
        "metrics": {"bindAddress": "0"},
    }
    return {**body, "gangSchedulingManagement": {"schedulerProvider": gang_provider}} if gang_provider else body


def webhook_configurations(port: int, authority: bytes) -> list[dict[str, Any]]:
    """The controller's own webhook configurations, which find it at this port of the loopback interface."""
    bundle = base64.b64encode(authority).decode()
    bodies = list(documents(asset("webhooks/lws.yaml")))
    for body in bodies:
        body["metadata"] = {"name": f"lws-{body['metadata']['name']}"}
        for webhook in body["webhooks"]:
            path = webhook["clientConfig"]["service"]["path"]
            webhook["clientConfig"] = {"url": f"https://127.0.0.1:{port}{path}", "caBundle": bundle}
            if any("pods" in rule["resources"] for rule in webhook["rules"]):
                webhook["objectSelector"] = PODS_OF_SETS
    return bodies


def are_effective(plane: ControlPlane) -> bool:
    """Whether the API server asks both webhooks about LeaderWorkerSets."""
    code, answer = plane.call(f"{collection(LEADER_WORKER_SET, 'default')}?dryRun=All", REFUSED)
    return code == 403 and b"size must be equal or greater than 1" in answer
