"""Installation: how `engine run` is started on a real control plane, as a Deployment would run it."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.controlplane.cluster import ControlPlane, write_secret
from tests.controlplane.installed_accounts import install_account
from tests.stories import engine_processes
from tests.stories.engine_processes import EngineProcess

LEASE_DURATION, RENEW_DEADLINE, RETRY_PERIOD = 15, 10, 1
"""Seconds of the tests' Lease. Shorter ones are lost on a busy machine."""


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


@contextmanager
def engine_run(
    installation: Installation, name: str = "engine", *, interval: str = "1h", stderr: int | None = None
) -> Iterator[EngineProcess]:
    """`engine run` of this installation while the block runs. With the default interval it notices changes by watches alone."""
    log = installation.folder / f"{name}.log"
    with engine_processes.engine_run(log, "--interval", interval, *installation.options, stderr=stderr) as process:
        yield process
