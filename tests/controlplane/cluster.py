"""A real Kubernetes control plane on loopback: etcd and kube-apiserver, and on request the other parts.

    export KUBEBUILDER_ASSETS=$(tests/controlplane/build)
    python -m tests.controlplane.cluster up --dir DIR --with kcm,scheduler,kwok --nodes 10 --audit
    python -m tests.controlplane.cluster down --dir DIR

`up` returns once the API server is ready and leaves a kubeconfig per user in DIR: `kubeconfig` of the administrator, `operator.kubeconfig`
of the ServiceAccount `grove-engine`, which may do what `engine manifests rbac` allows, and `guest.kubeconfig` of somebody who may do
nothing until a test grants it. The audit log has the requests of all ServiceAccounts in the namespace of `grove-engine`.
"""

import argparse
import contextlib
import json
import os
import secrets
import shutil
import signal
import ssl
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from tests.controlplane.gangs import PROTECTION, VERSIONS, gates_asked_for
from tests.ports import free_port
from tests.waiting import until

READY = ("/readyz", "/api/v1/namespaces/default", "/api/v1/namespaces/kube-public")
"""What an API server answers to once it is ready: it creates its own namespaces a moment after `/readyz`."""

ATTEMPTS = 3
"""How often a server is started if other processes take its ports."""

PARTS = {"kcm": "kube-controller-manager", "scheduler": "kube-scheduler", "kwok": "kwok"}
USERS = {"admin": "system:masters", "guest": ""}
"""The users with tokens of their own, and their groups. The operator is a ServiceAccount."""
SYSTEM = "grove-system"
"""The namespace of the engine's account."""
AUDITED = f"system:serviceaccounts:{SYSTEM}"

# The controllers that act on the objects of the engine. Those for certificates, volumes and clouds are left out to save memory.
AUTOSCALING = "horizontal-pod-autoscaler-controller"
CONTROLLERS = (
    "clusterrole-aggregation-controller",
    "cronjob-controller",
    "daemonset-controller",
    "deployment-controller",
    "disruption-controller",
    "endpointslice-controller",
    "garbage-collector-controller",
    AUTOSCALING,
    "job-controller",
    "namespace-controller",
    "pod-garbage-collector-controller",
    "replicaset-controller",
    "resourceclaim-controller",
    "root-ca-certificate-publisher-controller",
    "serviceaccount-controller",
    "serviceaccount-token-controller",
    "statefulset-controller",
    "validatingadmissionpolicy-status-controller",
)


UNROTATED = "--audit-log-maxsize=100000"
"""In megabytes: readers of the audit log go on from where they were."""


class Missing(Exception):
    """A binary is missing; the text names the folder."""


class Broken(Exception):
    """A part did not start; the text names its log and quotes the end of it."""


class Taken(Broken):
    """Another process has taken the port of a part before it started."""


@dataclass(frozen=True, slots=True)
class ControlPlane:
    """A running control plane: its address and credentials."""

    folder: Path
    url: str
    token: str
    gangs: str = ""
    """The feature gates with which it serves PodGroups and its scheduler schedules gangs by them; empty if it does not."""

    @property
    def ca(self) -> Path:
        """The certificate that has signed the server's certificate."""
        return self.folder / "certs" / "apiserver.crt"

    @property
    def audit_log(self) -> Path:
        """One JSON line per request of the engine's accounts, if the plane was started with `audit`."""
        return self.folder / "audit.log"

    def kubeconfig(self, user: str = "admin") -> Path:
        """The kubeconfig of one of `USERS`, or of an account (`tests.controlplane.accounts`)."""
        return self.folder / ("kubeconfig" if user == "admin" else f"{user}.kubeconfig")

    def call(self, path: str, body: Any = None, *, method: str = "", patience: float = 60.0) -> tuple[int, bytes]:
        """GET a path as the administrator, or POST a body to it, or use another method. Returns the status code and the body.

        The code is 0 without an answer, also within `patience` seconds.
        """
        content = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, content, method=method or None)
        request.add_header("Authorization", f"Bearer {self.token}")
        request.add_header("Content-Type", "application/json")
        try:
            with urllib.request.urlopen(request, context=ssl.create_default_context(cafile=self.ca), timeout=patience) as answer:
                return answer.status, answer.read()
        except urllib.error.HTTPError as error:
            return error.code, error.read()
        except OSError:
            return 0, b""


@contextlib.contextmanager
def running(
    folder: Path, parts: Sequence[str] = (), *, nodes: int = 0, audit: bool = False, flags: Sequence[str] = (), gangs: str | None = None
) -> Iterator[ControlPlane]:
    """A control plane that runs while the block runs. Raises as `up` does."""
    try:
        yield up(folder, parts, nodes=nodes, audit=audit, flags=flags, gangs=gangs)
    finally:
        down(folder)


def up(
    folder: Path,
    parts: Sequence[str] = (),
    *,
    nodes: int = 0,
    audit: bool = False,
    port: int = 0,
    flags: Sequence[str] = (),
    gangs: str | None = None,
) -> ControlPlane:
    """Start a control plane that keeps everything in `folder`, and wait until it is ready.

    `parts` are keys of `PARTS`; `nodes` is the number of nodes to register, which kwok then plays; `flags` are more flags of the API
    server, which replace ours of the same name; `gangs` are the feature gates with which PodGroups are served and
    gangs scheduled by them, empty for none; by default as the environment variable GANGS (on, off) says. Raises `Missing` before anything
    is started, and `Broken`, after which `down` ends what was.
    """
    binaries = {name: binary(name) for name in ("etcd", "kube-apiserver", *(PARTS[part] for part in parts))}
    folder.mkdir(parents=True, exist_ok=True)
    gates = gates_asked_for() if gangs is None else gangs
    plane = server(folder, binaries, [*(audit_flags(folder) if audit else ()), *flags], port=port, gangs=gates)
    for part in parts:
        start(folder, binaries[PARTS[part]], part_flags(plane, part))
    for number in range(nodes):
        register(plane, f"node-{number:04d}")
    return plane


def server(folder: Path, binaries: Mapping[str, str], flags: Sequence[str], *, port: int, gangs: str) -> ControlPlane:
    """An API server with a store, ready. If another process takes one of their ports first, both are started again with other ports."""
    for attempt in range(ATTEMPTS):
        tokens = {user: secrets.token_hex(16) for user in USERS}
        plane = ControlPlane(folder, f"https://127.0.0.1:{port or free_port()}", tokens["admin"], gangs)
        write_credentials(plane, tokens)
        store = f"http://127.0.0.1:{free_port()}"
        start(folder, binaries["etcd"], etcd_flags(folder, store))
        start(folder, binaries["kube-apiserver"], [*api_server_flags(plane, store), *flags])
        try:
            wait_until_ready(plane)
            return plane
        except Taken:
            if attempt == ATTEMPTS - 1:
                raise
            down(folder)
            clear(folder)
    raise AssertionError("the last attempt raises")


def clear(folder: Path) -> None:
    """Remove the files of a failed attempt."""
    for name in ("etcd.log", "kube-apiserver.log"):
        (folder / name).unlink(missing_ok=True)
    for name in ("etcd", "certs"):
        shutil.rmtree(folder / name, ignore_errors=True)


def down(folder: Path) -> None:
    """Kill every process that `up` has started for that folder. Its data is not needed any more."""
    pids = folder / "pids"
    if not pids.exists():
        return
    for pid in reversed([int(line) for line in pids.read_text().split()]):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(pid, 0)
    pids.unlink()


def binary(name: str) -> str:
    """The path of a binary in the folder that KUBEBUILDER_ASSETS names. Raises `Missing`."""
    assets = os.environ.get("KUBEBUILDER_ASSETS", "")
    if not assets:
        raise Missing("KUBEBUILDER_ASSETS is not set; tests/controlplane/build prints what it should be")
    found = shutil.which(name, path=assets)
    if not found:
        raise Missing(f"there is no {name} in KUBEBUILDER_ASSETS={assets}")
    return found


def start(folder: Path, program: str, flags: Sequence[str]) -> None:
    """Start one part in a session of its own, so that Ctrl-C does not reach it and `down` ends it."""
    environment = {name: value for name, value in os.environ.items() if name != "KUBECONFIG"}
    log = folder / f"{Path(program).name}.log"
    streams = [
        (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
        (os.POSIX_SPAWN_OPEN, 1, log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600),
        (os.POSIX_SPAWN_DUP2, 1, 2),
    ]
    pid = os.posix_spawn(program, [program, *flags], environment, file_actions=streams, setsid=True)
    with (folder / "pids").open("a") as pids:
        pids.write(f"{pid}\n")
    (folder / f"{Path(program).name}.started").write_text(json.dumps({"pid": pid, "program": program, "flags": list(flags)}))


def kill(folder: Path, name: str) -> None:
    """Kill the part of that name (`etcd`, `kube-apiserver`, ...) as a crash would; its files stay. Returns when it has ended."""
    pid = pid_of(folder, name)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    forget(folder, pid)


def has_ended(folder: Path, name: str) -> bool:
    """Whether the part of that name has ended by itself. True is returned once."""
    pid = pid_of(folder, name)
    ended = os.waitpid(pid, os.WNOHANG)[0] == pid
    if ended:
        forget(folder, pid)
    return ended


def pid_of(folder: Path, name: str) -> int:
    """The process of the part of that name, as it was started last."""
    return int(json.loads((folder / f"{name}.started").read_text())["pid"])


def forget(folder: Path, pid: int) -> None:
    """Take a process that has ended from those that `down` ends: another process may get its id."""
    pids = folder / "pids"
    pids.write_text("".join(f"{line}\n" for line in pids.read_text().split() if line != str(pid)))


def start_again(folder: Path, name: str, changed: Mapping[str, str] = MappingProxyType({})) -> None:
    """Start a part that has ended, as it was started before: on the same ports, with the same data. `changed`: flag -> its replacement."""
    before = json.loads((folder / f"{name}.started").read_text())
    start(folder, before["program"], [changed.get(flag, flag) for flag in before["flags"]])


def write_credentials(plane: ControlPlane, tokens: dict[str, str]) -> None:
    """Write tokens for the server, a key for its service accounts and a kubeconfig for each user, readable by their owner only."""
    lines = (f'{token},{user},{user},"{USERS[user]}"\n' for user, token in tokens.items())
    write_secret(plane.folder / "tokens.csv", "".join(lines))
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    write_secret(plane.folder / "accounts.key", key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode())
    for user, token in tokens.items():
        write_secret(plane.kubeconfig(user), json.dumps(kubeconfig(plane, user, token), indent=1))


def write_secret(path: Path, text: str) -> None:
    """Write a file that only its owner can read."""
    path.touch(mode=0o600)
    path.write_text(text)


def kubeconfig(plane: ControlPlane, user: str, token: str) -> dict[str, Any]:
    """The kubeconfig of that user."""
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "test",
        "clusters": [{"name": "test", "cluster": {"server": plane.url, "certificate-authority": str(plane.ca)}}],
        "users": [{"name": user, "user": {"token": token}}],
        "contexts": [{"name": "test", "context": {"cluster": "test", "user": user, "namespace": "default"}}],
    }


def etcd_flags(folder: Path, store: str) -> list[str]:
    """The flags of a store that is fast and loses its data in a crash."""
    return [
        f"--data-dir={folder}/etcd",
        f"--listen-client-urls={store}",
        f"--advertise-client-urls={store}",
        f"--listen-peer-urls=http://127.0.0.1:{free_port()}",
        "--unsafe-no-fsync",
        "--log-level=error",
    ]


def api_server_flags(plane: ControlPlane, store: str) -> list[str]:
    """The flags of an API server on the loopback interface."""
    folder = plane.folder
    return [
        f"--etcd-servers={store}",
        f"--secure-port={plane.url.rpartition(':')[2]}",
        "--bind-address=127.0.0.1",
        "--advertise-address=127.0.0.1",
        # Since 1.37 a server refuses to publish a loopback address as its end point.
        "--endpoint-reconciler-type=none",
        f"--cert-dir={folder}/certs",
        f"--token-auth-file={folder}/tokens.csv",
        "--authorization-mode=RBAC",
        f"--service-account-key-file={folder}/accounts.key",
        f"--service-account-signing-key-file={folder}/accounts.key",
        "--service-account-issuer=https://kubernetes.default.svc",
        "--service-cluster-ip-range=10.0.0.0/16",
        "--allow-privileged=true",
        # The first keeps simulated nodes tainted, the second requires priority classes that nothing here creates.
        "--disable-admission-plugins=TaintNodesByCondition,Priority",
        # MutatingAdmissionPolicies are not enabled by default.
        "--runtime-config=admissionregistration.k8s.io/v1beta1=true",
        "--feature-gates=MutatingAdmissionPolicy=true",
        "--max-requests-inflight=800",
        "--max-mutating-requests-inflight=800",
        *((plane.gangs, VERSIONS) if plane.gangs else ()),
    ]


def audit_flags(folder: Path) -> list[str]:
    """Flags for a log line for each request of the audited accounts, and for each deletion of a pod whoever asks for it.

    Lines are written before the next request is read.
    """
    deletions = {"level": "Metadata", "verbs": ["delete"], "resources": [{"group": "", "resources": ["pods"]}]}
    policy = {
        "apiVersion": "audit.k8s.io/v1",
        "kind": "Policy",
        "omitStages": ["RequestReceived"],
        "rules": [{"level": "Metadata", "userGroups": [AUDITED]}, deletions, {"level": "None"}],
    }
    (folder / "audit.json").write_text(json.dumps(policy))
    return [f"--audit-policy-file={folder}/audit.json", f"--audit-log-path={folder}/audit.log", "--audit-log-mode=blocking", UNROTATED]


def part_flags(plane: ControlPlane, part: str, controllers: Sequence[str] = CONTROLLERS) -> list[str]:
    """The flags of one of `PARTS`; `controllers` are those that the controller manager runs."""
    config = plane.kubeconfig()
    delegates = [
        f"--kubeconfig={config}",
        f"--authentication-kubeconfig={config}",
        f"--authorization-kubeconfig={config}",
        "--leader-elect=false",
        "--bind-address=127.0.0.1",
        f"--secure-port={free_port()}",
        f"--cert-dir={plane.folder}/{part}",
        "--kube-api-qps=5000",
        "--kube-api-burst=5000",
        *((plane.gangs,) if plane.gangs else ()),
    ]
    flags = {
        "kcm": [
            *delegates,
            f"--controllers={','.join((*controllers, PROTECTION) if plane.gangs else controllers)}",
            f"--service-account-private-key-file={plane.folder}/accounts.key",
            f"--root-ca-file={plane.ca}",
        ],
        "scheduler": delegates,
        "kwok": [f"--kubeconfig={config}", "--manage-all-nodes=true", f"--server-address=127.0.0.1:{free_port()}"],
    }
    return flags[part]


def wait_until_ready(plane: ControlPlane) -> None:
    """Wait until the API server is ready. Raises `Taken` if a log reports that a port is taken."""

    def is_ready() -> bool:
        for log in plane.folder.glob("*.log"):
            if "address already in use" in log.read_text(errors="replace"):
                raise Taken(f"a port was taken; see {log}")
        return plane.ca.exists() and all(plane.call(path, patience=10)[0] == 200 for path in READY)

    until(is_ready, lambda: f"not ready; kube-apiserver.log ends with:\n{(plane.folder / 'kube-apiserver.log').read_text()[-2000:]}")


def register(plane: ControlPlane, name: str, labels: Mapping[str, str] = MappingProxyType({})) -> None:
    """Add a node with 8 GPUs as its kubelet would; kwok keeps it ready."""
    room = {"cpu": "64", "memory": "512Gi", "ephemeral-storage": "100Gi", "pods": "110", "nvidia.com/gpu": "8"}
    node = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, **labels}, "annotations": {"kwok.x-k8s.io/node": "fake"}},
        "status": {"capacity": room, "allocatable": room},
    }
    code, answer = plane.call("/api/v1/nodes", node)
    if code != 201:
        raise Broken(f"node {name}: {code} {answer.decode()}")


def arguments() -> argparse.Namespace:
    """The parsed command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(dest="verb", required=True)
    for verb in ("up", "down"):
        verbs.add_parser(verb).add_argument("--dir", type=Path, required=True, help="where everything is kept")
    options = verbs.choices["up"]
    options.add_argument(
        "--with", dest="parts", default="", metavar=",".join(PARTS), help="the parts to start besides etcd and kube-apiserver"
    )
    options.add_argument("--nodes", type=int, default=0, help="nodes to register")
    options.add_argument("--audit", action="store_true", help="write audit.log")
    options.add_argument("--port", type=int, default=0, help="of the API server; 0 takes a free one")
    return parser.parse_args()


def main() -> None:
    """Run the command line. A failed `up` leaves no process."""
    asked = arguments()
    folder = asked.dir.resolve()
    if asked.verb == "down":
        return down(folder)
    if (folder / "pids").exists():
        sys.exit(f"{folder}: has one already; end it with `down` first")
    from tests.controlplane.accounts import grant, operator_permissions

    try:
        plane = up(folder, [part for part in asked.parts.split(",") if part], nodes=asked.nodes, audit=asked.audit, port=asked.port)
        grant(plane, operator_permissions())
    except (Missing, Broken, AssertionError) as error:
        down(folder)
        sys.exit(str(error))
    sys.stdout.write(f"{plane.url} is ready: export KUBECONFIG={plane.kubeconfig()}\n")


if __name__ == "__main__":
    main()
