"""The fixtures of pytest that come with the sandbox. Nothing else is imported before a test asks for one."""

from collections.abc import Iterator
from typing import Any

import pytest


@pytest.fixture
def cluster_in_memory() -> Iterator[Any]:
    """A Kubernetes cluster in memory with one simulated node, as a `grove_sandbox.testing.ClusterInMemory`."""
    from grove_sandbox.testing import serve

    with serve() as cluster:
        yield cluster


@pytest.fixture
def cluster_in_virtual_time() -> Iterator[Any]:
    """The same, whose time passes only when the test calls `advance`."""
    from grove_sandbox.testing import serve

    with serve(virtual_time=True) as cluster:
        yield cluster
