"""`engine run` in a process of its own on a real control plane, as a Deployment would run it."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.controlplane.cluster import ControlPlane, write_secret
from tests.controlplane.installed_accounts import install_account
from tests.enginectl.calling import ROOT

LEASE_DURATION, RENEW_DEADLINE, RETRY_PERIOD = 6, 4, 1
"""Seconds of the tests' Lease: shorter than by default, so that nobody waits."""


@dataclass(frozen=True, slots=True)
class Installation:
    """How the processes of one test run: files with credentials and configuration, and the namespace that they work in."""

    folder: Path
    namespace: str

    @property
    def credentials(self) -> Path:
        """The kubeconfig."""
        return self.folder / "kubeconfig"

    @property
    def token_file(self) -> Path:
        """The file with the token, if the kubeconfig names one."""
        return self.folder / "token"

    def use_token(self, token: str) -> None:
        """Let the processes read their token from the file of tokens."""
        write_secret(self.token_file, token)
        config = json.loads(self.credentials.read_text())
        config["users"][0]["user"] = {"tokenFile": str(self.token_file)}
        write_secret(self.credentials, json.dumps(config))

    @property
    def account(self) -> str:
        """The name of the ServiceAccount, which is of this installation alone."""
        return f"engine-{self.namespace}"

    @property
    def options(self) -> tuple[str, ...]:
        """The options of every command."""
        configuration = self.folder / "operator.yaml"
        return ("--kubeconfig", str(self.credentials), "--config", str(configuration), "-n", self.namespace)


def installed(folder: Path, plane: ControlPlane, namespace: str, *, server: str = "") -> Installation:
    """The files of an installation whose audited account has exactly the roles for them; on `server` instead of the plane's own.

    Processes that are installed in the same namespace share the account.
    """
    installation = Installation(folder, namespace)
    folder.mkdir(parents=True, exist_ok=True)
    election = {
        "leaseDuration": f"{LEASE_DURATION}s",
        "renewDeadline": f"{RENEW_DEADLINE}s",
        "retryPeriod": f"{RETRY_PERIOD}s",
        "resourceName": "engine",
        "resourceNamespace": namespace,
    }
    document = {"apiVersion": "operator.config.grove.io/v1alpha1", "kind": "OperatorConfiguration", "leaderElection": election}
    (folder / "operator.yaml").write_text(json.dumps(document))
    if not plane.kubeconfig(installation.account).exists():
        install_account(plane, installation.account, document)
    config = json.loads(plane.kubeconfig(installation.account).read_text())
    if server:
        config["clusters"][0]["cluster"] = {"server": server}
    write_secret(installation.credentials, json.dumps(config))
    return installation


class EngineProcess:
    """A running `engine run`, and what it has logged."""

    def __init__(self, process: subprocess.Popen[bytes], log: Path) -> None:
        self._process, self._log = process, log

    @property
    def pid(self) -> int:
        """The id of the process."""
        return self._process.pid

    @property
    def exit_code(self) -> int | None:
        """None while it runs; the negative number of the signal that killed it."""
        return self._process.poll()

    def logged(self, event: str = "") -> list[dict[str, Any]]:
        """The complete lines of its log, or those of one event."""
        lines = self._log.read_text().split("\n")[:-1]
        return [line for line in map(json.loads, filter(None, lines)) if event in ("", line["event"])]

    def send(self, number: signal.Signals) -> None:
        """Send a signal."""
        self._process.send_signal(number)


@contextmanager
def engine_run(
    installation: Installation, name: str = "engine", *, interval: str = "1h", stderr: int | None = None
) -> Iterator[EngineProcess]:
    """`engine run` while the block runs; its log goes to a file, or to a descriptor of the test. It notices changes by watches alone."""
    log = installation.folder / f"{name}.log"
    log.touch()
    environment = {"PATH": "/usr/bin:/bin", "PYTHONPATH": f"{ROOT}:{ROOT / 'cmd'}", "HOME": "/nonexistent", "PYTHONUTF8": "1"}
    command = [sys.executable, "-m", "enginectl", "run", "--interval", interval, "--log-format", "json", *installation.options]
    with log.open("ab") as stream:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=stream if stderr is None else stderr,
            env=environment,
            cwd=os.sep,
        )
    with process:
        try:
            yield EngineProcess(process, log)
        finally:
            process.kill()
