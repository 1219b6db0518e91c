"""The soak of `benchmarks/soak.py`, for less than a minute of churn: the process ends with what it had at the beginning."""

from pathlib import Path

import pytest

from benchmarks.soak import growth, soak
from tests.controlplane.fixtures import started

pytestmark = [pytest.mark.anyio, pytest.mark.e2e]


async def test_churn_on_a_real_control_plane_leaves_nothing_behind(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    with started(tmp_path_factory, ["kcm", "scheduler", "kwok"], nodes=10, audit=True) as plane:
        rests = await soak(plane, tmp_path, seconds=30, periods=2, rest=3)

    assert growth(rests) == []
