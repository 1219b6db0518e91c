"""Real API servers as fixtures. Their tests are marked `e2e`, and skipped if KUBEBUILDER_ASSETS or SCHEDULERS_ASSETS names no binaries."""

import json
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pytest

from tests.controlplane.accounts import grant, operator_permissions
from tests.controlplane.cluster import AUTOSCALING, CONTROLLERS, PARTS, ControlPlane, Missing, binary, part_flags, register, running, start
from tests.controlplane.gangs import GATES
from tests.controlplane.pod_spec import FILE, asked
from tests.controlplane.schedulers.kai import kai
from tests.controlplane.schedulers.lws import lws
from tests.controlplane.schedulers.volcano import install_volcano_crds

RACK = "example.com/rack"
"""The label of the nodes of `scheduling_plane` that names their rack."""
RACKS = {f"node-{number:04d}": f"rack-{number // 5}" for number in range(10)}
"""Node -> rack, for the nodes of `scheduling_plane`."""
NATIVE_GANGS = 37
"""The first minor version of Kubernetes whose PodGroups the engine speaks."""


@pytest.fixture(scope="session")
def api_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """An API server with its controllers, without a scheduler and nodes. A test may run the sandbox's actors against it.

    Nobody writes the status of autoscalers: of its controller it depends on the moment.
    """
    with started(tmp_path_factory, []) as plane:
        controllers = [each for each in CONTROLLERS if each != AUTOSCALING]
        start(plane.folder, binary(PARTS["kcm"]), part_flags(plane, "kcm", controllers))
        yield plane


@pytest.fixture(scope="session")
def control_plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """A cluster with controllers, a scheduler and ten nodes that simulate their pods. Its audit log has the requests of the engine."""
    with started(tmp_path_factory, ["kcm", "scheduler", "kwok"], nodes=10, audit=True) as plane:
        yield plane


@pytest.fixture(scope="session")
def scheduling_plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """A cluster like `control_plane` with the LeaderWorkerSet controller, the KAI scheduler and Volcano's kinds.

    Its ten nodes have 8 GPUs each and are in two racks. Its queues are KAI's `dynamo` (below `cluster`, unlimited) and Volcano's `root` and
    `default`; nothing schedules pods of `volcano`. A test that fills nodes deletes its pods at the end.
    """
    with started(tmp_path_factory, [], audit=True) as plane:
        install_volcano_crds(plane)
        with lws(plane), kai(plane):
            start_parts(plane)
            for node, rack in RACKS.items():
                register(plane, node, {RACK: rack})
            yield plane


@pytest.fixture(scope="session")
def gang_plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """A cluster with controllers, and a scheduler that schedules gangs, hierarchies and topologies.

    It has no nodes: each test registers those that it needs, and deletes them.
    """
    with scheduling_gangs(tmp_path_factory, ["kcm", "scheduler", "kwok"]) as plane:
        yield plane


@contextmanager
def scheduling_gangs(folders: pytest.TempPathFactory, parts: Sequence[str], gates: str = GATES) -> Iterator[ControlPlane]:
    """A control plane that serves PodGroups, with these feature gates. Skips the test before Kubernetes 1.37."""
    version = minor_version()
    if version < NATIVE_GANGS:
        pytest.skip(f"Kubernetes 1.{version} does not schedule gangs by PodGroups")
    with started(folders, parts, audit=True, gangs=gates) as plane:
        yield plane


def release() -> str:
    """The release of Kubernetes that is tested, e.g. `1.37`. Skips the test without one."""
    return f"1.{minor_version()}"


def start_parts(plane: ControlPlane) -> None:
    """Start controllers, scheduler and kwok. After the CRDs: the garbage collector looks for new kinds only every 30 seconds."""
    for part in ("kcm", "scheduler", "kwok"):
        start(plane.folder, binary(PARTS[part]), part_flags(plane, part))


def minor_version() -> int:
    """The minor version of the API server. Skips the test without one."""
    try:
        program = binary("kube-apiserver")
    except Missing as missing:
        pytest.skip(str(missing))
    return int(subprocess.run([program, "--version"], capture_output=True, check=True, text=True).stdout.split(".")[1])


@pytest.fixture(scope="session")
def enforcing_plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """An API server with its controllers that asks for the right to set the finalizers of owners, as servers do not by default."""
    with started(tmp_path_factory, ["kcm"], audit=True, flags=["--enable-admission-plugins=OwnerReferencesPermissionEnforcement"]) as plane:
        yield plane


@contextmanager
def started(
    folders: pytest.TempPathFactory,
    parts: Sequence[str],
    *,
    nodes: int = 0,
    audit: bool = False,
    flags: Sequence[str] = (),
    gangs: str | None = None,
) -> Iterator[ControlPlane]:
    """A control plane in a new folder, on which the engine's account has its roles. Skips the test with the missing binary.

    `gangs`: the feature gates with which it serves PodGroups, empty for none; by default as the environment variable GANGS says.
    """
    try:
        with running(folders.mktemp("controlplane"), parts, nodes=nodes, audit=audit, flags=flags, gangs=gangs) as plane:
            grant(plane, operator_permissions())
            yield plane
    except Missing as missing:
        pytest.skip(str(missing))


def skip_unless_recorded(plane: ControlPlane) -> None:
    """Skip a test of the recorded types, defaults and verdicts where the server is of another release: it knows other fields."""
    recorded, release = json.loads(FILE.read_text(encoding="ascii"))["release"], asked(plane, "/version")["gitVersion"]
    if release != recorded:
        pytest.skip(f"what is recorded is of {recorded}, the server is of {release}")
