"""What tests of the command line ask for."""

from pathlib import Path

import pytest

from tests.enginectl.calling import Engine


@pytest.fixture
def engine(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Engine:
    """The command line, on a machine that knows of no cluster."""
    for name in ("KUBECONFIG", "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    return Engine(capsys)
