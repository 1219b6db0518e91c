"""Real API servers for the tests that ask for one; such a test is marked `e2e`, and skipped where KUBEBUILDER_ASSETS names no binaries."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pytest

from tests.controlplane.cluster import ControlPlane, Missing, running


@pytest.fixture(scope="session")
def api_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """An API server with its controllers, but nobody who runs pods: they rest as they were made, or are played by actors of ours."""
    with started(tmp_path_factory, ["kcm"]) as plane:
        yield plane


@pytest.fixture(scope="session")
def control_plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """A whole cluster: controllers, scheduler and ten nodes that play their pods; its audit log tells what the operator asked."""
    with started(tmp_path_factory, ["kcm", "scheduler", "kwok"], nodes=10, audit=True) as plane:
        yield plane


@contextmanager
def started(folders: pytest.TempPathFactory, parts: Sequence[str], *, nodes: int = 0, audit: bool = False) -> Iterator[ControlPlane]:
    """A control plane in a folder of its own (each xdist worker has its own), or a skip that names what is missing."""
    try:
        with running(folders.mktemp("controlplane"), parts, nodes=nodes, audit=audit) as plane:
            yield plane
    except Missing as missing:
        pytest.skip(str(missing))
