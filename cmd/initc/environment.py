"""The environment of the pod: its namespace and gang, and how to reach the API server, from mounted files and two variables."""

from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

POD_INFO = Path("var/grove/pod-info")
ACCOUNT = Path("var/run/secrets/kubernetes.io/serviceaccount")


class EnvironmentMissing(Exception):
    """A variable or file is missing that every pod with this init container has."""


class Environment(Struct, frozen=True):
    """Where the pod runs."""

    host: str
    port: int
    namespace: str
    gang: str
    """The PodGang of the pod, by whose name the other pods are found."""
    account: Path
    """The directory with `token` and `ca.crt`. Both files are replaced while we run."""

    @property
    def token(self) -> str:
        """The current token. Raises `OSError` and `UnicodeError`."""
        return (self.account / "token").read_text("ascii").strip()

    @property
    def authority(self) -> str:
        """The current certificate authority, in PEM. Raises `OSError` and `UnicodeError`."""
        return (self.account / "ca.crt").read_text("ascii")


def read_environment(environ: Mapping[str, str], root: Path) -> Environment:
    """The environment of this pod. Raises `EnvironmentMissing`."""
    host, port = (environ.get(f"KUBERNETES_SERVICE_{part}", "") for part in ("HOST", "PORT"))
    if not host or not (port.isascii() and port.isdecimal()):
        raise EnvironmentMissing("KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT do not name an API server")
    namespace, gang = (_content(root / POD_INFO / name) for name in ("namespace", "podgangname"))
    environment = Environment(host, int(port), namespace, gang, root / ACCOUNT)
    for name in ("token", "ca.crt"):
        _content(environment.account / name)
    return environment


def _content(path: Path) -> str:
    """The content of a file, without surrounding white space. Raises `EnvironmentMissing` if it is empty or cannot be read."""
    try:
        text = path.read_text("ascii").strip()
    except (OSError, UnicodeError) as error:
        raise EnvironmentMissing(f"{path} cannot be read: {error}") from None
    if not text:
        raise EnvironmentMissing(f"{path} is empty")
    return text
