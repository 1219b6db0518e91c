"""Place: where the pod stands in its cluster, and how it reaches the API server. All of it comes from mounted files and two variables."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

POD_INFO = Path("var/grove/pod-info")
ACCOUNT = Path("var/run/secrets/kubernetes.io/serviceaccount")


class Misplaced(Exception):
    """This does not run in a pod that has been given what it needs."""


@dataclass(frozen=True, slots=True)
class Place:
    """A pod's place."""

    host: str
    port: int
    namespace: str
    gang: str
    """The PodGang that the pod is in, by the name of which it finds the others."""
    account: Path
    """The folder with `token` and `ca.crt`: files that are replaced while we run."""

    @property
    def token(self) -> str:
        """The token as it is now. Raises `OSError` and `UnicodeError`."""
        return (self.account / "token").read_text("ascii").strip()

    @property
    def authority(self) -> str:
        """The certificate authority as it is now. Raises `OSError` and `UnicodeError`."""
        return (self.account / "ca.crt").read_text("ascii")


def find(environ: Mapping[str, str], root: Path) -> Place:
    """Where we are. Raises `Misplaced`."""
    host, port = (environ.get(f"KUBERNETES_SERVICE_{part}", "") for part in ("HOST", "PORT"))
    if not host or not (port.isascii() and port.isdecimal()):
        raise Misplaced("KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT do not name an API server")
    namespace, gang = (_told(root / POD_INFO / name) for name in ("namespace", "podgangname"))
    place = Place(host, int(port), namespace, gang, root / ACCOUNT)
    for name in ("token", "ca.crt"):
        _told(place.account / name)
    return place


def _told(path: Path) -> str:
    try:
        text = path.read_text("ascii").strip()
    except (OSError, UnicodeError) as error:
        raise Misplaced(f"{path} cannot be read: {error}") from None
    if not text:
        raise Misplaced(f"{path} is empty")
    return text
