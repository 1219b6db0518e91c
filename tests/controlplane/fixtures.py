"""Real API servers as fixtures. Their tests are marked `e2e`, and skipped if KUBEBUILDER_ASSETS names no binaries."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pytest

from tests.controlplane.cluster import ControlPlane, Missing, running


@pytest.fixture(scope="session")
def api_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """An API server with its controllers, without a scheduler and nodes. A test may run the sandbox's actors against it."""
    with started(tmp_path_factory, ["kcm"]) as plane:
        yield plane


@pytest.fixture(scope="session")
def control_plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """A cluster with controllers, a scheduler and ten nodes that simulate their pods. Its audit log has the requests of the operator."""
    with started(tmp_path_factory, ["kcm", "scheduler", "kwok"], nodes=10, audit=True) as plane:
        yield plane


@contextmanager
def started(folders: pytest.TempPathFactory, parts: Sequence[str], *, nodes: int = 0, audit: bool = False) -> Iterator[ControlPlane]:
    """A control plane in a new folder. Skips the test with the missing binary."""
    try:
        with running(folders.mktemp("controlplane"), parts, nodes=nodes, audit=audit) as plane:
            yield plane
    except Missing as missing:
        pytest.skip(str(missing))
