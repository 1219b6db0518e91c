"""Server: the API server under test, the sandbox or a real one: its address and credentials."""

import base64
import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import yaml


@dataclass(frozen=True, slots=True)
class Server:
    """The address of a server, and the credentials of an administrator. It neither schedules nor runs pods."""

    name: str
    """`sandbox` or `real`, for tests of a known difference."""
    kubeconfig: Path
    url: str
    token: str
    ca: str
    """The certificate authority in PEM, empty where the server speaks plain HTTP."""


def described(name: str, kubeconfig: Path) -> Server:
    """The server of the first cluster and the first user in a kubeconfig."""
    config = yaml.load(kubeconfig.read_text(), yaml.CSafeLoader)
    cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
    return Server(name, kubeconfig, cluster["server"], user["token"], authority(cluster))


def authority(cluster: dict[str, str]) -> str:
    """The certificate authority of a cluster in a kubeconfig, from a file or inline; empty if there is none."""
    if "certificate-authority" in cluster:
        return Path(cluster["certificate-authority"]).read_text()
    return base64.b64decode(cluster.get("certificate-authority-data", "")).decode()


@contextlib.contextmanager
def sandbox(folder: Path) -> Iterator[Server]:
    """`engine sandbox up` in another process while the block runs, without webhooks and without the actors that run pods."""
    command = [
        sys.executable,
        "-m",
        "enginectl",
        "sandbox",
        "up",
        "--dir",
        str(folder),
        "--without",
        "scheduler,kubelet,driver",
        "--no-admission",
    ]
    environment = {name: value for name, value in os.environ.items() if name != "KUBECONFIG"}
    with (folder / "sandbox.log").open("w") as log:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, stdin=subprocess.DEVNULL, env=environment, text=True)
    with process:
        try:
            await_export(process, folder)
            yield described("sandbox", folder / "kubeconfig")
        finally:
            process.kill()


def await_export(process: subprocess.Popen[str], folder: Path) -> None:
    """Read the output of the sandbox up to the line that it serves. Raises `RuntimeError` with its log if it ends before."""
    assert process.stdout is not None
    if not any("export KUBECONFIG" in line for line in process.stdout):
        raise RuntimeError(f"the sandbox did not start: {(folder / 'sandbox.log').read_text()[-2000:]}")
