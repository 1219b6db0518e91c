"""Every story on the sandbox is also a test of forecasts: what a `sync` does is compared with what was forecast before."""

import pytest

from tests.stories.forecasts import compared
from tests.stories.stage import Stage


@pytest.fixture(autouse=True)
def every_sync_is_forecast(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let each `Stage.sync` forecast first, and compare afterwards."""
    monkeypatch.setattr(Stage, "sync", compared(Stage.sync))
