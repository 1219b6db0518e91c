"""Programs and CRDs that `build` provides: run one program on a control plane, create the objects that it needs."""

import os
import signal
import subprocess
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import yaml

from engine import conditions
from engine.ids import Kind
from providers.kubernetes.wire import collection, decoded, member
from resources.base.kinds import CRD
from tests.controlplane.cluster import Broken, ControlPlane, Missing
from tests.waiting import until


def asset(name: str) -> Path:
    """A file or folder in the folder that SCHEDULERS_ASSETS names. Raises `Missing`."""
    assets = os.environ.get("SCHEDULERS_ASSETS", "")
    if not assets:
        raise Missing("SCHEDULERS_ASSETS is not set; tests/controlplane/schedulers/build prints what it should be")
    path = Path(assets, name)
    if not path.exists():
        raise Missing(f"there is no {name} in SCHEDULERS_ASSETS={assets}")
    return path


@contextmanager
def running(plane: ControlPlane, name: str, flags: Sequence[str], ready: Callable[[], bool]) -> Iterator[None]:
    """Run a program as the administrator while the block runs; the block starts when `ready` holds.

    Its log is NAME.log in the plane's folder. Raises `Missing` without the program, and `Broken` with the end of the log if the program
    ends before it is ready.
    """
    log = plane.folder / f"{name}.log"
    environment = {**os.environ, "KUBECONFIG": str(plane.kubeconfig())}
    command = [str(asset(f"bin/{name}")), *flags]
    with log.open("ab") as output:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, cwd=plane.folder, env=environment, start_new_session=True
        )
    with process:
        try:
            wait_until(lambda: process.poll() is not None or ready(), f"{name} is not ready", log)
            if process.poll() is not None:
                raise Broken(f"{name} ended; {ending_of(log)}")
            yield
        finally:
            process.send_signal(signal.SIGKILL)


def wait_until(true: Callable[[], bool], failure: str, log: Path) -> None:
    """Return once that holds. Fails with this text and the end of the log."""
    until(true, lambda: f"{failure}; {ending_of(log)}")


def ending_of(log: Path) -> str:
    """The end of a log, with its path."""
    return f"{log} ends with:\n{log.read_text(errors='replace')[-2000:]}"


def responds(url: str) -> bool:
    """Whether a GET of the URL is answered with 200."""
    try:
        with urllib.request.urlopen(url, timeout=20) as answer:
            return bool(answer.status == 200)
    except (OSError, urllib.error.HTTPError):
        return False


def create(plane: ControlPlane, kind: Kind, body: Mapping[str, Any]) -> None:
    """Create a cluster-scoped object, unless one of that name exists. Raises `Broken` with the answer if it is refused."""
    code, answer = plane.call(collection(kind, ""), body)
    if code not in (201, 409):
        raise Broken(f"{kind.name} {body['metadata']['name']}: {code} {answer.decode(errors='replace')}")


def install_crds(plane: ControlPlane, name: str) -> None:
    """Install every CRD of a subfolder of `crds`, and wait until all are served."""
    definitions = [body for file in sorted(asset(f"crds/{name}").glob("*.yaml")) for body in documents(file)]
    for definition in definitions:
        create(plane, CRD, definition)
    for definition in definitions:
        crd = definition["metadata"]["name"]
        wait_until(partial(is_served, plane, crd), f"CRD {crd} is not served", plane.folder / "kube-apiserver.log")


def documents(file: Path) -> Iterable[dict[str, Any]]:
    """The objects in a YAML file."""
    return [body for body in yaml.load_all(file.read_bytes(), yaml.CSafeLoader) if body]


def is_served(plane: ControlPlane, crd: str) -> bool:
    """Whether the CRD is established and its objects can be listed."""
    code, answer = plane.call(member(CRD, "", crd))
    if code != 200:
        return False
    definition = decoded(answer)
    versions = [version["name"] for version in definition["spec"]["versions"] if version["served"]]
    paths = [f"/apis/{definition['spec']['group']}/{version}/{definition['spec']['names']['plural']}" for version in versions]
    established = conditions.is_true(definition.get("status", {}).get("conditions") or (), "Established")
    return established and all(plane.call(path)[0] == 200 for path in paths)
