"""A program of a scheduler is ended with its block, and its failure is reported with the end of its log."""

import os
from pathlib import Path

import pytest

from tests.controlplane.cluster import Broken, ControlPlane, Missing
from tests.controlplane.schedulers.program import running


@pytest.fixture
def plane(tmp_path: Path) -> ControlPlane:
    """A folder for logs and a kubeconfig; nothing runs."""
    return ControlPlane(tmp_path, "https://127.0.0.1:1", "token")


def provide(folder: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    """A program `kai-binder` in the folder that SCHEDULERS_ASSETS names."""
    program = folder / "assets" / "bin" / "kai-binder"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    monkeypatch.setenv("SCHEDULERS_ASSETS", str(folder / "assets"))


def test_a_missing_program_is_named(plane: ControlPlane, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SCHEDULERS_ASSETS", str(tmp_path))

    with pytest.raises(Missing, match="there is no bin/kai-binder in SCHEDULERS_ASSETS="), running(plane, "kai-binder", [], lambda: True):
        pass


def test_without_the_variable_its_name_is_reported(plane: ControlPlane, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SCHEDULERS_ASSETS", raising=False)

    with pytest.raises(Missing, match="SCHEDULERS_ASSETS is not set"), running(plane, "kai-binder", [], lambda: True):
        pass


def test_a_program_that_ends_before_it_is_ready_is_reported_with_its_log(
    plane: ControlPlane, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    provide(tmp_path, monkeypatch, 'echo "no such flag: $1" >&2; exit 2')

    with pytest.raises(Broken, match="(?s)kai-binder ended.*no such flag: --what"), running(plane, "kai-binder", ["--what"], lambda: False):
        pass


def test_a_program_runs_as_the_administrator_and_is_ended_by_a_failure_in_the_block(
    plane: ControlPlane, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    provide(tmp_path, monkeypatch, 'echo "$KUBECONFIG" >user; echo $$ >pid.new; mv pid.new pid; exec sleep 300')

    with pytest.raises(ZeroDivisionError), running(plane, "kai-binder", [], (tmp_path / "pid").exists):
        raise ZeroDivisionError

    assert (tmp_path / "user").read_text() == f"{plane.kubeconfig()}\n"
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)
