"""Server: an API server that the contract is held against, ours or the real one; where it is and how to get in."""

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
    """Where it is, and the credentials of an administrator. No pod is scheduled or run on it unless a test sees to it."""

    name: str
    """`sandbox` or `real`, for the few tests that must say on which of the two a difference is meant."""
    kubeconfig: Path
    url: str
    token: str
    ca: str
    """The certificate authority in PEM, empty where the server speaks plain HTTP."""


def described(name: str, kubeconfig: Path) -> Server:
    """The server that a kubeconfig's first cluster and first user lead to."""
    config = yaml.safe_load(kubeconfig.read_text())
    cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
    return Server(name, kubeconfig, cluster["server"], user["token"], authority(cluster))


def authority(cluster: dict[str, str]) -> str:
    """The certificate authority of a kubeconfig's cluster: named as a file, given inline, or absent."""
    if "certificate-authority" in cluster:
        return Path(cluster["certificate-authority"]).read_text()
    return base64.b64decode(cluster.get("certificate-authority-data", "")).decode()


@contextlib.contextmanager
def sandbox(folder: Path) -> Iterator[Server]:
    """`engine sandbox up`, as a user starts it, for as long as the block lasts; without webhooks and the actors that run pods."""
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
    """Read what the sandbox prints up to the line that says it answers; if it ends before that, fail with what it said."""
    assert process.stdout is not None
    if not any("export KUBECONFIG" in line for line in process.stdout):
        raise RuntimeError(f"the sandbox did not come up: {(folder / 'sandbox.log').read_text()[-2000:]}")
