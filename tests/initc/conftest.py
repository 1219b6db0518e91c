"""Fixtures of the waiter's tests."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.initc import cluster as clusters
from tests.initc.cluster import Cluster


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    """A sandbox cluster over HTTP, and the files of a pod that waits."""
    with clusters.cluster(tmp_path) as made:
        yield made
